package linktest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/refs"
)

// Main runs a package's tests with gVisor's leak checker on, and fails when a
// packet buffer was not released. Use it as
//
//	func TestMain(m *testing.M) { linktest.Main(m) }
//
// The check is made only when all tests have passed, since a failed test leaves
// much behind, and not when benchmarks run, since it would be what they measure.
func Main(m *testing.M) {
	flag.Parse()
	if bench := flag.Lookup("test.bench"); bench == nil || bench.Value.String() == "" {
		refs.SetLeakMode(refs.LeaksPanic)
	}
	code := m.Run()
	if code == 0 {
		if leak := awaitPackets(); leak != "" {
			fmt.Fprintln(os.Stderr, leak)
			code = 1
		}
	}
	os.Exit(code)
}

// CheckPackets fails the test when gVisor objects with reference counts are alive
// that nobody lets go of in time. It needs Main, sees those of all tests, and so
// is not for tests that run in parallel.
func CheckPackets(tb testing.TB) {
	tb.Helper()
	if leak := awaitPackets(); leak != "" {
		tb.Error(leak)
	}
}

// awaitPackets waits until no object is left, since stacks let go of their
// packets in goroutines of their own, and else says which are.
func awaitPackets() string {
	var leak string
	until(func() bool {
		leak = leaked()
		return leak == ""
	})
	return leak
}

// leaked returns what gVisor's checker panics with, or "".
func leaked() (leak string) {
	defer func() {
		if r := recover(); r != nil {
			leak = fmt.Sprint(r)
		}
	}()
	refs.DoRepeatedLeakCheck()
	return ""
}

// CheckGoroutines notes how many goroutines there are and, when the test and its
// later clean-ups have ended, fails it with all stacks if there stay more. Call it
// first, before what starts goroutines. It is not for tests that run in parallel.
func CheckGoroutines(tb testing.TB) {
	tb.Helper()
	before := runtime.NumGoroutine()
	tb.Cleanup(func() {
		tb.Helper()
		if until(func() bool { return runtime.NumGoroutine() <= before }) {
			return
		}
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		tb.Errorf("%d goroutines, %d before the test:\n%s", runtime.NumGoroutine(), before, buf)
	})
}

// until polls until ok returns true, for what nothing announces. It reports
// whether that came in time.
func until(ok func() bool) bool {
	deadline := time.Now().Add(patience)
	for wait := time.Microsecond; !ok(); wait = min(2*wait, 10*time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(wait)
	}
	return true
}
