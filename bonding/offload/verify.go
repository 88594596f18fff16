package offload

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Verdict is what Verify finds.
type Verdict uint8

const (
	// Unchecked: no checksum of the transport layer could be, or had to be,
	// checked. The IPv4 header is right if it is there. netstack rejects, or
	// checks by itself, what is wrong with such a packet, except for
	// fragments: a packet put together from them counts as checked there.
	Unchecked Verdict = iota
	// Good: all checksums are right.
	Good
	// Bad: a checksum is wrong, and the packet must be dropped.
	Bad
)

// Verify checks the checksums of a received packet whose link header is
// consumed and whose network header is still in its Data. proto is the packet's
// EtherType. It changes nothing in pkt, allocates nothing, and takes any bytes,
// spread over any views.
//
// Checked are the header checksum of IPv4, and the checksums of TCP and UDP
// over IPv4 and IPv6 (behind at most 16 extension headers). Bytes behind the
// length that the IP header tells, which Ethernet adds to short frames, do not
// count.
//
// Left unchecked are: protocols other than IP; protocols other than TCP and
// UDP (netstack checks ICMP and IGMP itself whatever the link claims);
// fragments; UDP over IPv4 without a checksum (RFC 768); packets that are cut
// short or whose lengths disagree. UDP over IPv6 without a checksum is bad (RFC
// 8200, section 8.1).
func Verify(proto tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) Verdict {
	switch proto {
	case header.IPv4ProtocolNumber:
		return verifyIPv4(dataOf(pkt))
	case header.IPv6ProtocolNumber:
		return verifyIPv6(dataOf(pkt))
	case typeVLAN, typeService:
		return verifyTagged(dataOf(pkt))
	default:
		return Unchecked
	}
}

// maxVerifiedTags bounds the tags that are looked behind: more than a receiver
// strips.
const maxVerifiedTags = 32

// verifyTagged checks data that begin within a VLAN tag, behind its protocol.
func verifyTagged(data span) Verdict {
	for range maxVerifiedTags {
		var room [tagSize]byte
		if data.size < tagSize {
			return Unchecked
		}
		proto := binary.BigEndian.Uint16(data.head(tagSize, room[:])[2:])
		data = data.from(tagSize)
		switch {
		case proto == typeVLAN || proto == typeService:
		case tcpip.NetworkProtocolNumber(proto) == header.IPv4ProtocolNumber:
			return verifyIPv4(data)
		case tcpip.NetworkProtocolNumber(proto) == header.IPv6ProtocolNumber:
			return verifyIPv6(data)
		default:
			return Unchecked
		}
	}
	return Unchecked
}

func verifyIPv4(data span) Verdict {
	var room [header.IPv4MaximumHeaderSize]byte
	if data.size < header.IPv4MinimumSize {
		return Unchecked
	}
	ip := header.IPv4(data.head(header.IPv4MinimumSize, room[:]))
	n, total := int(ip.HeaderLength()), int(ip.TotalLength())
	if ip[0]>>4 != header.IPv4Version || n < header.IPv4MinimumSize || n > total || total > data.size {
		return Unchecked
	}
	ip = data.head(n, room[:])
	if !ip.IsChecksumValid() {
		return Bad
	}
	if ip.More() || ip.FragmentOffset() != 0 {
		return Unchecked
	}
	return verifyTransport(data.from(n), total-n, ip.Protocol(), ip[12:20])
}

func verifyIPv6(data span) Verdict {
	var room [header.IPv6MinimumSize]byte
	if data.size < header.IPv6MinimumSize {
		return Unchecked
	}
	ip := header.IPv6(data.head(header.IPv6MinimumSize, room[:]))
	rest := data.from(header.IPv6MinimumSize)
	length := int(ip.PayloadLength())
	if ip[0]>>4 != header.IPv6Version || length > rest.size {
		return Unchecked
	}
	proto, n, ok := rest.extensions(ip.NextHeader())
	if !ok || n > length {
		return Unchecked
	}
	return verifyTransport(rest.from(n), length-n, proto, ip[8:40])
}

// verifyTransport checks the first n bytes of data, a packet of the transport
// protocol proto, between the two addresses.
func verifyTransport(data span, n int, proto uint8, addresses []byte) Verdict {
	switch tcpip.TransportProtocolNumber(proto) {
	case header.TCPProtocolNumber:
		if n < header.TCPMinimumSize {
			return Unchecked
		}
	case header.UDPProtocolNumber:
		if n < header.UDPMinimumSize {
			return Unchecked
		}
		var room [header.UDPMinimumSize]byte
		udp := data.head(header.UDPMinimumSize, room[:])
		length := int(header.UDP(udp).Length())
		if length < header.UDPMinimumSize || length > n {
			return Unchecked
		}
		if header.UDP(udp).Checksum() == 0 {
			if len(addresses) == 2*header.IPv4AddressSize {
				return Unchecked
			}
			return Bad
		}
		// What lies behind the datagram is not part of it.
		n = length
	default:
		return Unchecked
	}
	sum := checksum.Checksum(addresses, uint16(proto))
	sum = checksum.Combine(sum, uint16(n))
	if data.sum(n, sum) != 0xffff {
		return Bad
	}
	return Good
}
