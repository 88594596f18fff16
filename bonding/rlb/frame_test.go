package rlb

import (
	"bytes"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// nd makes a message of neighbour discovery with one link-layer address.
func nd(typ byte, src, dst, about netip.Addr, etherDst, from MAC, option byte, mac MAC, flags byte) []byte {
	b := append(append([]byte{}, etherDst[:]...), from[:]...)
	b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, icmpv6, 255)
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	at := len(b)
	b = append(b, typ, 0, 0, 0, flags, 0, 0, 0)
	b = append(b, about.AsSlice()...)
	b = append(append(b, option, 1), mac[:]...)
	be.PutUint16(b[at+2:], 0)
	be.PutUint16(b[at+2:], ndSum(b[etherSize:]))
	return b
}

// ndSum is gVisor's checksum of an ICMPv6 packet, whose field is zero.
func ndSum(ip []byte) uint16 {
	h := header.IPv6(ip)
	return header.ICMPv6Checksum(header.ICMPv6ChecksumParams{
		Header: header.ICMPv6(ip[ipv6Size:]), Src: h.SourceAddress(), Dst: h.DestinationAddress()})
}

// sumGood reports whether a frame's ICMPv6 checksum is right.
func sumGood(ip []byte) bool {
	h := header.IPv6(ip)
	pseudo := header.PseudoHeaderChecksum(header.ICMPv6ProtocolNumber, h.SourceAddress(), h.DestinationAddress(), h.PayloadLength())
	return checksum.Checksum(ip[ipv6Size:], pseudo) == 0xffff
}

func TestParseARP(t *testing.T) {
	b := make([]byte, etherSize+arpSize)
	header.Ethernet(b).Encode(&header.EthernetFields{SrcAddr: tcpip.LinkAddress(macA[:]), DstAddr: header.EthernetBroadcastAddress, Type: header.ARPProtocolNumber})
	a := header.ARP(b[etherSize:])
	a.SetIPv4OverEthernet()
	a.SetOp(header.ARPRequest)
	copy(a.HardwareAddressSender(), macA[:])
	copy(a.ProtocolAddressSender(), hostA.AsSlice())
	copy(a.ProtocolAddressTarget(), hostB.AsSlice())
	p, ok := Parse(b)
	want := Packet{Request: true, Group: true, Sender: hostA, SenderMAC: macA, Target: hostB, senderAt: 22}
	if !ok || p != want {
		t.Errorf("Parse = %+v, %v, want %+v", p, ok, want)
	}
	p.SetSender(b, macC)
	if got, _ := Parse(b); got.SenderMAC != macC || !bytes.Equal(a.HardwareAddressSender(), macC[:]) {
		t.Errorf("sender %v", got.SenderMAC)
	}
	a.SetOp(3)
	if _, ok := Parse(b); ok {
		t.Error("operation 3 accepted")
	}
	for n := range b {
		if _, ok := Parse(b[:n]); ok {
			t.Errorf("%d bytes accepted", n)
		}
	}
}

func TestParseND(t *testing.T) {
	peer, group := netip.MustParseAddr("fd00::2"), netip.MustParseAddr("ff02::1:ff00:2")
	for _, c := range []struct {
		name  string
		frame []byte
		want  Packet
	}{
		{"solicitation", nd(135, host6, group, peer, MAC{0x33, 0x33, 0xff, 0, 0, 2}, macA, 1, macB, 0),
			Packet{Request: true, Group: true, Sender: host6, SenderMAC: macB, Target: peer, senderAt: 80, sumAt: 56}},
		{"advertisement", nd(136, host6, peer, host6, clientMAC(1), macA, 2, macB, 0xe0),
			Packet{Sender: host6, SenderMAC: macB, Target: peer, TargetMAC: clientMAC(1), Router: true, senderAt: 80, sumAt: 56}},
		{"without address", nd(136, host6, peer, host6, clientMAC(1), macA, 14, macB, 0x60),
			Packet{Sender: host6, SenderMAC: macA, Target: peer, TargetMAC: clientMAC(1), sumAt: 56}},
	} {
		p, ok := Parse(c.frame)
		if !ok || p != c.want {
			t.Errorf("%s: Parse = %+v, %v, want %+v", c.name, p, ok, c.want)
		}
		if !sumGood(c.frame[etherSize:]) {
			t.Fatalf("%s: checksum of the test's own", c.name)
		}
		for _, mac := range []MAC{macC, {}, broadcast, macB} {
			p.SetSender(c.frame, mac)
			if !sumGood(c.frame[etherSize:]) {
				t.Errorf("%s: checksum with %v", c.name, mac)
			}
		}
		tagged := append(append(append([]byte{}, c.frame[:12]...), 0x81, 0, 0x20, 7), c.frame[12:]...)
		if q, ok := Parse(tagged); !ok || q.Tags != (Tags{{typeVLAN, 7}}) || q.Sender != p.Sender {
			t.Errorf("%s tagged: %+v, %v", c.name, q, ok)
		}
		for n := range etherSize + ipv6Size + ndSize {
			if _, ok := Parse(c.frame[:n]); ok {
				t.Errorf("%s: %d bytes accepted", c.name, n)
			}
		}
		c.frame[21] = 254 // hop limit
		if _, ok := Parse(c.frame); ok {
			t.Errorf("%s: from beyond the link, accepted", c.name)
		}
	}
}

