package vnet

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Partial reports whether the checksum of a TCP or UDP segment in a frame is
// partial: only the sum of the pseudo-header, as a kernel leaves it for a device
// to complete. A device that carries no bits, as one of a veth pair, never does,
// and by AF_XDP nothing else says so. One wrong checksum in 65,536 looks the same.
//
// The options say so to those who send the frame on; their L3HdrLen counts from
// behind an Ethernet header of 14 bytes, so it includes VLAN tags.
func Partial(frame []byte) (gso stack.GSO, partial bool) {
	protocol, at := networkHeader(frame)
	t := segment{frame: frame}
	switch protocol {
	case header.IPv4ProtocolNumber:
		t.findIPv4(at)
	case header.IPv6ProtocolNumber:
		t.findIPv6(at)
	}
	offset := 0
	switch t.protocol {
	case header.TCPProtocolNumber:
		offset = header.TCPChecksumOffset
	case header.UDPProtocolNumber:
		offset = 6
	default:
		return stack.GSO{}, false
	}
	if t.end > len(frame) || t.start+offset+2 > t.end || binary.BigEndian.Uint16(frame[t.start+offset:]) != t.pseudoSum() {
		return stack.GSO{}, false
	}
	return stack.GSO{
		NeedsCsum: true, CsumOffset: uint16(offset), L3HdrLen: uint16(t.start - header.EthernetMinimumSize),
	}, true
}

// segment is where in a frame a segment is. protocol is 0 where there is none.
type segment struct {
	frame      []byte
	protocol   tcpip.TransportProtocolNumber
	src, dst   []byte
	start, end int
}

// findIPv4 finds the segment of an IPv4 datagram that is no fragment.
func (t *segment) findIPv4(at int) {
	ip := header.IPv4(t.frame[at:])
	if len(ip) < header.IPv4MinimumSize || ip.More() || ip.FragmentOffset() != 0 {
		return
	}
	headerLen := int(ip.HeaderLength())
	if headerLen < header.IPv4MinimumSize || int(ip.TotalLength()) < headerLen {
		return
	}
	t.protocol = ip.TransportProtocol()
	t.src, t.dst = ip.SourceAddressSlice(), ip.DestinationAddressSlice()
	t.start, t.end = at+headerLen, at+int(ip.TotalLength())
}

// findIPv6 finds the segment of an IPv6 datagram without extension headers.
func (t *segment) findIPv6(at int) {
	ip := header.IPv6(t.frame[at:])
	if len(ip) < header.IPv6MinimumSize {
		return
	}
	t.protocol = tcpip.TransportProtocolNumber(ip.NextHeader())
	t.src, t.dst = ip.SourceAddressSlice(), ip.DestinationAddressSlice()
	t.start = at + header.IPv6MinimumSize
	t.end = t.start + int(ip.PayloadLength())
}

// pseudoSum is the sum of the pseudo-header (RFC 9293, section 3.1).
func (t *segment) pseudoSum() uint16 {
	sum := checksum.Checksum(t.src, uint16(t.protocol))
	return checksum.Combine(checksum.Checksum(t.dst, sum), uint16(t.end-t.start))
}

// Complete makes a whole checksum of the partial one of a frame whose link
// header has linkLen bytes, as options with NeedsCsum describe it. It is false,
// and the frame unchanged, where they do not fit the frame.
func Complete(frame []byte, linkLen int, gso stack.GSO) bool {
	start := linkLen + int(gso.L3HdrLen)
	at := start + int(gso.CsumOffset)
	if start > len(frame) || at+2 > len(frame) {
		return false
	}
	sum := ^checksum.Checksum(frame[start:], 0)
	if sum == 0 {
		sum = 0xffff // the same number; in UDP 0 would mean that there is none
	}
	binary.BigEndian.PutUint16(frame[at:], sum)
	return true
}
