package probe

import (
	"encoding/binary"
	"net/netip"
)

// MaxTags is how many VLAN tags a frame may have.
const MaxTags = 4

// EtherTypes.
const (
	TypeARP  = 0x0806
	TypeIPv6 = 0x86dd
	TypeVLAN = 0x8100 // IEEE 802.1Q
	TypeQinQ = 0x88a8 // IEEE 802.1ad
)

// MAC is an Ethernet address.
type MAC = [6]byte

// Tag is a VLAN tag.
type Tag struct {
	Protocol uint16 // its EtherType
	ID       uint16 // 0 to 4094; greater bits are the priority's
}

const (
	arpSize     = 28 // RFC 826, for Ethernet and IPv4
	ethHeader   = 14
	tagSize     = 4
	ipv6Header  = 40
	solicitSize = 24 // RFC 4861, 4.3
	optionSize  = 8  // the source link-layer address option
)

// appendHeader appends an Ethernet header with tags, the outermost first.
func appendHeader(b []byte, dst, src MAC, tags []Tag, etherType uint16) []byte {
	b = append(b, dst[:]...)
	b = append(b, src[:]...)
	for _, t := range tags {
		b = binary.BigEndian.AppendUint16(b, t.Protocol)
		b = binary.BigEndian.AppendUint16(b, t.ID)
	}
	return binary.BigEndian.AppendUint16(b, etherType)
}

// ARPRequest returns a broadcast request for target, an IPv4 address. The
// sender's IP address is zero where sender is not an IPv4 address, as it is when
// there is none yet; the target's MAC address is zero as in Linux.
func ARPRequest(src MAC, sender, target netip.Addr, tags []Tag) []byte {
	b := make([]byte, 0, ethHeader+len(tags)*tagSize+arpSize)
	b = appendHeader(b, MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, src, tags, TypeARP)
	b = append(b, 0, 1, 0x08, 0x00, 6, 4, 0, opRequest)
	b = append(b, src[:]...)
	from, to := as4(sender), as4(target)
	b = append(b, from[:]...)
	b = append(b, 0, 0, 0, 0, 0, 0)
	return append(b, to[:]...)
}

func as4(a netip.Addr) (b [4]byte) {
	if a.Is4() || a.Is4In6() {
		b = a.As4()
	}
	return b
}

// Solicitation returns a neighbour solicitation for target, an IPv6 address, to
// its solicited-node group. Where source is no IPv6 address it comes from the
// unspecified one, and then carries no link-layer address (RFC 4861, 4.3).
func Solicitation(src MAC, source, target netip.Addr, tags []Tag) []byte {
	if !source.Is6() || source.Is4In6() {
		source = netip.IPv6Unspecified()
	}
	size := solicitSize
	if !source.IsUnspecified() {
		size += optionSize
	}
	group := SolicitedNode(target)
	g := group.As16()
	b := make([]byte, 0, ethHeader+len(tags)*tagSize+ipv6Header+size)
	b = appendHeader(b, MAC{0x33, 0x33, g[12], g[13], g[14], g[15]}, src, tags, TypeIPv6)
	ip := len(b)
	b = append(b, 0x60, 0, 0, 0, 0, byte(size), nextICMPv6, ndHopLimit)
	from, to := source.As16(), target.As16()
	b = append(b, from[:]...)
	b = append(b, g[:]...)
	icmp := len(b)
	b = append(b, typeSolicitation, 0, 0, 0, 0, 0, 0, 0)
	b = append(b, to[:]...)
	if !source.IsUnspecified() {
		b = append(b, 1, 1) // source link-layer address, 8 bytes
		b = append(b, src[:]...)
	}
	binary.BigEndian.PutUint16(b[icmp+2:], checksum(b[ip+8:ip+ipv6Header], b[icmp:]))
	return b
}

// SolicitedNode returns the group of an IPv6 address (RFC 4291, 2.7.1).
func SolicitedNode(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
}

// checksum is ICMPv6's, over both addresses, the length, the next header and
// the message, whose checksum is zero (RFC 4443, 2.3). All lengths are even.
func checksum(addresses, message []byte) uint16 {
	sum := uint32(len(message)) + nextICMPv6
	for _, part := range [][]byte{addresses, message} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