// IPv6 clients are balanced as IPv4 clients are, by advertisements that are
// whole: gVisor finds them good.
func TestBalanceIPv6(t *testing.T) {
	r := newRig(t, 2, 8)
	peers := []netip.Addr{netip.MustParseAddr("fd00::a"), netip.MustParseAddr("fd00::b")}
	for i, peer := range peers {
		frame := nd(136, host6, peer, host6, clientMAC(i), macA, 2, macA, 0xe0)
		p, _ := Parse(frame)
		d := r.Send(&p)
		if d.Slave != i || d.Rewrite != (i == 1) {
			t.Errorf("advertisement to client %d: %+v", i, d)
		}
	}
	told := r.Tick()
	if len(told) != 4 {
		t.Fatalf("%d updates", len(told))
	}
	for _, u := range told {
		ip := header.IPv6(u.Frame[etherSize:])
		icmp := header.ICMPv6(ip[ipv6Size:])
		na := header.NDPNeighborAdvert(icmp.MessageBody())
		p, ok := Parse(u.Frame)
		s := r.slave(u.Slave)
		if !ok || !sumGood(u.Frame[etherSize:]) || !ip.IsValid(len(ip)) || ip.HopLimit() != 255 || icmp.Type() != header.ICMPv6NeighborAdvert ||
			!na.OverrideFlag() || na.SolicitedFlag() || !na.RouterFlag() || p.SenderMAC != s.MAC || p.Sender != host6 || p.TargetMAC != clientMAC(u.Slave) {
			t.Errorf("update by slave %d: %+v, % x", u.Slave, p, u.Frame)
		}
	}
	// A solicitation goes to the client alone, under its slave's address.
	p, _ := Parse(nd(135, host6, peers[1], peers[1], clientMAC(1), macA, 1, macA, 0))
	if d := r.Send(&p); d != (Decision{Slave: 1, MAC: macB, Rewrite: true}) {
		t.Errorf("solicitation: %+v", d)
	}
	a, _ := Parse(nd(136, peers[1], host6, peers[1], macB, clientMAC(1), 2, clientMAC(1), 0x60))
	if r.Receive(&a) || len(r.Tick()) != 0 {
		t.Error("its answer has somebody told")
	}
	// Duplicate address detection is left alone.
	p, _ = Parse(nd(135, netip.IPv6Unspecified(), netip.MustParseAddr("ff02::1:ff00:1"), host6, MAC{0x33, 0x33, 0xff, 0, 0, 1}, macA, 14, macA, 0))
	if d := r.Send(&p); d.Slave != NoSlave {
		t.Errorf("probe: %+v", d)
	}
	r.Forget(host6, MAC{})
}

func FuzzTable(f *testing.F) {
	f.Add(nd(135, host6, netip.MustParseAddr("ff02::1:ff00:2"), netip.MustParseAddr("fd00::2"), broadcast, macA, 1, macB, 0), true)
	f.Add(nd(136, host6, netip.MustParseAddr("fd00::2"), host6, clientMAC(1), macA, 2, macA, 0xe0), false)
	f.Add(append(append(append(broadcast[:6:6], macA[:]...), 0x81, 0, 0, 5, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2), make([]byte, 20)...), true)
	f.Fuzz(func(t *testing.T, frame []byte, send bool) {
		p, ok := Parse(frame)
		if !ok {
			return
		}
		tb := New(4)
		tb.SetLinks(Links{Bond: macA, Slaves: []Slave{{ID: 0, MAC: macA, CanSend: true}, {ID: 1, MAC: p.SenderMAC, CanSend: true}}})
		if send {
			if d := tb.Send(&p); d.Rewrite {
				p.SetSender(frame, d.MAC)
				if q, ok := Parse(frame); !ok || q.SenderMAC != d.MAC {
					t.Errorf("%+v became %+v", p, q)
				}
			}
		}
		tb.Receive(&p)
		for _, u := range tb.Tick() {
			if q, ok := Parse(u.Frame); !ok || q.Request {
				t.Errorf("update % x", u.Frame)
			}
		}
		p.SetSender(frame, macC)
		check(t, tb)
	})
}

func BenchmarkSend(b *testing.B) {
	tb := New(DefaultMaxClients)
	tb.SetLinks(Links{Bond: macA, Slaves: []Slave{{ID: 0, MAC: macA, CanSend: true}, {ID: 1, MAC: macB, CanSend: true}}})
	p := Packet{Sender: hostA, SenderMAC: macA, Target: clientIP(1), TargetMAC: clientMAC(1)}
	b.ReportAllocs()
	for b.Loop() {
		tb.Send(&p)
	}
}

func BenchmarkMark(b *testing.B) {
	var a Activity
	addr := []byte{10, 0, 0, 1}
	b.ReportAllocs()
	for b.Loop() {
		a.Mark(addr)
	}
}
