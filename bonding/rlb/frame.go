package rlb

import (
	"encoding/binary"
	"net/netip"
)

// MAC is an Ethernet address.
type MAC [6]byte

var broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// usable reports whether frames for one host can be sent to an address.
func (m MAC) usable() bool { return m != MAC{} && m[0]&1 == 0 }

// Tag is one VLAN tag: its EtherType and the number of the VLAN.
type Tag struct{ Protocol, ID uint16 }

// Tags are the VLAN tags of a frame, the outermost first. Places that are not
// used are zero.
type Tags [2]Tag

// Packet is what matters of an ARP packet, or of a neighbour solicitation (a
// request) or advertisement (a reply).
type Packet struct {
	Request bool
	// Group is whether it is sent to all hosts, or to a group of them.
	Group bool
	// Sender and SenderMAC are the addresses that it tells of. In neighbour
	// discovery without a link-layer address SenderMAC is that of the frame.
	Sender    netip.Addr
	SenderMAC MAC
	// Target and TargetMAC are for a request who is looked for, and for a reply
	// who is told. TargetMAC is zero where it is not known.
	Target    netip.Addr
	TargetMAC MAC
	Tags      Tags
	// Router is whether an advertisement says that its sender is a router.
	Router bool

	senderAt int // where SenderMAC is in the frame; 0: it is not there
	sumAt    int // where the ICMPv6 checksum is; 0: there is none
}

// EtherTypes, and the sizes of headers.
const (
	typeIPv4 = 0x0800
	typeARP  = 0x0806
	typeVLAN = 0x8100
	typeSVLN = 0x88a8
	typeIPv6 = 0x86dd

	etherSize = 14
	tagSize   = 4
	arpSize   = 28
	ipv6Size  = 40
	ndSize    = 24 // ICMPv6 header, flags, target address

	icmpv6       = 58
	solicitation = 135
	advertise    = 136
	sourceOption = 1
	targetOption = 2
	hopLimit     = 255 // of all neighbour discovery (RFC 4861, section 7.1)

	flagRouter   = 0x80
	flagOverride = 0x20
)

// MaxHeader is how much of a frame Parse needs to see at most: what is behind
// it is looked at by nobody, but for options of neighbour discovery in an order
// that no host uses.
const MaxHeader = etherSize + len(Tags{})*tagSize + ipv6Size + ndSize + 64

// Parse reads the first bytes of a frame. ok is false for what is neither ARP
// for IPv4 nor neighbour discovery, or is malformed, or has more than two tags.
func Parse(frame []byte) (p Packet, ok bool) {
	if len(frame) < etherSize {
		return p, false
	}
	at := etherSize
	typ := be16(frame[at-2:])
	for i := 0; typ == typeVLAN || typ == typeSVLN; i++ {
		if i == len(p.Tags) || len(frame) < at+tagSize {
			return p, false
		}
		p.Tags[i] = Tag{typ, be16(frame[at:]) & 0xfff}
		typ = be16(frame[at+2:])
		at += tagSize
	}
	p.Group = frame[0]&1 != 0
	switch typ {
	case typeARP:
		return p, p.parseARP(frame, at)
	case typeIPv6:
		return p, p.parseND(frame, at)
	}
	return p, false
}

// parseARP reads an ARP packet (RFC 826) for IPv4 on Ethernet.
func (p *Packet) parseARP(frame []byte, at int) bool {
	if len(frame) < at+arpSize {
		return false
	}
	b := frame[at : at+arpSize]
	op := be16(b[6:])
	if be16(b) != 1 || be16(b[2:]) != typeIPv4 || b[4] != 6 || b[5] != 4 || op != 1 && op != 2 {
		return false
	}
	p.Request = op == 1
	p.SenderMAC, p.TargetMAC = MAC(b[8:]), MAC(b[18:])
	p.Sender, p.Target = netip.AddrFrom4([4]byte(b[14:])), netip.AddrFrom4([4]byte(b[24:]))
	p.senderAt = at + 8
	return true
}

// parseND reads a neighbour solicitation or advertisement without extension
// headers (RFC 4861, sections 4.3 and 4.4).
func (p *Packet) parseND(frame []byte, at int) bool {
	if len(frame) < at+ipv6Size+ndSize {
		return false
	}
	ip, nd := frame[at:at+ipv6Size], frame[at+ipv6Size:]
	size := int(be16(ip[4:]))
	if ip[0]>>4 != 6 || ip[6] != icmpv6 || ip[7] != hopLimit || size < ndSize || nd[1] != 0 {
		return false
	}
	nd = nd[:min(len(nd), size)]
	src, dst := netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:]))
	about := netip.AddrFrom16([16]byte(nd[8:]))
	option := byte(sourceOption)
	switch nd[0] {
	case solicitation:
		p.Request = true
		p.Sender, p.Target = src, about
	case advertise:
		p.Sender, p.Target = about, dst
		p.Router = nd[4]&flagRouter != 0
		p.TargetMAC = MAC(frame)
		option = targetOption
	default:
		return false
	}
	p.Group = p.Group || dst.IsMulticast() && !p.Request
	p.sumAt = at + ipv6Size + 2
	p.SenderMAC = MAC(frame[6:])
	if off := findOption(nd, option); off != 0 {
		p.senderAt = at + ipv6Size + off
		p.SenderMAC = MAC(frame[p.senderAt:])
	}
	return true
}

// findOption returns where in a message of neighbour discovery the link-layer
// address of an option is, 0 if the option is not there.
func findOption(nd []byte, option byte) int {
	for at := ndSize; at+8 <= len(nd); at += 8 * int(nd[at+1]) {
		switch {
		case nd[at+1] == 0:
			return 0 // such a packet is discarded (section 4.6)
		case nd[at] == option && nd[at+1] == 1:
			return at + 2
		}
	}
	return 0
}

// SetSender writes another address for SenderMAC into the frame from which the
// packet was parsed, and keeps its checksum right if it was. The frame must be
// the caller's own. A packet without the address stays as it is.
func (p *Packet) SetSender(frame []byte, mac MAC) {
	if p.senderAt == 0 {
		return
	}
	field := frame[p.senderAt : p.senderAt+6]
	if p.sumAt != 0 {
		sum := frame[p.sumAt : p.sumAt+2]
		be.PutUint16(sum, adjust(be16(sum), field, mac[:]))
	}
	copy(field, mac[:])
}

// adjust returns a checksum after bytes at an even place became others
// (RFC 1624).
func adjust(sum uint16, old, new []byte) uint16 {
	s := uint32(^sum)
	for i := 0; i < len(old); i += 2 {
		s += uint32(^be16(old[i:])) + uint32(be16(new[i:]))
	}
	return ^fold(s)
}

func fold(s uint32) uint16 {
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

var be = binary.BigEndian

func be16(b []byte) uint16 { return be.Uint16(b) }
