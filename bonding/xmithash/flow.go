package xmithash

import "encoding/binary"

// EtherTypes that a policy knows.
const (
	typeIPv4   = 0x0800
	typeARP    = 0x0806
	typeRARP   = 0x8035
	typeVLAN   = 0x8100
	typeIPv6   = 0x86dd
	typeMPLS   = 0x8847
	typeMPLSMC = 0x8848
	typePPPoE  = 0x8864
	typeSVLAN  = 0x88a8
	typePTP    = 0x88f7
	typeFCoE   = 0x8906
	typeTEB    = 0x6558 // in GRE: an Ethernet frame
	typePPP    = 0x880b // in GRE version 1: PPTP
)

// IP protocols that a policy knows, beside those in portsAt.
const (
	protoHopByHop = 0
	protoICMP     = 1
	protoIPv4     = 4
	protoIPv6     = 41
	protoRouting  = 43
	protoFragment = 44
	protoGRE      = 47
	protoICMPv6   = 58
	protoDestOpts = 60

	// protoNone stands for the protocol of a fragment: no part of a datagram
	// may hash by what only its first fragment holds.
	protoNone = -1
)

// Header sizes.
const (
	ipv4Size = 20
	ipv6Size = 40
	icmpSize = 8
)

// portsAt says where the 4 bytes are that stand for the ports, one more than
// their place in the header; 0 where a protocol has none. In ESP and AH they are
// the SPI.
var portsAt = [256]uint8{
	6:   1, // TCP
	17:  1, // UDP
	33:  1, // DCCP
	50:  1, // ESP
	51:  5, // AH
	132: 1, // SCTP
	136: 1, // UDP-Lite
}

// A header is where an IP header is, and what it announces.
type header struct {
	ip    int32  // where it begins
	l4    int32  // where what follows it begins
	typ   uint16 // typeIPv4 or typeIPv6; 0 for no IP header
	proto int16  // protocol of what is at l4, protoNone for a fragment
}

// A flow is what the layer 3 and 4 policies hash, and where in the frame it
// came from. It has no more than four fields and 32 bytes, since the compiler
// keeps only such structs in registers.
type flow struct {
	addrs uint32 // XOR of the words of both addresses
	word  uint32 // of the ports, or of an ICMP identifier; 0 where there is none
	header
	at int32 // where word was read, 0: nowhere
}

// ipHeader reads the IP header at off. An IPv4 header's options may be cut
// short, and its length is not checked: it only says where l4 is.
func ipHeader(b []byte, size int, typ uint16, off int) (flow, verdict) {
	switch typ {
	case typeIPv4:
		if len(b) < off+ipv4Size {
			return flow{}, beyond(off+ipv4Size, size)
		}
		return ipv4(b[off:off+ipv4Size], off), found
	case typeIPv6:
		if len(b) < off+ipv6Size {
			return flow{}, beyond(off+ipv6Size, size)
		}
		return ipv6(b[off:off+ipv6Size], off), found
	}
	return flow{}, opaque
}

func ipv4(h []byte, off int) flow {
	proto := int16(h[9])
	if be16(h[6:])&0x3fff != 0 { // more fragments, or an offset
		proto = protoNone
	}
	l4 := int32(off) + int32(h[0]&0xf)*4
	return flow{
		addrs:  le32(h[12:]) ^ le32(h[16:]),
		header: header{int32(off), l4, typeIPv4, proto},
	}
}

func ipv6(h []byte, off int) flow {
	return flow{
		addrs:  addr6(h[8:]) ^ addr6(h[24:]),
		header: header{int32(off), int32(off) + ipv6Size, typeIPv6, int16(h[6])},
	}
}

// addr6 is the word that stands for an IPv6 address.
func addr6(a []byte) uint32 {
	x := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(a[8:])
	return uint32(x) ^ uint32(x>>32)
}

// withPorts reads the port word of a flow. A frame that ends before it has
// none.
func (f flow) withPorts(b []byte, size int) (flow, verdict) {
	if f.proto == protoNone || portsAt[uint8(f.proto)] == 0 {
		return f, found
	}
	at := int(f.l4) + int(portsAt[uint8(f.proto)]) - 1
	if len(b) < at+4 {
		if at+4 <= size {
			return f, more
		}
		return f, found
	}
	f.word, f.at = le32(b[at:]), int32(at)
	return f, found
}

// withEcho reads the word of an ICMP message that has an identifier. An
// identifier of 0 counts as 1, since a word of an identifier of 0 would mean
// that there is none. b holds the ICMP header.
func (f flow) withEcho(b []byte) flow {
	m := b[f.l4:]
	switch m[0] {
	case 0, 8, 13, 14, 128, 129: // echo and timestamp, requests and replies
		id := max(be16(m[4:]), 1)
		f.word, f.at = uint32(m[0])|uint32(m[1])<<8|uint32(id)<<16, f.l4
	}
	return f
}

// isICMPError reports whether an ICMP message of type typ quotes the packet
// that it is about.
func isICMPError(proto int16, typ uint8) bool {
	if proto == protoICMP {
		return typ >= 3 && typ <= 5 || typ == 11 || typ == 12
	}
	return typ >= 1 && typ <= 4
}

// outermost reads the flow by the first IP header at p. An ICMP error belongs
// to the flow of the packet that it quotes.
func outermost(b []byte, size int, p place, l4 bool) (flow, verdict) {
	f, v := ipHeader(b, size, p.l3, p.off)
	if v != found {
		return f, v
	}
	if f.proto == protoICMP || f.proto == protoICMPv6 {
		return icmp(b, size, f, l4)
	}
	if !l4 {
		return f, found
	}
	return f.withPorts(b, size)
}

func icmp(b []byte, size int, f flow, l4 bool) (flow, verdict) {
	data := int(f.l4) + icmpSize
	if len(b) < data {
		if data <= size {
			return f, more
		}
		return f, found
	}
	if !isICMPError(f.proto, b[f.l4]) {
		if l4 {
			f = f.withEcho(b)
		}
		return f, found
	}
	q, v := ipHeader(b, size, f.typ, data)
	if v != found || !l4 {
		return q, v
	}
	return q.withPorts(b, size)
}
