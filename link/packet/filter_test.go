package packet

import (
	"sync"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
)

func TestFilterClassify(t *testing.T) {
	var f addressFilter
	own, more, other := macAddress{2, 1}, macAddress{2, 2}, macAddress{2, 3}
	f.setOwn(own)
	f.change(func(s *filterState) { s.more = map[macAddress]struct{}{more: {}} })
	for _, promiscuous := range []bool{false, true} {
		f.change(func(s *filterState) { s.promiscuous = promiscuous })
		for _, c := range []struct {
			dst  macAddress
			kind tcpip.PacketType
			pass bool
		}{
			{own, tcpip.PacketHost, true},
			{more, tcpip.PacketHost, true},
			{other, tcpip.PacketOtherHost, promiscuous},
			{broadcastAddress, tcpip.PacketBroadcast, true},
			{macAddress{1, 0, 0x5e}, tcpip.PacketMulticast, true},
		} {
			if kind, pass := f.state.Load().classify(c.dst); kind != c.kind || pass != c.pass {
				t.Errorf("promiscuous %v: classify(%x) = %v, %v, want %v, %v", promiscuous, c.dst, kind, pass, c.kind, c.pass)
			}
		}
	}
}

// TestFilterChangesWhileRead is for the race detector.
func TestFilterChangesWhileRead(t *testing.T) {
	var f addressFilter
	f.setOwn(macAddress{2})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 500 {
				f.change(func(s *filterState) {
					if s.more == nil {
						s.more = map[macAddress]struct{}{}
					}
					s.more[macAddress{4, byte(i), byte(n)}] = struct{}{}
				})
				f.state.Load().classify(macAddress{4, byte(i), byte(n)})
			}
		})
	}
	wg.Wait()
	if n := len(f.state.Load().more); n != 4*256 {
		t.Errorf("%d addresses, want %d", n, 4*256)
	}
}
