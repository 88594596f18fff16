package offload

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// maxHeaders is the greatest sum of headers, in bytes: Ethernet with two tags
// (22), IPv6 (40), TCP with all options (60), and 134 for extension headers.
const maxHeaders = 256

// maxTags is the greatest number of VLAN tags in front of the IP header.
const maxTags = 2

// tagSize is the size of a VLAN tag in bytes.
const tagSize = 4

// The EtherTypes of VLAN tags: IEEE 802.1Q (customer) and 802.1ad (service).
const (
	typeVLAN    = 0x8100
	typeService = 0x88a8
)

// headers describes the headers of an outgoing TCP packet. They are read from
// the bytes themselves: GSOOptions.L3HdrLen leaves IPv6 extension headers out.
type headers struct {
	bytes   []byte // all headers, not to be written to
	net     int    // where in bytes the IP header starts
	tcp     int    // where in bytes the TCP header starts
	v6      bool
	payload int    // bytes behind the headers
	pseudo  uint16 // sum of the pseudo-header without its length
}

// parse reads the headers of pkt. room holds them where they are not in one
// piece.
func parse(pkt *stack.PacketBuffer, room *[maxHeaders]byte) (headers, Fault) {
	n := pkt.HeaderSize()
	if n < header.EthernetMinimumSize || n > maxHeaders || n > pkt.Size() {
		return headers{}, FaultHeaders
	}
	frame := frameOf(pkt)
	h := headers{bytes: frame.head(n, room[:]), payload: frame.size - n}
	if f := h.link(pkt.GSOOptions.Type); f != 0 {
		return headers{}, f
	}
	var f Fault
	if h.v6 {
		f = h.ipv6(frame)
	} else {
		f = h.ipv4()
	}
	if f != 0 {
		return headers{}, f
	}
	return h, h.transport()
}

// link finds the IP header behind the Ethernet header and its tags, and holds
// it against the GSO type.
func (h *headers) link(typ stack.GSOType) Fault {
	at := header.EthernetMinimumSize
	ethertype := binary.BigEndian.Uint16(h.bytes[at-2:])
	for tags := 0; (ethertype == typeVLAN || ethertype == typeService) && tags < maxTags; tags++ {
		at += tagSize
		if at > len(h.bytes) {
			return FaultHeaders
		}
		ethertype = binary.BigEndian.Uint16(h.bytes[at-2:])
	}
	h.net = at
	switch {
	case typ == stack.GSOTCPv4 && tcpip.NetworkProtocolNumber(ethertype) == header.IPv4ProtocolNumber:
	case typ == stack.GSOTCPv6 && tcpip.NetworkProtocolNumber(ethertype) == header.IPv6ProtocolNumber:
		h.v6 = true
	default:
		return FaultType
	}
	return 0
}

func (h *headers) ipv4() Fault {
	ip := h.bytes[h.net:]
	if len(ip) < header.IPv4MinimumSize || ip[0]>>4 != header.IPv4Version {
		return FaultHeaders
	}
	n := int(header.IPv4(ip).HeaderLength())
	if n < header.IPv4MinimumSize || n > len(ip) {
		return FaultHeaders
	}
	if header.IPv4(ip).Protocol() != uint8(header.TCPProtocolNumber) {
		return FaultType
	}
	if header.IPv4(ip).More() || header.IPv4(ip).FragmentOffset() != 0 {
		return FaultType
	}
	// A packet that is longer than the field can say has the length modulo
	// 65536 there, as netstack writes it.
	if header.IPv4(ip).TotalLength() != uint16(len(ip)+h.payload) {
		return FaultLength
	}
	h.tcp = h.net + n
	h.pseudo = checksum.Checksum(ip[12:20], uint16(header.TCPProtocolNumber))
	return 0
}

func (h *headers) ipv6(frame span) Fault {
	ip := h.bytes[h.net:]
	if len(ip) < header.IPv6MinimumSize || ip[0]>>4 != header.IPv6Version {
		return FaultHeaders
	}
	proto, n, ok := frame.from(h.net + header.IPv6MinimumSize).extensions(ip[6])
	if !ok {
		return FaultHeaders
	}
	if proto != uint8(header.TCPProtocolNumber) {
		return FaultType
	}
	if header.IPv6(ip).PayloadLength() != uint16(len(ip)-header.IPv6MinimumSize+h.payload) {
		return FaultLength
	}
	h.tcp = h.net + header.IPv6MinimumSize + n
	h.pseudo = checksum.Checksum(ip[8:40], uint16(header.TCPProtocolNumber))
	return 0
}

// transport checks that the TCP header ends where the pushed headers do.
func (h *headers) transport() Fault {
	if h.tcp+header.TCPMinimumSize > len(h.bytes) {
		return FaultHeaders
	}
	n := int(header.TCP(h.bytes[h.tcp:]).DataOffset())
	if n < header.TCPMinimumSize || h.tcp+n != len(h.bytes) {
		return FaultHeaders
	}
	return 0
}

// fits reports whether an IP packet can say the length that it has with n
// bytes of payload.
func (h *headers) fits(n int) bool {
	start := h.net
	if h.v6 {
		start += header.IPv6MinimumSize
	}
	return len(h.bytes)-start+n <= 1<<16-1
}
