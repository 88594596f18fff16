package offload_test

import (
	"testing"

	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/refs"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// withoutLeakCheck switches gVisor's leak check off, which allocates for each
// reference, for the rest of a test that makes and drops all its packets
// itself.
func withoutLeakCheck(tb testing.TB) {
	refs.SetLeakMode(refs.NoLeakChecking)
	tb.Cleanup(func() { refs.SetLeakMode(refs.LeaksPanic) })
}
