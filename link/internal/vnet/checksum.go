package vnet

import (
	"encoding/binary"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Verdict is what the verification of a frame's checksums came to.
type Verdict int

const (
	// Unknown: the frame has no checksum that can be verified by
	// itself.
	Unknown Verdict = iota
	// Good: the frame's checksums are right.
	Good
	// Bad: a checksum is wrong.
	Bad
)

// Where a VLAN tag is in a frame, and its size in bytes.
const (
	tagOffset   = 12
	vlanTagSize = 4
)

// maxTags is how many VLAN tags the verifier looks behind.
const maxTags = 2

// Verify verifies the IPv4 header checksum of a frame and, unless vouched, its
// TCP or UDP checksum. parts are the frame's bytes in order; the headers must
// be in the first part, or they are not looked at. What is malformed is left to
// the stack, which says so better.
func Verify(parts [][]byte, vouched bool) Verdict {
	network, offset := networkHeader(parts[0])
	switch network {
	case header.IPv4ProtocolNumber:
		return verifyIPv4(parts, offset, vouched)
	case header.IPv6ProtocolNumber:
		return verifyIPv6(parts, offset, vouched)
	}
	return Unknown
}

// networkHeader finds the network header behind up to maxTags VLAN tags.
func networkHeader(frame []byte) (tcpip.NetworkProtocolNumber, int) {
	offset := tagOffset
	for range maxTags + 1 {
		if len(frame) < offset+2 {
			break
		}
		switch t := binary.BigEndian.Uint16(frame[offset:]); t {
		case link.TagProtocolQ, link.TagProtocolAD:
			offset += vlanTagSize
		default:
			return tcpip.NetworkProtocolNumber(t), offset + 2
		}
	}
	return 0, 0
}

// verifyIPv4 is Verify for a frame whose IPv4 header is at offset.
func verifyIPv4(parts [][]byte, offset int, vouched bool) Verdict {
	ip := header.IPv4(parts[0][offset:])
	if len(ip) < header.IPv4MinimumSize {
		return Unknown
	}
	headerLen, total := int(ip.HeaderLength()), int(ip.TotalLength())
	if headerLen < header.IPv4MinimumSize || headerLen > len(ip) || total < headerLen {
		return Unknown
	}
	if checksum.Checksum(ip[:headerLen], 0) != 0xffff {
		return Bad
	}
	if ip.More() || ip.FragmentOffset() != 0 {
		return Unknown
	}
	if vouched {
		return Good
	}
	return verifyTransport(parts, transport{
		protocol: ip.TransportProtocol(),
		src:      ip.SourceAddressSlice(),
		dst:      ip.DestinationAddressSlice(),
		start:    offset + headerLen,
		end:      offset + total,
	})
}

// verifyIPv6 is Verify for a frame whose IPv6 header is at offset. Behind
// extension headers that are not in the first part it does not look.
func verifyIPv6(parts [][]byte, offset int, vouched bool) Verdict {
	ip := header.IPv6(parts[0][offset:])
	if len(ip) < header.IPv6MinimumSize {
		return Unknown
	}
	if vouched {
		return Good
	}
	t := transport{
		protocol: tcpip.TransportProtocolNumber(ip.NextHeader()),
		src:      ip.SourceAddressSlice(),
		dst:      ip.DestinationAddressSlice(),
		start:    offset + header.IPv6MinimumSize,
		end:      offset + header.IPv6MinimumSize + int(ip.PayloadLength()),
	}
	for isIPv6Option(t.protocol) {
		if len(parts[0]) < t.start+2 {
			return Unknown
		}
		t.protocol = tcpip.TransportProtocolNumber(parts[0][t.start])
		t.start += 8 * (1 + int(parts[0][t.start+1]))
	}
	return verifyTransport(parts, t)
}

// isIPv6Option reports whether a next header value is that of an extension
// header behind which the transport header of the same frame follows. A routing
// header is none: with segments left, the checksum covers another address.
func isIPv6Option(p tcpip.TransportProtocolNumber) bool {
	return p == 0 || p == 60 // hop-by-hop and destination options, RFC 8200
}

// transport is where in a frame a TCP or UDP segment is, and what its
// pseudo-header is made of.
type transport struct {
	protocol   tcpip.TransportProtocolNumber
	src, dst   []byte
	start, end int
}

// verifyTransport verifies the checksum of a TCP or UDP segment.
func verifyTransport(parts [][]byte, t transport) Verdict {
	first := parts[0]
	switch t.protocol {
	case header.TCPProtocolNumber:
	case header.UDPProtocolNumber:
		if len(first) < t.start+header.UDPMinimumSize {
			return Unknown
		}
		udp := header.UDP(first[t.start:])
		if udp.Checksum() == 0 && len(t.src) == header.IPv4AddressSize {
			return Good // RFC 768: the sender made none
		}
		n := int(udp.Length())
		if n < header.UDPMinimumSize || t.start+n > t.end {
			return Unknown
		}
		t.end = t.start + n
	default:
		return Unknown
	}
	sum, ok := sumRange(parts, t.start, t.end)
	if !ok {
		return Unknown
	}
	sum = checksum.Combine(sum, checksum.Checksum(t.src, 0))
	sum = checksum.Combine(sum, checksum.Checksum(t.dst, 0))
	sum = checksum.Combine(sum, uint16(t.protocol))
	sum = checksum.Combine(sum, uint16(t.end-t.start))
	if sum != 0xffff {
		return Bad
	}
	return Good
}

// sumRange sums the bytes from start to end of a frame. It is false where the
// frame is shorter or the range empty.
func sumRange(parts [][]byte, start, end int) (uint16, bool) {
	if start >= end {
		return 0, false
	}
	var sum checksum.Checksumer
	at := 0
	for _, p := range parts {
		from, to := max(start-at, 0), min(end-at, len(p))
		if from < to {
			sum.Add(p[from:to])
		}
		at += len(p)
	}
	return sum.Checksum(), at >= end
}
