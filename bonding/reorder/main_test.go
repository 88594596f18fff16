package reorder

import (
	"os"
	"testing"

	"gvisor.dev/gvisor/pkg/refs"
)

func TestMain(m *testing.M) {
	refs.SetLeakMode(refs.LeaksPanic)
	code := m.Run()
	refs.DoLeakCheck()
	os.Exit(code)
}
