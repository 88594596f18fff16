package bonding_test

import (
	"net/netip"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// flows are frames of the bond's host to 16 destinations.
func (r *rig) flows(change func(*linktest.Flow), frame func(linktest.Flow) []byte) [][]byte {
	frames := make([][]byte, 16)
	for i := range frames {
		f := r.toPeer(i + 1)
		if change != nil {
			change(&f)
		}
		frames[i] = frame(f)
	}
	return frames
}

// What is balanced by its destination, and what stays with the active slave.
func TestALBWhatIsBalanced(t *testing.T) {
	udp := func(f linktest.Flow) []byte { return f.UDP([]byte("data")) }
	six := func(f *linktest.Flow) {
		n := f.Dst.Addr().As4()[3]
		f.Src = netip.AddrPortFrom(netip.MustParseAddr("fd00::1"), 7)
		f.Dst = netip.AddrPortFrom(netip.AddrFrom16([16]byte{0: 0xfd, 15: n}), 7)
	}
	icmp6 := func(typ byte) func(linktest.Flow) []byte {
		return func(f linktest.Flow) []byte { return f.IP(58, []byte{typ, 0, 0, 0, 0, 0, 0, 0}) }
	}
	for _, c := range []struct {
		name     string
		balanced bool
		change   func(*linktest.Flow)
		frame    func(linktest.Flow) []byte
	}{
		{"IPv4", true, nil, udp},
		{"IPv4 to a group's address", true, func(f *linktest.Flow) { f.DstMAC = "\x01\x00\x5e\x00\x00\x01" }, udp},
		{"IPv4 to everybody's MAC", false, func(f *linktest.Flow) { f.DstMAC = header.EthernetBroadcastAddress }, udp},
		{"IPv4 to everybody", false, func(f *linktest.Flow) {
			f.Dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), 7)
		}, udp},
		{"IGMP", false, nil, func(f linktest.Flow) []byte { return f.IP(2, make([]byte, 8)) }},
		{"tagged IPv4", true, nil, func(f linktest.Flow) []byte { return linktest.VLAN(udp(f), 0x8100, 5) }},
		{"IPv6", true, six, udp},
		{"IPv6 to all nodes", false, func(f *linktest.Flow) { six(f); f.DstMAC = "\x33\x33\x00\x00\x00\x01" }, udp},
		{"IPv6 without a source", false, func(f *linktest.Flow) {
			six(f)
			f.Src = netip.AddrPortFrom(netip.IPv6Unspecified(), 7)
		}, udp},
		{"ICMPv6 echo", true, six, icmp6(128)},
		{"neighbour solicitation", false, six, icmp6(135)},
		{"neighbour advertisement", false, six, icmp6(136)},
		{"another protocol", false, nil, func(f linktest.Flow) []byte { return linktest.Ethernet(f.DstMAC, f.SrcMAC, 0x88cc, make([]byte, 40)) }},
		{"a cut header", false, nil, func(f linktest.Flow) []byte { return udp(f)[:30] }},
	} {
		for _, static := range []bool{false, true} {
			r := newRig(t, bonding.Options{Mode: bonding.BalanceALB, StaticTLB: static, LPInterval: time.Hour}, 2)
			frames := r.flows(c.change, c.frame)
			linktest.Write(r, frames...)
			for _, f := range frames { // and one by one
				linktest.Write(r, f)
			}
			n := r.sent("eth0", "eth1")
			if n[0]+n[1] != 2*len(frames) || (n[1] > 0) != c.balanced {
				t.Errorf("%s, static %v: %v frames", c.name, static, n)
			}
		}
	}
}

// Packets of a list go out in their order, ARP among them.
func TestALBListKeepsOrder(t *testing.T) {
	r := newALB(t, 2)
	r.replies(1, 2)
	var frames [][]byte
	for i := range 4 {
		f := r.toPeer(1 + i%2)
		frames = append(frames, f.UDP([]byte{byte(i)}), f.ARPReply())
	}
	if n, err := linktest.Write(r, frames...); n != 8 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n := r.sent("eth0", "eth1"); n[0]+n[1] != 8 || n[0] == 0 || n[1] == 0 {
		t.Errorf("%v frames", n)
	}
}

// Without a link that is up everything is dropped and counted.
func TestALBNoSlave(t *testing.T) {
	r := newALB(t, 2)
	r.carrier("eth0", false)
	r.carrier("eth1", false)
	before := r.drops("tx_no_slave")
	linktest.Write(r, r.toPeer(1).UDP(nil), r.toPeer(1).ARPReply(), r.toPeer(1).ARPRequest())
	if n := r.drops("tx_no_slave") - before; n != 3 {
		t.Errorf("%d dropped", n)
	}
}

func albList(r *rig) (list stack.PacketBufferList) {
	for _, f := range r.flows(nil, func(f linktest.Flow) []byte { return f.UDP(make([]byte, 1000)) }) {
		list.PushBack(linktest.Packet(f))
	}
	return list
}

// Sending allocates nothing, and neither does receiving.
func TestALBAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	r := newALBNull(t)
	list := albList(r)
	defer list.Reset()
	if n := testing.AllocsPerRun(200, func() { r.WritePackets(list) }); n > 0 {
		t.Errorf("%v allocations for a list of %d", n, list.Len())
	}
}

// newALBNull makes a bond of two links that forget what they are given.
func newALBNull(tb testing.TB) *rig {
	r := newRig(tb, bonding.Options{Mode: bonding.BalanceALB, LPInterval: time.Hour}, 0)
	for _, name := range []string{"eth0", "eth1"} {
		l := linktest.NewNull(linktest.NullOptions{Address: macOf(name)})
		if err := r.Enslave(name, l, bonding.SlaveOptions{}); err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

func BenchmarkWriteALB(b *testing.B) {
	r := newALBNull(b)
	list := albList(r)
	defer list.Reset()
	b.ReportAllocs()
	for b.Loop() {
		r.WritePackets(list)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*list.Len()), "ns/packet")
}

func BenchmarkReceiveARPInALB(b *testing.B) {
	r := newALB(b, 2)
	r.Attach(&linktest.Counter{})
	f := albPeer(11)
	f.DstMAC = r.LinkAddress()
	frame := f.ARPReply()
	b.ReportAllocs()
	for b.Loop() {
		r.links["eth0"].Inject(frame)
	}
}
