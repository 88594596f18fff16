package linktest

import (
	"encoding/binary"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// EtherTypes of the frames made here (IEEE 802 numbers).
const (
	EtherTypeIPv4 = 0x0800
	EtherTypeARP  = 0x0806
	EtherTypeVLAN = 0x8100
	EtherTypeIPv6 = 0x86dd
)

// Ethernet returns a frame: an Ethernet header and a payload. It is not padded to
// 60 bytes.
func Ethernet(dst, src tcpip.LinkAddress, etherType uint16, payload []byte) []byte {
	f := make([]byte, header.EthernetMinimumSize, header.EthernetMinimumSize+len(payload))
	header.Ethernet(f).Encode(&header.EthernetFields{
		SrcAddr: src,
		DstAddr: dst,
		Type:    tcpip.NetworkProtocolNumber(etherType),
	})
	return append(f, payload...)
}

// VLAN returns a copy of a frame with a tag inserted after its addresses: IEEE
// 802.1Q with EtherTypeVLAN, or another tpid. tci is the priority (3 bits), DEI (1)
// and VLAN id (12). The frame must have its Ethernet header.
func VLAN(frame []byte, tpid, tci uint16) []byte {
	const addresses = 12
	f := append([]byte{}, frame[:addresses]...)
	f = binary.BigEndian.AppendUint16(f, tpid)
	f = binary.BigEndian.AppendUint16(f, tci)
	return append(f, frame[addresses:]...)
}

// ARPRequest and ARPReply are the operations of ARP (RFC 826).
const (
	ARPRequest = 1
	ARPReply   = 2
)

// ARP returns the 28 bytes of an ARP packet for IPv4 over Ethernet, without the
// Ethernet header. The hardware addresses have six bytes, the others are IPv4.
func ARP(op uint16, senderMAC tcpip.LinkAddress, sender netip.Addr, targetMAC tcpip.LinkAddress, target netip.Addr) []byte {
	p := make([]byte, header.ARPSize)
	a := header.ARP(p)
	a.SetIPv4OverEthernet()
	a.SetOp(header.ARPOp(op))
	copy(a.HardwareAddressSender(), senderMAC)
	copy(a.ProtocolAddressSender(), sender.AsSlice())
	copy(a.HardwareAddressTarget(), targetMAC)
	copy(a.ProtocolAddressTarget(), target.AsSlice())
	return p
}

// IP returns an IPv4 or IPv6 packet, by the kind of the addresses, with a right
// header checksum: no options, hop limit 64, DF set in IPv4. src and dst must be
// of one kind, and payload must fit a packet.
func IP(src, dst netip.Addr, protocol uint8, payload []byte) []byte {
	if src.Is4() {
		p := make([]byte, header.IPv4MinimumSize, header.IPv4MinimumSize+len(payload))
		ip := header.IPv4(p)
		ip.Encode(&header.IPv4Fields{
			TotalLength: uint16(header.IPv4MinimumSize + len(payload)),
			Flags:       header.IPv4FlagDontFragment,
			TTL:         64,
			Protocol:    protocol,
			SrcAddr:     tcpip.AddrFrom4(src.As4()),
			DstAddr:     tcpip.AddrFrom4(dst.As4()),
		})
		ip.SetChecksum(^ip.CalculateChecksum())
		return append(p, payload...)
	}
	p := make([]byte, header.IPv6MinimumSize, header.IPv6MinimumSize+len(payload))
	header.IPv6(p).Encode(&header.IPv6Fields{
		PayloadLength:     uint16(len(payload)),
		TransportProtocol: tcpip.TransportProtocolNumber(protocol),
		HopLimit:          64,
		SrcAddr:           tcpip.AddrFrom16(src.As16()),
		DstAddr:           tcpip.AddrFrom16(dst.As16()),
	})
	return append(p, payload...)
}

// UDP returns a UDP datagram with a right checksum, without the IP header.
func UDP(src, dst netip.AddrPort, payload []byte) []byte {
	p := make([]byte, header.UDPMinimumSize, header.UDPMinimumSize+len(payload))
	u := header.UDP(p)
	u.Encode(&header.UDPFields{
		SrcPort: src.Port(),
		DstPort: dst.Port(),
		Length:  uint16(header.UDPMinimumSize + len(payload)),
	})
	p = append(p, payload...)
	sum := ^checksum.Checksum(p, pseudo(header.UDPProtocolNumber, src.Addr(), dst.Addr(), len(p)))
	if sum == 0 {
		sum = 0xffff // zero would mean that there is none (RFC 768)
	}
	header.UDP(p).SetChecksum(sum)
	return p
}

// Segment is what a TCP segment says.
type Segment struct {
	// Seq and Ack are the sequence and acknowledgement numbers.
	Seq, Ack uint32
	// Flags are the TCP flags, as in package header. Zero is ACK.
	Flags header.TCPFlags
	// Window is the window as it is on the wire. Zero is 65,535.
	Window uint16
	// Options are the bytes of the options, a multiple of four up to 40.
	Options []byte
	// Payload is the data.
	Payload []byte
}

// TCP returns a TCP segment with a right checksum, without the IP header.
func TCP(src, dst netip.AddrPort, s Segment) []byte {
	p := tcpSegment(src, dst, s)
	sum := checksum.Checksum(p, pseudo(header.TCPProtocolNumber, src.Addr(), dst.Addr(), len(p)))
	header.TCP(p).SetChecksum(^sum)
	return p
}

// tcpSegment returns a segment with a checksum of zero.
func tcpSegment(src, dst netip.AddrPort, s Segment) []byte {
	if s.Flags == 0 {
		s.Flags = header.TCPFlagAck
	}
	if s.Window == 0 {
		s.Window = 65535
	}
	size := header.TCPMinimumSize + len(s.Options)
	p := make([]byte, size, size+len(s.Payload))
	header.TCP(p).Encode(&header.TCPFields{
		SrcPort:    src.Port(),
		DstPort:    dst.Port(),
		SeqNum:     s.Seq,
		AckNum:     s.Ack,
		DataOffset: uint8(size),
		Flags:      s.Flags,
		WindowSize: s.Window,
	})
	copy(p[header.TCPMinimumSize:], s.Options)
	return append(p, s.Payload...)
}

// pseudo returns the sum of the pseudo header of a transport packet.
func pseudo(proto tcpip.TransportProtocolNumber, src, dst netip.Addr, size int) uint16 {
	return header.PseudoHeaderChecksum(proto,
		tcpip.AddrFromSlice(src.AsSlice()), tcpip.AddrFromSlice(dst.AsSlice()), uint16(size))
}
