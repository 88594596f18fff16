package bonding_test

import (
	"fmt"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// watcher returns a bond with a running ARP monitor whose slave delivers to what
// is returned.
func watcher(tb testing.TB, v bonding.ARPValidate, ipv6 bool) (*segment, stack.NetworkDispatcher) {
	tb.Helper()
	o := bonding.Options{Mode: bonding.ActiveBackup, ARPValidate: v}
	if ipv6 {
		o.NSIP6Targets = append(o.NSIP6Targets, target6)
	}
	s := newSegment(tb, o, 0)
	s.Attach(discard{})
	l := &tap{Null: linktest.NewNull(linktest.NullOptions{Address: macOf("eth0")})}
	if err := s.Enslave("eth0", l, bonding.SlaveOptions{}); err != nil {
		tb.Fatal(err)
	}
	return s, l.dispatcher
}

// frames are what a slave may receive, as packets.
func watchedFrames(tb testing.TB, s *segment) map[string]*stack.PacketBuffer {
	f := linktest.Flow4(1)
	f.DstMAC = s.LinkAddress()
	frames := map[string][]byte{
		"ipv4": f.TCP(linktest.Segment{Payload: make([]byte, 1400)}),
		"ipv6": noise("nd"), "answer": reply(probeFrame(macOf("eth0"), ownV4, target1), target1), "arp": noise("arp"),
	}
	packets := map[string]*stack.PacketBuffer{}
	for name, frame := range frames {
		packets[name] = received(frame)
		tb.Cleanup(packets[name].DecRef)
	}
	return packets
}

// Looking for evidence costs no allocation, whatever comes.
func TestARPReceiveDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, v := range []bonding.ARPValidate{bonding.ValidateNone, bonding.ValidateAll, bonding.ValidateFilter} {
		s, d := watcher(t, v, true)
		for name, pkt := range watchedFrames(t, s) {
			if n := testing.AllocsPerRun(500, func() { d.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt) }); n > 0 {
				t.Errorf("%v: %s costs %v allocations", v, name, n)
			}
		}
	}
}

// BenchmarkReceiveWatched is the cost of a frame through the bond's receive
// check while the ARP monitor looks for evidence: off is without it.
func BenchmarkReceiveWatched(b *testing.B) {
	for _, v := range []bonding.ARPValidate{bonding.ValidateNone, bonding.ValidateAll} {
		for _, kind := range []string{"ipv4", "arp", "answer"} {
			b.Run(fmt.Sprintf("%v/%s", v, kind), func(b *testing.B) {
				s, d := watcher(b, v, false)
				pkt := watchedFrames(b, s)[kind]
				b.ReportAllocs()
				for b.Loop() {
					d.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
				}
			})
		}
	}
}

// FuzzARPReceive: any frame may come by any slave at any time.
func FuzzARPReceive(f *testing.F) {
	for _, frame := range [][]byte{noise("arp"), noise("nd"), noise("ip"), reply(probeFrame(macOf("eth0"), ownV4, target1), target1), {}, make([]byte, 14), {12: 0x81, 13: 0, 17: 0}} {
		f.Add(uint8(3), frame)
	}
	f.Fuzz(func(t *testing.T, v uint8, frame []byte) {
		o := bonding.Options{Mode: bonding.ActiveBackup, ARPValidate: bonding.ARPValidate(v % 7)}
		o.ARPIPTargets, o.NSIP6Targets = append(o.ARPIPTargets, target1), append(o.NSIP6Targets, target6)
		s := newSegment(t, o, 2)
		s.routes.owned = nil // nothing is ours but where probes come from
		for range 3 {
			for _, name := range s.names() {
				s.links[name].Inject(frame)
			}
			s.run(150)
		}
	})
}
