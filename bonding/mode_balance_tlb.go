package bonding

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writeBalanceTLB sends unicast IP by the slave that the transmit table has for
// its flow, or with tlb_dynamic_lb off by the hash, and all else by the active
// slave. What leaves by another slave than that carries the slave's own address
// as its source, so that a switch is not told that the bond has moved.
func writeBalanceTLB(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	return s.spread(pkts, stripe, s.usable, pickTLB)
}

func pickTLB(s *snapshot, pkt *stack.PacketBuffer) *slave {
	lb := s.lb
	switch {
	case !mayBalance(pkt, s.mac48):
	case lb.table == nil:
		return pickHash(s, pkt)
	default:
		if i := lb.table.Pick(s.hashOf(pkt), pkt.Size(), lb.among); i >= 0 {
			return s.usable[i]
		}
	}
	return lb.unbalanced(pkt)
}

// mayBalance reports whether a packet may leave by any slave: it is ours, goes
// to one host, and is IP, but for neighbour discovery, which tells where we are.
// Frames that come from other addresses, as of a bridged host, stay with the
// active slave: the answers could be received by no other.
func mayBalance(pkt *stack.PacketBuffer, own uint64) bool {
	b := firstBytes(pkt)
	yes, complete := flowMayBalance(b, own)
	if complete || len(b) >= flowHeaders || len(b) == pkt.Size() {
		return yes
	}
	var buf [flowHeaders]byte
	yes, _ = flowMayBalance(buf[:gather(pkt, buf[:])], own)
	return yes
}

const (
	etherTypeOffset = 12
	vlanTag         = 4 // bytes of a tag
	maxTags         = 2
	// flowHeaders is how much of a frame mayBalance looks at: an ICMPv6 type
	// behind two tags.
	flowHeaders = ethernetHeader + maxTags*vlanTag + header.IPv6MinimumSize + 1
)

// flowMayBalance is mayBalance for the first bytes of a frame. complete is
// whether more of them would change nothing. A header that is cut off is taken
// for neighbour discovery, as in Linux.
func flowMayBalance(frame []byte, own uint64) (yes, complete bool) {
	if len(frame) < ethernetHeader {
		return false, false
	}
	if frame[0]&1 != 0 || mac48(frame[6:]) != own {
		return false, true
	}
	protocol, payload := network(frame)
	if payload == nil {
		return false, false
	}
	switch protocol {
	case header.IPv4ProtocolNumber:
		return true, true
	case header.IPv6ProtocolNumber:
		return isNoDiscovery(payload)
	}
	return false, true
}

// network returns a frame's protocol and what follows it, behind up to two
// tags; nil where the frame is cut off before.
func network(frame []byte) (tcpip.NetworkProtocolNumber, []byte) {
	for tags := 0; ; tags++ {
		at := etherTypeOffset + tags*vlanTag
		if len(frame) < at+2 {
			return 0, nil
		}
		protocol := tcpip.NetworkProtocolNumber(frame[at])<<8 | tcpip.NetworkProtocolNumber(frame[at+1])
		if tags == maxTags || protocol != 0x8100 && protocol != 0x88a8 {
			return protocol, frame[at+2:]
		}
	}
}

// isNoDiscovery reports whether an IPv6 packet is something else than a
// neighbour solicitation or advertisement.
func isNoDiscovery(ip []byte) (yes, complete bool) {
	if len(ip) < header.IPv6MinimumSize {
		return false, false
	}
	if header.IPv6(ip).NextHeader() != uint8(header.ICMPv6ProtocolNumber) {
		return true, true
	}
	if len(ip) == header.IPv6MinimumSize {
		return false, false
	}
	switch header.ICMPv6Type(ip[header.IPv6MinimumSize]) {
	case header.ICMPv6NeighborSolicit, header.ICMPv6NeighborAdvert:
		return false, true
	}
	return true, true
}
