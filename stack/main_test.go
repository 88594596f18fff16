package stack_test

import (
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
	"bondstack/link/wire"
	"bondstack/stack"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// patience is how long a test waits for something that is bound to happen,
// before it says that it did not. No test passes or fails by how fast it is.
const patience = 20 * time.Second

// newWire makes a wire whose ends nobody has to close but the hosts on them.
func newWire(t testing.TB, opts wire.Options) (a, b *wire.Endpoint) {
	t.Helper()
	a, b, err := wire.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func newHost(t testing.TB, ep netstack.LinkEndpoint, opts stack.HostOptions) *stack.Host {
	t.Helper()
	h, err := stack.NewHost(ep, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// newPair makes two hosts on a wire: 10.0.0.1 and fd00::1, 10.0.0.2 and
// fd00::2. The test fails if a goroutine is left after them.
func newPair(t testing.TB, change ...func(*stack.HostOptions)) (a, b *stack.Host) {
	t.Helper()
	checkGoroutines(t)
	left, right := newWire(t, wire.Options{})
	a, b = newHost(t, left, pairOptions("1", change)), newHost(t, right, pairOptions("2", change))
	for _, h := range []*stack.Host{a, b} {
		if err := h.AwaitAddresses(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func pairOptions(number string, change []func(*stack.HostOptions)) stack.HostOptions {
	opts := stack.HostOptions{Addresses: []netip.Prefix{
		netip.MustParsePrefix("10.0.0." + number + "/24"),
		netip.MustParsePrefix("fd00::" + number + "/64"),
	}, DADInterval: time.Millisecond}
	for _, f := range change {
		f(&opts)
	}
	return opts
}

// checkGoroutines fails the test if, after its other cleanups, there are
// goroutines that were not there before.
func checkGoroutines(t testing.TB) {
	before := goroutines()
	t.Cleanup(func() {
		for end := time.Now().Add(patience); time.Now().Before(end); runtime.Gosched() {
			if len(extra(before, goroutines())) == 0 {
				return
			}
		}
		t.Errorf("goroutines left:\n%s", strings.Join(extra(before, goroutines()), "\n\n"))
	})
}

// goroutines returns the stack of each goroutine, by its number.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	all := make(map[string]string)
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		number, _, _ := strings.Cut(g, " [")
		all[number] = g
	}
	return all
}

func extra(before, after map[string]string) (list []string) {
	for number, g := range after {
		if _, ok := before[number]; !ok && !strings.Contains(g, "testing.") {
			list = append(list, g)
		}
	}
	return list
}
