package linktest

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Flow is who talks to whom. Its methods return whole frames with right
// checksums.
type Flow struct {
	// SrcMAC and DstMAC are the MAC addresses.
	SrcMAC, DstMAC tcpip.LinkAddress
	// Src and Dst are the IP addresses, both IPv4 or both IPv6, and the ports.
	Src, Dst netip.AddrPort
}

// Flow4 returns the IPv4 flow number n. Flows with other numbers, up to 65,535,
// have other addresses, ports and MAC addresses at both ends; 0 is
// 10.1.0.0:1024 to 10.2.0.0:80.
func Flow4(n int) Flow {
	hi, lo := byte(n>>8), byte(n)
	return Flow{
		SrcMAC: tcpip.LinkAddress([]byte{2, 0, 0, 1, hi, lo}),
		DstMAC: tcpip.LinkAddress([]byte{2, 0, 0, 2, hi, lo}),
		Src:    netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, hi, lo}), uint16(1024+n)),
		Dst:    netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, hi, lo}), uint16(80+n)),
	}
}

// Flow6 returns the IPv6 flow number n, with the MAC addresses and ports of
// Flow4(n) and the addresses fd00:1::n and fd00:2::n.
func Flow6(n int) Flow {
	f := Flow4(n)
	f.Src = netip.AddrPortFrom(address6(1, n), f.Src.Port())
	f.Dst = netip.AddrPortFrom(address6(2, n), f.Dst.Port())
	return f
}

func address6(net byte, n int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 3: net, 14: byte(n >> 8), 15: byte(n)})
}

// Reverse returns the flow of the answers.
func (f Flow) Reverse() Flow {
	return Flow{SrcMAC: f.DstMAC, DstMAC: f.SrcMAC, Src: f.Dst, Dst: f.Src}
}

// etherType returns the type of the flow's frames.
func (f Flow) etherType() uint16 {
	if f.Src.Addr().Is4() {
		return EtherTypeIPv4
	}
	return EtherTypeIPv6
}

// IP returns a frame with an IP packet of any protocol.
func (f Flow) IP(protocol uint8, payload []byte) []byte {
	return Ethernet(f.DstMAC, f.SrcMAC, f.etherType(), IP(f.Src.Addr(), f.Dst.Addr(), protocol, payload))
}

// UDP returns a frame with a UDP datagram.
func (f Flow) UDP(payload []byte) []byte {
	return f.IP(uint8(header.UDPProtocolNumber), UDP(f.Src, f.Dst, payload))
}

// TCP returns a frame with a TCP segment. The frame may be longer than an MTU,
// for links with GSO.
func (f Flow) TCP(s Segment) []byte {
	return f.IP(uint8(header.TCPProtocolNumber), TCP(f.Src, f.Dst, s))
}

// ARPRequest returns a broadcast frame that asks for the MAC address of Dst. The
// flow must be IPv4.
func (f Flow) ARPRequest() []byte {
	return Ethernet(header.EthernetBroadcastAddress, f.SrcMAC, EtherTypeARP,
		ARP(ARPRequest, f.SrcMAC, f.Src.Addr(), header.UnspecifiedEthernetAddress, f.Dst.Addr()))
}

// ARPReply returns a frame that tells Dst the MAC address of Src. The flow must be
// IPv4.
func (f Flow) ARPReply() []byte {
	return Ethernet(f.DstMAC, f.SrcMAC, EtherTypeARP,
		ARP(ARPReply, f.SrcMAC, f.Src.Addr(), f.DstMAC, f.Dst.Addr()))
}
