package sandbox

import (
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

const (
	ours   = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01")
	theirs = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x02")
)

// arp is a frame of another host.
func arp(op header.ARPOp, sender, target string) []byte {
	b := header.ARP(make([]byte, header.ARPSize))
	b.SetIPv4OverEthernet()
	b.SetOp(op)
	copy(b.HardwareAddressSender(), theirs)
	copy(b.ProtocolAddressSender(), netip.MustParseAddr(sender).AsSlice())
	copy(b.ProtocolAddressTarget(), netip.MustParseAddr(target).AsSlice())
	return append(ethernet(ours, theirs, header.ARPProtocolNumber), b...)
}

// ndp is a frame of another host about an address.
func ndp(kind header.ICMPv6Type, from, about string, hops uint8) []byte {
	icmp := header.ICMPv6(make([]byte, header.ICMPv6NeighborAdvertMinimumSize))
	icmp.SetType(kind)
	header.NDPNeighborAdvert(icmp.MessageBody()).SetTargetAddress(tcpip.AddrFrom16(netip.MustParseAddr(about).As16()))
	ip := header.IPv6(make([]byte, header.IPv6MinimumSize))
	ip.Encode(&header.IPv6Fields{PayloadLength: uint16(len(icmp)), TransportProtocol: header.ICMPv6ProtocolNumber, HopLimit: hops,
		SrcAddr: tcpip.AddrFrom16(netip.MustParseAddr(from).As16()), DstAddr: header.IPv6AllNodesMulticastAddress})
	return append(append(ethernet(ours, theirs, header.IPv6ProtocolNumber), ip...), icmp...)
}

// Who answers for an address, speaks from it, or asks for it as we do, claims it.
func TestClaim(t *testing.T) {
	for _, c := range []struct {
		what  string
		frame []byte
		want  string // "" for no claim
	}{
		{"reply", arp(header.ARPReply, "10.0.0.2", "0.0.0.0"), "10.0.0.2"},
		{"request", arp(header.ARPRequest, "10.0.0.2", "10.0.0.9"), "10.0.0.2"},
		{"probe", arp(header.ARPRequest, "0.0.0.0", "10.0.0.2"), "10.0.0.2"},
		{"reply from nobody", arp(header.ARPReply, "0.0.0.0", "10.0.0.2"), ""},
		{"short ARP", arp(header.ARPReply, "10.0.0.2", "0.0.0.0")[:40], ""},
		{"advertisement", ndp(header.ICMPv6NeighborAdvert, "fe80::1", "fd00::2", 255), "fd00::2"},
		{"advertisement from afar", ndp(header.ICMPv6NeighborAdvert, "fe80::1", "fd00::2", 254), ""},
		{"solicitation from nobody", ndp(header.ICMPv6NeighborSolicit, "::", "fd00::2", 255), "fd00::2"},
		{"solicitation", ndp(header.ICMPv6NeighborSolicit, "fe80::1", "fd00::2", 255), ""},
		{"router", ndp(header.ICMPv6RouterAdvert, "fe80::1", "fd00::2", 255), ""},
		{"short NDP", ndp(header.ICMPv6NeighborAdvert, "fe80::1", "fd00::2", 255)[:70], ""},
		{"nothing", nil, ""},
	} {
		got, ok := claim(c.frame)
		if ok != (c.want != "") || ok && (got.Addr != netip.MustParseAddr(c.want) || got.By != theirs) {
			t.Errorf("%s: claim = %+v, %v, want %q", c.what, got, ok, c.want)
		}
	}
}

// Our own probes are claims of ours, whole and with right checksums.
func TestProbe(t *testing.T) {
	for _, text := range []string{"10.0.0.2", "fd00::2"} {
		addr := netip.MustParseAddr(text)
		frame := probe(ours, addr)
		if got, ok := claim(frame); !ok || got.Addr != addr || got.By != ours {
			t.Errorf("%s: claim of the probe = %+v, %v", text, got, ok)
		}
		if !addr.Is6() {
			continue
		}
		ip := header.IPv6(frame[header.EthernetMinimumSize:])
		sum := header.PseudoHeaderChecksum(header.ICMPv6ProtocolNumber, ip.SourceAddress(), ip.DestinationAddress(), ip.PayloadLength())
		if !ip.IsValid(len(ip)) || checksum.Checksum(ip.Payload(), sum) != 0xffff {
			t.Errorf("solicitation %x is not valid", frame)
		}
	}
}

func FuzzClaim(f *testing.F) {
	f.Add(arp(header.ARPReply, "10.0.0.2", "0.0.0.0"))
	f.Add(ndp(header.ICMPv6NeighborAdvert, "fe80::1", "fd00::2", 255))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if got, ok := claim(frame); ok && !got.Addr.IsValid() {
			t.Errorf("claim(%x) = %+v", frame, got)
		}
	})
}
