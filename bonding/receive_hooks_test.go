package bonding_test

import (
	"net/netip"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/echo"
	"bondstack/bonding/probe"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// hookOptions are bonds in which, together, everything looks into what is
// received.
func hookOptions() []bonding.Options {
	base := bonding.Options{ProbeInterval: 10 * time.Millisecond, RxReorder: bonding.ReorderOn, RxDedup: bonding.DedupOn, RxReorderFlows: 4,
		LinkAddress: "\x02\x00\x00\x00\x00\x01"}
	arp := base
	arp.ARPInterval, arp.MonitorRule = 100*time.Millisecond, bonding.MonitorAny
	arp.ARPIPTargets, arp.NSIP6Targets = []netip.Addr{target1}, []netip.Addr{target6}
	var list []bonding.Options
	for _, mode := range bonding.AvailableModes() {
		o := base
		if mode == bonding.BalanceRR || mode == bonding.BalanceXOR || mode == bonding.Broadcast || mode == bonding.ActiveBackup {
			o = arp
			o.ARPValidate = bonding.ValidateAll
		}
		o.Mode = mode
		o.IPv6ReceiveBalance = mode == bonding.BalanceALB
		list = append(list, o)
	}
	o := arp
	o.Mode, o.ARPValidate = bonding.ActiveBackup, bonding.ValidateFilter
	return append(list, o)
}

// hookFrames are frames that one of those who look into them takes for its own.
func hookFrames(dst tcpip.LinkAddress) [][]byte {
	four, six := linktest.Flow4(1), linktest.Flow6(1)
	four.DstMAC, six.DstMAC = dst, dst
	request := probe.ARPRequest(probe.MAC{2, 0, 0, 0, 1, 1}, target1, ownV4, nil)
	hello := (&echo.PDU{Interval: 10 * time.Millisecond, System: 7, Discriminator: 8, Sequence: 9, Count: 1}).AppendTo(nil)
	segment := four.TCP(linktest.Segment{Seq: 1000, Payload: []byte("some data"), Flags: header.TCPFlagAck})
	frames := [][]byte{
		request,
		answer(probe.ARPRequest(probe.MAC([]byte(dst)), ownV4, target1, nil), probe.Message{Kind: probe.ARP, Source: ownV4}, target1),
		probe.ARPRequest(probe.MAC{2, 0, 0, 0, 1, 1}, target1, ownV4, []probe.Tag{{Protocol: 0x8100, ID: 5}}),
		probe.ARPRequest(probe.MAC{2, 0, 0, 0, 1, 1}, target1, ownV4, []probe.Tag{{Protocol: 0x88a8, ID: 5}, {Protocol: 0x8100, ID: 6}}),
		probe.Solicitation(probe.MAC{2, 0, 0, 0, 1, 1}, target6, ownV6, nil),
		probe.Solicitation(probe.MAC{2, 0, 0, 0, 1, 1}, netip.IPv6Unspecified(), ownV6, []probe.Tag{{Protocol: 0x8100, ID: 5}}),
		linktest.Ethernet(echo.Group, "\x02\x00\x00\x00\x00\x09", uint16(echo.EtherType), hello),
		linktest.Ethernet("\x01\x80\xc2\x00\x00\x02", "\x02\x00\x00\x00\x00\x09", 0x8809, make([]byte, 110)),
		segment,
		four.TCP(linktest.Segment{Seq: 3000, Payload: []byte("ahead"), Flags: header.TCPFlagAck}),
		four.TCP(linktest.Segment{Seq: 1000, Flags: header.TCPFlagSyn}),
		four.TCP(linktest.Segment{Seq: 1<<32 - 1, Payload: []byte("wraps"), Flags: header.TCPFlagAck | header.TCPFlagFin}),
		four.TCP(linktest.Segment{Flags: header.TCPFlagRst}),
		six.TCP(linktest.Segment{Seq: 1000, Payload: []byte("some data"), Flags: header.TCPFlagAck}),
		linktest.VLAN(segment, linktest.EtherTypeVLAN, 7),
		linktest.VLAN(linktest.VLAN(segment, linktest.EtherTypeVLAN, 7), 0x88a8, 8),
		linktest.VLAN(linktest.VLAN(linktest.VLAN(segment, linktest.EtherTypeVLAN, 7), 0x88a8, 8), 0x88a8, 9),
		six.IP(0, append([]byte{6, 0, 0, 0, 0, 0, 0, 0}, linktest.TCP(six.Src, six.Dst, linktest.Segment{Seq: 1})...)),     // hop-by-hop options
		six.IP(43, append([]byte{6, 0, 0, 0, 0, 0, 0, 0}, linktest.TCP(six.Src, six.Dst, linktest.Segment{Seq: 1})...)),    // routing header
		six.IP(44, append([]byte{6, 0, 0, 1, 0, 0, 0, 1}, linktest.TCP(six.Src, six.Dst, linktest.Segment{Seq: 1})...)),    // first fragment
		six.IP(44, append([]byte{58, 0, 0, 1, 0, 0, 0, 1}, []byte{135, 0, 0, 0, 0, 0, 0, 0}...)),                           // fragment of a solicitation
		linktest.Ethernet(header.EthernetBroadcastAddress, dst, linktest.EtherTypeARP, []byte{0, 1, 8, 0, 255, 255, 0, 1}), // lengths that lie
	}
	for _, f := range frames[8:14] {
		fragment := append([]byte{}, f...)
		fragment[20] |= 0x20
		data := append([]byte{}, f...)
		data[14+20+12] = 0xf0 // TCP's header is longer than the segment
		if f[12] == 8 {
			frames = append(frames, fragment, data)
		}
	}
	return frames
}

// receivesHooked gives a bond a frame on each slave, some twice, and checks that
// each is accounted for and that the bond works afterwards.
func receivesHooked(t *testing.T, o bonding.Options, frames ...[]byte) {
	r := newRig(t, o, 3)
	r.UseRoutes(newFakeRoutes())
	r.ms(150)
	if o.Mode == bonding.IEEE8023AD {
		r.ms(4000)
	}
	for _, l := range r.links {
		l.Drain()
	}
	for _, f := range frames {
		for _, name := range []string{"eth0", "eth1", "eth0", "eth2"} {
			r.links[name].Inject(f)
		}
		r.ms(5)
	}
	r.ms(300)
	if st := r.Status().Reorder; st != nil && st.Frames != 0 {
		t.Errorf("%s: %d frames are held after 300 ms", o.Mode, st.Frames)
	}
	for name := range r.links {
		if s := r.slave(name); !s.Usable {
			t.Errorf("%s: %s is not usable", o.Mode, name)
		}
	}
	for range 10 { // nothing that comes without end
		r.ms(10)
		for name, l := range r.links {
			if n := len(l.Drain()); n > 200 {
				t.Errorf("%s: %s has sent %d frames", o.Mode, name, n)
			}
		}
	}
}

// Frames for each of those who look into what is received, whole, cut off at any
// byte, and with any byte changed.
func TestReceiveHooks(t *testing.T) {
	list := hookOptions()
	for i, f := range hookFrames("\x02\x00\x00\x00\x00\x01") {
		for k, o := range list {
			frames := [][]byte{f}
			for n := range f {
				if (n+k)%len(list) == 0 {
					changed := append([]byte{}, f...)
					changed[n] ^= byte(1 + 37*i + k)
					frames = append(frames, f[:n], changed)
				}
			}
			receivesHooked(t, o, frames...)
		}
	}
}

// FuzzReceiveHooks: the same with any bytes.
func FuzzReceiveHooks(f *testing.F) {
	for i, frame := range hookFrames("\x02\x00\x00\x00\x00\x01") {
		for k := range hookOptions() {
			f.Add(uint8(k), frame, frame[:len(frame)*i/30])
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, frame, second []byte) {
		list := hookOptions()
		receivesHooked(t, list[int(kind)%len(list)], frame, second)
	})
}
