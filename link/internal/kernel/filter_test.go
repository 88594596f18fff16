package kernel

import (
	"sync"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
)

func TestFilterClassify(t *testing.T) {
	var f AddressFilter
	own, more, other := MAC{2, 1}, MAC{2, 2}, MAC{2, 3}
	f.SetOwn(own)
	f.change(func(s *FilterState) { s.more = map[MAC]struct{}{more: {}} })
	for _, promiscuous := range []bool{false, true} {
		f.change(func(s *FilterState) { s.promiscuous = promiscuous })
		for _, c := range []struct {
			dst  MAC
			kind tcpip.PacketType
			pass bool
		}{
			{own, tcpip.PacketHost, true},
			{more, tcpip.PacketHost, true},
			{other, tcpip.PacketOtherHost, promiscuous},
			{Broadcast, tcpip.PacketBroadcast, true},
			{MAC{1, 0, 0x5e}, tcpip.PacketMulticast, true},
		} {
			if kind, pass := f.state.Load().Classify(c.dst); kind != c.kind || pass != c.pass {
				t.Errorf("promiscuous %v: Classify(%x) = %v, %v, want %v, %v", promiscuous, c.dst, kind, pass, c.kind, c.pass)
			}
		}
	}
}

// TestFilterChangesWhileRead is for the race detector.
func TestFilterChangesWhileRead(t *testing.T) {
	var f AddressFilter
	f.SetOwn(MAC{2})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 500 {
				f.change(func(s *FilterState) {
					if s.more == nil {
						s.more = map[MAC]struct{}{}
					}
					s.more[MAC{4, byte(i), byte(n)}] = struct{}{}
				})
				f.state.Load().Classify(MAC{4, byte(i), byte(n)})
			}
		})
	}
	wg.Wait()
	if n := len(f.state.Load().more); n != 4*256 {
		t.Errorf("%d addresses, want %d", n, 4*256)
	}
}
