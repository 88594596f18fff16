package gro

import (
	"bytes"
	"encoding/binary"

	"bondstack/link"
	"bondstack/link/internal/kernel"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// kind is what a frame is to the segments that came before it.
type kind uint8

const (
	// unrelated: it is not TCP, so its order against them does not matter.
	unrelated kind = iota
	// unknown: it may be of any connection.
	unknown
	// apart: it is of a connection, and stays by itself.
	apart
	// joinable: it can be joined.
	joinable
)

// maxTags is how many VLAN tags a frame may have.
const maxTags = 2

// tagSize is the size of a VLAN tag in bytes.
const tagSize = 4

const (
	// flagsKept are the TCP flags that a joinable segment may have: ACK, which
	// it must have, PSH, and ECE.
	flagsKept = header.TCPFlagAck | header.TCPFlagPsh | flagECE
	// flagECE is "congestion experienced, echoed" (RFC 3168), which package
	// header does not name.
	flagECE header.TCPFlags = 0x40
	// reservedBits are those of the TCP header's 13th byte beside its length.
	reservedBits = 0x0f
)

// otherZero is the checksum that counts as 0 and that nobody computes: it would not
// come back.
const otherZero = 0xffff

// Offsets in headers that package header does not name.
const (
	ipv4IDOffset    = 4
	ipv4FlagsOffset = 6
	ipv4SumOffset   = 10
	ipv4AddrOffset  = 12
	ipv6AddrOffset  = 8

	tcpAckOffset     = 8
	tcpWindowOffset  = 14
	tcpUrgentOffset  = 18
	tcpOptionsOffset = 20
)

// segment is a frame with one TCP segment. It reads the frame in place.
type segment struct {
	pkt *stack.PacketBuffer
	// head is what of the frame is in one piece. The headers are.
	head []byte
	// net, tcp and data are where in head the IP header, the TCP header and
	// the payload begin.
	net, tcp, data int
	// payload is how many bytes of payload there are.
	payload int
	v6      bool
}

// look says what a frame is.
func look(pkt *stack.PacketBuffer) (s segment, k kind) {
	s = segment{pkt: pkt, head: kernel.FirstPiece(pkt)}
	s.net = header.EthernetMinimumSize
	for range maxTags + 1 {
		if len(s.head) < s.net {
			return s, unknown
		}
		switch t := binary.BigEndian.Uint16(s.head[s.net-2:]); t {
		case link.TagProtocolQ, link.TagProtocolAD:
			s.net += tagSize
		case uint16(header.IPv4ProtocolNumber):
			return s, s.lookIPv4()
		case uint16(header.IPv6ProtocolNumber):
			return s, s.lookIPv6()
		default:
			return s, unrelated
		}
	}
	return s, unknown
}

func (s *segment) lookIPv4() kind {
	ip := header.IPv4(s.head[s.net:])
	if len(ip) < header.IPv4MinimumSize || ip[0]>>4 != header.IPv4Version {
		return unknown
	}
	if ip.Protocol() != uint8(header.TCPProtocolNumber) {
		return unrelated
	}
	n := int(ip.HeaderLength())
	if n < header.IPv4MinimumSize || ip.More() || ip.FragmentOffset() != 0 {
		return unknown
	}
	k := s.lookTCP(n, int(ip.TotalLength()))
	if k == joinable && (n != header.IPv4MinimumSize || ip.Checksum() == otherZero || checksum.Checksum(ip[:n], 0) != 0xffff) {
		return apart
	}
	return k
}

func (s *segment) lookIPv6() kind {
	s.v6 = true
	ip := header.IPv6(s.head[s.net:])
	if len(ip) < header.IPv6MinimumSize || ip[0]>>4 != header.IPv6Version {
		return unknown
	}
	switch header.IPv6ExtensionHeaderIdentifier(ip.NextHeader()) {
	case header.IPv6ExtensionHeaderIdentifier(header.TCPProtocolNumber):
		return s.lookTCP(header.IPv6MinimumSize, header.IPv6MinimumSize+int(ip.PayloadLength()))
	case header.IPv6ExtensionHeaderIdentifier(header.UDPProtocolNumber),
		header.IPv6ExtensionHeaderIdentifier(header.ICMPv6ProtocolNumber):
		return unrelated
	}
	return unknown // TCP may be behind extension headers
}

// lookTCP looks at the segment behind an IP header of a size, in a packet of a
// size.
func (s *segment) lookTCP(ip, packet int) kind {
	s.tcp = s.net + ip
	if len(s.head) < s.tcp+header.TCPMinimumSize {
		return unknown
	}
	tcp := header.TCP(s.head[s.tcp:])
	s.data = s.tcp + int(tcp.DataOffset())
	s.payload = s.net + packet - s.data
	switch flags := tcp.Flags(); {
	case s.data < s.tcp+header.TCPMinimumSize || s.data > len(s.head),
		s.payload <= 0 || s.net+packet != s.pkt.Size(),
		flags&header.TCPFlagAck == 0 || flags&^flagsKept != 0 || tcp[header.TCPDataOffset]&reservedBits != 0,
		s.pkt.GSOOptions.Type != stack.GSONone || !s.summed():
		return apart
	}
	return joinable
}

// summed reports whether the TCP checksum is right, or partial.
func (s *segment) summed() bool {
	gso := &s.pkt.GSOOptions
	field, pseudo := s.tcpHeader().Checksum(), s.pseudo(s.data-s.tcp+s.payload)
	switch {
	case gso.NeedsCsum:
		return int(gso.CsumOffset) == header.TCPChecksumOffset && header.EthernetMinimumSize+int(gso.L3HdrLen) == s.tcp && field == pseudo
	case field == otherZero:
		return false
	case s.pkt.RXChecksumValidated:
		return true
	}
	var sum checksum.Checksumer
	views, skip := s.pkt.AsViewList()
	skip += s.tcp
	for v := views.Front(); v != nil; v = v.Next() {
		if b := v.AsSlice(); skip < len(b) {
			sum.Add(b[skip:])
			skip = 0
		} else {
			skip -= len(b)
		}
	}
	return checksum.Combine(sum.Checksum(), pseudo) == 0xffff
}

// pseudo returns the sum of the pseudo-header of a segment of a size (RFC 9293,
// section 3.1).
func (s *segment) pseudo(size int) uint16 {
	sum := checksum.Checksum(s.addresses(), uint16(header.TCPProtocolNumber))
	return checksum.Combine(sum, uint16(size))
}

// addresses returns the two IP addresses.
func (s *segment) addresses() []byte {
	if s.v6 {
		return s.head[s.net+ipv6AddrOffset : s.net+header.IPv6MinimumSize]
	}
	return s.head[s.net+ipv4AddrOffset : s.net+header.IPv4MinimumSize]
}

// ports returns the two ports.
func (s *segment) ports() []byte { return s.head[s.tcp : s.tcp+4] }

// tcpHeader returns the TCP header.
func (s *segment) tcpHeader() header.TCP { return s.head[s.tcp:s.data] }

// sameConnection reports whether two segments are of one connection.
func (s *segment) sameConnection(other *segment) bool {
	return bytes.Equal(s.ports(), other.ports()) && bytes.Equal(s.addresses(), other.addresses())
}

// sameHeaders reports whether two segments of a connection differ in nothing but
// lengths, sequence number, identification, PSH and checksums.
func (s *segment) sameHeaders(other *segment) bool {
	if s.net != other.net || s.tcp != other.tcp || s.data != other.data || !bytes.Equal(s.head[:s.net], other.head[:s.net]) {
		return false
	}
	a, b := s.head[s.net:s.data], other.head[s.net:s.data]
	if s.v6 {
		// Version, traffic class and flow label; next header and hop limit.
		if !bytes.Equal(a[:4], b[:4]) || !bytes.Equal(a[6:8], b[6:8]) {
			return false
		}
	} else if !bytes.Equal(a[:2], b[:2]) || !bytes.Equal(a[ipv4FlagsOffset:ipv4SumOffset], b[ipv4FlagsOffset:ipv4SumOffset]) {
		return false
	}
	a, b = s.tcpHeader(), other.tcpHeader()
	return header.TCP(a).Flags()&^header.TCPFlagPsh == header.TCP(b).Flags()&^header.TCPFlagPsh &&
		bytes.Equal(a[tcpAckOffset:tcpAckOffset+4], b[tcpAckOffset:tcpAckOffset+4]) &&
		bytes.Equal(a[tcpWindowOffset:tcpWindowOffset+2], b[tcpWindowOffset:tcpWindowOffset+2]) &&
		bytes.Equal(a[tcpUrgentOffset:], b[tcpUrgentOffset:])
}

// id returns the IPv4 identification, 0 for IPv6.
func (s *segment) id() uint16 {
	if s.v6 {
		return 0
	}
	return binary.BigEndian.Uint16(s.head[s.net+ipv4IDOffset:])
}

// pushes reports whether the segment has PSH.
func (s *segment) pushes() bool { return s.tcpHeader().Flags()&header.TCPFlagPsh != 0 }

// protocol is the EtherType of the frame's Ethernet header.
func (s *segment) protocol() tcpip.NetworkProtocolNumber {
	return tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(s.head[header.EthernetMinimumSize-2:]))
}
