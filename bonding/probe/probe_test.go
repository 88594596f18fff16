package probe_test

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"bondstack/bonding/probe"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

var (
	mac  = probe.MAC{0x36, 0x99, 0xae, 0xd6, 0x94, 0xad}
	addr = netip.MustParseAddr
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Requests are, byte for byte, those of Linux.
func TestARPRequest(t *testing.T) {
	for _, tt := range []struct {
		about  string
		sender netip.Addr
		tags   []probe.Tag
		want   string
	}{
		{"with an address", addr("10.1.0.2"), nil,
			"ffffffffffff 3699aed694ad 0806 0001 0800 06 04 0001 3699aed694ad 0a010002 000000000000 0a01000b"},
		{"without an address", netip.Addr{}, nil,
			"ffffffffffff 3699aed694ad 0806 0001 0800 06 04 0001 3699aed694ad 00000000 000000000000 0a01000b"},
		{"with an address of the other family", addr("fd00::1"), nil,
			"ffffffffffff 3699aed694ad 0806 0001 0800 06 04 0001 3699aed694ad 00000000 000000000000 0a01000b"},
		{"in a VLAN in a VLAN", addr("10.1.0.2"), []probe.Tag{{0x88a8, 10}, {0x8100, 4094}},
			"ffffffffffff 3699aed694ad 88a8 000a 8100 0ffe 0806 0001 0800 06 04 0001 3699aed694ad 0a010002 000000000000 0a01000b"},
	} {
		if got, want := hex.EncodeToString(probe.ARPRequest(mac, tt.sender, addr("10.1.0.11"), tt.tags)), hex.EncodeToString(unhex(t, tt.want)); got != want {
			t.Errorf("%s:\n %s, want\n %s", tt.about, got, want)
		}
	}
}

// Solicitations are what gVisor takes for valid ones.
func TestSolicitation(t *testing.T) {
	target := addr("fd00:1::11:2233")
	for _, source := range []netip.Addr{addr("fd00:1::2"), addr("fe80::1"), {}, addr("10.0.0.1")} {
		frame := probe.Solicitation(mac, source, target, nil)
		eth, ip := header.Ethernet(frame), header.IPv6(frame[14:])
		if eth.DestinationAddress() != tcpip.LinkAddress("\x33\x33\xff\x11\x22\x33") || eth.SourceAddress() != tcpip.LinkAddress(mac[:]) || eth.Type() != header.IPv6ProtocolNumber {
			t.Errorf("from %v: Ethernet header %x", source, frame[:14])
		}
		if !ip.IsValid(len(ip)) || ip.HopLimit() != 255 || ip.NextHeader() != uint8(header.ICMPv6ProtocolNumber) || int(ip.PayloadLength()) != len(ip)-40 {
			t.Errorf("from %v: IPv6 header %x", source, ip[:40])
		}
		if got := ip.DestinationAddress(); got != tcpip.AddrFrom16(addr("ff02::1:ff11:2233").As16()) {
			t.Errorf("from %v: to %v", source, got)
		}
		icmp := header.ICMPv6(ip.Payload())
		sum := icmp.Checksum()
		if want := header.ICMPv6Checksum(header.ICMPv6ChecksumParams{Header: icmp, Src: ip.SourceAddress(), Dst: ip.DestinationAddress()}); sum != want {
			t.Errorf("from %v: checksum %#x, want %#x", source, sum, want)
		}
		ns := header.NDPNeighborSolicit(icmp.MessageBody())
		if icmp.Type() != header.ICMPv6NeighborSolicit || ns.TargetAddress() != tcpip.AddrFrom16(target.As16()) {
			t.Errorf("from %v: message %x", source, icmp)
		}
		it, err := ns.Options().Iter(true)
		if err != nil {
			t.Fatal(err)
		}
		option, done, err := it.Next()
		switch ours := source.Is6(); {
		case err != nil:
			t.Errorf("from %v: %v", source, err)
		case ours && (done || option.(header.NDPSourceLinkLayerAddressOption).EthernetAddress() != tcpip.LinkAddress(mac[:])):
			t.Errorf("from %v: option %v", source, option)
		case !ours && !done:
			t.Errorf("without a source there is option %v", option)
		}
	}
}

// Who is asked is found again in what was made, with and without tags.
func TestParseWhatWasMade(t *testing.T) {
	tags := []probe.Tag{{0x8100, 1}, {0x8100, 2}, {0x88a8, 3}, {0x8100, 4}, {0x8100, 5}}
	for n := range len(tags) + 1 {
		for _, frame := range [][]byte{
			probe.ARPRequest(mac, addr("10.1.0.2"), addr("10.1.0.11"), tags[:n]),
			probe.Solicitation(mac, addr("fd00:1::2"), addr("fd00:1::11"), tags[:n]),
		} {
			m, ok := probe.Parse(uint16(frame[12])<<8|uint16(frame[13]), frame[14:])
			if ok != (n <= probe.MaxTags) {
				t.Errorf("%d tags: ok is %t", n, ok)
			}
			if !ok {
				continue
			}
			want := probe.Message{Kind: probe.ARP, Source: addr("10.1.0.2"), Destination: addr("10.1.0.11")}
			if m.Kind == probe.Neighbor {
				want = probe.Message{Kind: probe.Neighbor, Source: addr("fd00:1::2"), Destination: addr("ff02::1:ff00:11")}
			}
			if m != want {
				t.Errorf("%d tags: %+v, want %+v", n, m, want)
			}
			// The part that Peek promises is enough, and no shorter one crashes.
			if len(frame) > 14+probe.Peek {
				if again, ok := probe.Parse(uint16(frame[12])<<8|uint16(frame[13]), frame[14:14+probe.Peek]); !ok || again != m {
					t.Errorf("%d tags: of the first %d bytes %+v, %t", n, probe.Peek, again, ok)
				}
			}
			for cut := range frame[14:] {
				probe.Parse(uint16(frame[12])<<8|uint16(frame[13]), frame[14:14+cut])
			}
		}
	}
}

// What is not ARP for Ethernet and IPv4, nor neighbour discovery from the link
// itself, is nothing.
func TestParseRefuses(t *testing.T) {
	arp := probe.ARPRequest(mac, addr("10.1.0.2"), addr("10.1.0.11"), nil)[14:]
	ns := probe.Solicitation(mac, addr("fd00:1::2"), addr("fd00:1::11"), nil)[14:]
	change := func(p []byte, at int, to byte) []byte {
		p = append([]byte{}, p...)
		p[at] = to
		return p
	}
	for _, tt := range []struct {
		about     string
		etherType uint16
		payload   []byte
	}{
		{"another EtherType", 0x0800, arp},
		{"hardware type", probe.TypeARP, change(arp, 1, 6)},
		{"protocol", probe.TypeARP, change(arp, 2, 0x86)},
		{"hardware length", probe.TypeARP, change(arp, 4, 8)},
		{"protocol length", probe.TypeARP, change(arp, 5, 16)},
		{"cut ARP", probe.TypeARP, arp[:27]},
		{"IP version", probe.TypeIPv6, change(ns, 0, 0x40)},
		{"next header", probe.TypeIPv6, change(ns, 6, 6)},
		{"through a router", probe.TypeIPv6, change(ns, 7, 254)},
		{"router solicitation", probe.TypeIPv6, change(ns, 40, 133)},
		{"redirect", probe.TypeIPv6, change(ns, 40, 137)},
		{"cut ND", probe.TypeIPv6, ns[:40]},
		{"a tag cut short", probe.TypeVLAN, []byte{0, 1, 8}},
	} {
		if m, ok := probe.Parse(tt.etherType, tt.payload); ok {
			t.Errorf("%s: %+v", tt.about, m)
		}
	}
	if m, ok := probe.Parse(probe.TypeARP, change(arp, 7, 2)); !ok || !m.Reply {
		t.Errorf("a reply: %+v, %t", m, ok)
	}
	if _, ok := probe.Parse(probe.TypeIPv6, change(ns, 40, 136)); !ok {
		t.Error("an advertisement is not taken")
	}
}

// Which of a frame's addresses must be the target's, by what the slave is.
func TestWitness(t *testing.T) {
	request := probe.Message{Kind: probe.ARP, Source: addr("10.0.0.1"), Destination: addr("10.0.0.2")}
	reply := request
	reply.Reply = true
	nd := probe.Message{Kind: probe.Neighbor, Source: addr("fd00::1"), Destination: addr("fd00::2")}
	from := func(m probe.Message) [2]netip.Addr { return [2]netip.Addr{m.Source, m.Destination} }
	to := func(m probe.Message) [2]netip.Addr { return [2]netip.Addr{m.Destination, m.Source} }
	none := [2]netip.Addr{}
	for _, tt := range []struct {
		s    probe.Standing
		m    probe.Message
		want [2]netip.Addr
	}{
		{probe.Standing{Active: true}, request, from(request)}, // the opcode is not looked at
		{probe.Standing{Active: true}, reply, from(reply)},
		{probe.Standing{Active: true, Proven: true, Asked: true}, nd, from(nd)},
		{probe.Standing{}, reply, none},
		{probe.Standing{Proven: true}, request, to(request)},
		{probe.Standing{Proven: true, Asked: true}, reply, to(reply)},
		{probe.Standing{Proven: true}, nd, to(nd)},
		{probe.Standing{Asked: true}, request, none},
		{probe.Standing{Asked: true}, reply, from(reply)},
		{probe.Standing{Asked: true}, nd, from(nd)},
		{probe.Standing{Active: true}, probe.Message{Kind: probe.ARP, Source: addr("0.0.0.0"), Destination: addr("10.0.0.2")}, none},
		{probe.Standing{Active: true}, probe.Message{Kind: probe.Neighbor, Source: addr("::"), Destination: addr("fd00::2")}, none},
	} {
		target, ours, ok := tt.m.Witness(tt.s)
		if ok != (tt.want != none) || ok && (target != tt.want[0] || ours != tt.want[1]) {
			t.Errorf("%+v of %+v: target %v, ours %v, %t, want %v", tt.m, tt.s, target, ours, ok, tt.want)
		}
	}
}

// The groups of IPv6 targets stand for them, and the families keep apart.
func TestSlot(t *testing.T) {
	targets := probe.Targets{V4: []netip.Addr{addr("10.0.0.1"), addr("10.0.0.2")}, V6: []netip.Addr{addr("fd00::1"), addr("fd00::2")}}
	for _, tt := range []struct {
		a    string
		want int
	}{
		{"10.0.0.1", 0}, {"10.0.0.2", 1}, {"10.0.0.3", -1}, {"fd00::1", 16}, {"fd00::2", 17}, {"fd00::3", -1},
		{"ff02::1:ff00:2", 17}, {"ff02::1:ff00:3", -1}, {"ff02::1", -1}, {"::ffff:10.0.0.1", -1}, {"::", -1}, {"0.0.0.0", -1},
	} {
		slot, ok := targets.Slot(addr(tt.a))
		if !ok {
			slot = -1
		}
		if slot != tt.want {
			t.Errorf("Slot(%s) = %d, want %d", tt.a, slot, tt.want)
		}
	}
}

// Reading costs no allocation.
func TestParseAllocatesNothing(t *testing.T) {
	frame := probe.Solicitation(mac, addr("fd00:1::2"), addr("fd00:1::11"), []probe.Tag{{0x8100, 1}})[14:]
	targets := probe.Targets{V6: []netip.Addr{addr("fd00:1::11")}}
	if n := testing.AllocsPerRun(100, func() {
		m, _ := probe.Parse(probe.TypeVLAN, frame)
		target, _, _ := m.Witness(probe.Standing{Proven: true})
		if _, ok := targets.Slot(target); !ok {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzParse: whatever is received is read without a panic; what is taken is
// taken again from what Peek keeps, and says of a message made from it the same.
func FuzzParse(f *testing.F) {
	f.Add(uint16(probe.TypeARP), probe.ARPRequest(mac, addr("10.1.0.2"), addr("10.1.0.11"), nil)[14:])
	f.Add(uint16(probe.TypeIPv6), probe.Solicitation(mac, addr("fd00:1::2"), addr("fd00:1::11"), nil)[14:])
	f.Add(uint16(probe.TypeVLAN), probe.ARPRequest(mac, addr("10.1.0.2"), addr("10.1.0.11"), []probe.Tag{{0x8100, 1}, {0x8100, 2}})[18:])
	f.Add(uint16(probe.TypeQinQ), []byte{0, 1})
	f.Fuzz(func(t *testing.T, etherType uint16, payload []byte) {
		m, ok := probe.Parse(etherType, payload)
		if !ok {
			if m != (probe.Message{}) {
				t.Errorf("refused, but %+v", m)
			}
			return
		}
		if again, ok := probe.Parse(etherType, payload[:min(len(payload), probe.Peek)]); !ok || again != m {
			t.Errorf("the first %d bytes say %+v, all %+v", probe.Peek, again, m)
		}
		switch m.Kind {
		case probe.ARP:
			if !m.Source.Is4() || !m.Destination.Is4() {
				t.Errorf("%+v", m)
			}
			made := probe.ARPRequest(mac, m.Source, m.Destination, nil)
			if again, ok := probe.Parse(probe.TypeARP, made[14:]); !ok || again.Source != m.Source || again.Destination != m.Destination {
				t.Errorf("made of %+v: %+v", m, again)
			}
		case probe.Neighbor:
			if !m.Source.Is6() || !m.Destination.Is6() || m.Reply {
				t.Errorf("%+v", m)
			}
		default:
			t.Errorf("kind %d", m.Kind)
		}
		for _, s := range []probe.Standing{{Active: true}, {Proven: true}, {Asked: true}} {
			m.Witness(s)
		}
	})
}
