package stack_test

import (
	"testing"

	"bondstack/link/wire"
)

// A Read of what is there already, and a Write that fits, allocate nothing of
// the host's own: what there is is gVisor's segment.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	left, right := newWire(t, wire.Options{})
	a := newHost(t, left, pairOptions("1", nil))
	c, s := connect(t, a, mustListen(t, newHost(t, right, pairOptions("2", nil)), "10.0.0.2:80"))
	buf := make([]byte, 1<<20)
	if _, err := s.Write(buf[:100_000]); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	for range 1000 { // warm up
		c.Read(one)
	}
	if got := testing.AllocsPerRun(1000, func() { c.Read(one) }); got > 0 {
		t.Errorf("Read() allocates %v times, want 0", got)
	}
}
