package probe

import (
	"encoding/binary"
	"net/netip"
)

// Kind is what a received frame is.
type Kind uint8

// The kinds of frames that can be evidence.
const (
	ARP      Kind = 1 // ARP for Ethernet and IPv4, request or reply
	Neighbor Kind = 2 // a neighbour solicitation or advertisement
)

// Message is what of a received frame is looked at.
type Message struct {
	Kind Kind
	// Reply is whether an ARP frame is a reply.
	Reply bool
	// Source is the sender's address: of ARP the sender's IP address, of
	// neighbour discovery the packet's source.
	Source netip.Addr
	// Destination is whom it is for: of ARP the target's IP address, of
	// neighbour discovery the packet's destination, which may be a group.
	Destination netip.Addr
}

const (
	opRequest         = 1
	opReply           = 2
	nextICMPv6        = 58
	ndHopLimit        = 255
	typeSolicitation  = 135
	typeAdvertisement = 136
)

// Peek is how much of a frame behind the Ethernet header Parse looks at, at
// most.
const Peek = MaxTags*tagSize + ipv6Header + 1

// Inner returns the EtherType behind a frame's VLAN tags, and what follows it.
// etherType and payload are those of the Ethernet header. ok is false where the
// frame ends before, or has more than MaxTags tags.
func Inner(etherType uint16, payload []byte) (inner uint16, rest []byte, ok bool) {
	for tags := 0; etherType == TypeVLAN || etherType == TypeQinQ; tags++ {
		if len(payload) < tagSize || tags == MaxTags {
			return 0, nil, false
		}
		etherType, payload = binary.BigEndian.Uint16(payload[2:]), payload[tagSize:]
	}
	return etherType, payload, true
}

// Parse reads a received frame: etherType and payload are those of its Ethernet
// header, of which Peek bytes are enough. ok is false for what is neither ARP
// for Ethernet and IPv4 nor neighbour discovery. A hop limit below 255 means
// that a packet came through a router, and neighbour discovery does not.
func Parse(etherType uint16, payload []byte) (m Message, ok bool) {
	etherType, payload, ok = Inner(etherType, payload)
	switch {
	case !ok:
		return Message{}, false
	case etherType == TypeARP:
		return parseARP(payload)
	case etherType == TypeIPv6:
		return parseNeighbor(payload)
	}
	return Message{}, false
}

func parseARP(p []byte) (Message, bool) {
	if len(p) < arpSize || binary.BigEndian.Uint16(p) != 1 || binary.BigEndian.Uint16(p[2:]) != 0x0800 || p[4] != 6 || p[5] != 4 {
		return Message{}, false
	}
	return Message{Kind: ARP, Reply: binary.BigEndian.Uint16(p[6:]) == opReply,
		Source:      netip.AddrFrom4([4]byte(p[14:18])),
		Destination: netip.AddrFrom4([4]byte(p[24:28]))}, true
}

func parseNeighbor(p []byte) (Message, bool) {
	if len(p) <= ipv6Header || p[0]>>4 != 6 || p[6] != nextICMPv6 || p[7] != ndHopLimit {
		return Message{}, false
	}
	if t := p[ipv6Header]; t != typeSolicitation && t != typeAdvertisement {
		return Message{}, false
	}
	return Message{Kind: Neighbor, Source: netip.AddrFrom16([16]byte(p[8:24])), Destination: netip.AddrFrom16([16]byte(p[24:40]))}, true
}
