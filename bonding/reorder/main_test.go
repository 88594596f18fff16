package reorder

import (
	"testing"

	"bondstack/link/linktest"
)

func TestMain(m *testing.M) { linktest.Main(m) }
