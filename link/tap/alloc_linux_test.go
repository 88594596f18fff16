package tap_test

import (
	"testing"

	"bondstack/link/linktest"
	"bondstack/link/netnstest"
	"bondstack/link/tap"
)

// Sending allocates nothing.
func TestSendingAllocatesNothing(t *testing.T) {
	if tap.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	ns := netnstest.New(t)
	e := newTAP(t, ns, tap.Options{Queues: 2})
	list := linktest.Packets(linktest.Flow4(1).UDP(make([]byte, 1000)), linktest.Flow4(2).UDP(make([]byte, 1000)))
	defer list.Reset()
	if n := testing.AllocsPerRun(200, func() {
		if n, err := e.WritePackets(list); n != 2 || err != nil {
			t.Fatalf("WritePackets = %d, %v", n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
