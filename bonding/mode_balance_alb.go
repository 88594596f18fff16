package bonding

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writeBalanceALB sends IP by the slave that the transmit table has for its
// destination, or with tlb_dynamic_lb off by the hash; ARP by the slave that its
// client has been given, under whose address that client is told to find us;
// and all else by the active slave.
func writeBalanceALB(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	return s.spread(pkts, stripe, s.usable, pickALB)
}

// talk stands for the slaves of packets by which the host and its neighbours
// tell each other where they are. sendTalk finds the slave of each.
var talk = new(slave)

func pickALB(s *snapshot, pkt *stack.PacketBuffer) *slave {
	frame := firstBytes(pkt)
	if len(frame) < flowHeaders && len(frame) < pkt.Size() {
		var buf [flowHeaders]byte
		return s.pickFlow(buf[:gather(pkt, buf[:])], pkt)
	}
	return s.pickFlow(frame, pkt)
}

// pickFlow picks by a packet's first bytes.
func (s *snapshot) pickFlow(frame []byte, pkt *stack.PacketBuffer) *slave {
	lb := s.lb
	kind, to := flowOf(frame, s.mac48)
	switch {
	case kind == talkARP || kind == talkND && lb.ipv6:
		return talk
	case kind != flowIPv4 && kind != flowIPv6:
		return lb.unbalanced(pkt)
	}
	if lb.clients != nil {
		lb.clients.table.Activity.Mark(to)
	}
	if lb.table == nil {
		return pickHash(s, pkt)
	}
	if i := lb.table.Pick(uint32(xor8(to)), pkt.Size(), lb.among); i >= 0 {
		return s.usable[i]
	}
	return lb.unbalanced(pkt)
}

// flowKind is what balance-alb makes of a frame.
type flowKind uint8

const (
	notBalanced flowKind = iota
	flowIPv4             // balanced by its destination
	flowIPv6
	talkARP
	talkND
)

// allNodes48 is the packed group address of all IPv6 nodes.
const allNodes48 = 0x333300000001

// flowOf sorts a frame by its first bytes, and returns its destination. What
// comes from another address than own is not balanced: the answers could be
// received by no other slave.
func flowOf(frame []byte, own uint64) (flowKind, []byte) {
	if len(frame) < ethernetHeader || mac48(frame[sourceOffset:]) != own {
		return notBalanced, nil
	}
	dst := mac48(frame)
	switch protocol, ip := network(frame); protocol {
	case header.ARPProtocolNumber:
		return talkARP, nil
	case header.IPv4ProtocolNumber:
		if len(ip) < header.IPv4MinimumSize || dst == broadcast48 || ip[ipv4Protocol] == uint8(header.IGMPProtocolNumber) {
			return notBalanced, nil
		}
		to := ip[ipv4Destination:][:header.IPv4AddressSize]
		if [header.IPv4AddressSize]byte(to) == ipv4Everybody {
			return notBalanced, nil
		}
		return flowIPv4, to
	case header.IPv6ProtocolNumber:
		if yes, complete := isNoDiscovery(ip); !yes {
			if complete {
				return talkND, nil
			}
			return notBalanced, nil
		}
		from := ip[ipv6Source:][:header.IPv6AddressSize]
		if dst == broadcast48 || dst == allNodes48 || [header.IPv6AddressSize]byte(from) == [header.IPv6AddressSize]byte{} {
			return notBalanced, nil
		}
		return flowIPv6, ip[ipv6Destination:][:header.IPv6AddressSize]
	}
	return notBalanced, nil
}

// Where fields are in the network headers.
const (
	ipv4Protocol    = 9
	ipv4Destination = 16
	ipv6Source      = 8
	ipv6Destination = 24
)

var ipv4Everybody = [header.IPv4AddressSize]byte{255, 255, 255, 255}

// xor8 is Linux's hash for the transmit table: the exclusive or of all bytes,
// which keeps the hosts of a /24 apart.
func xor8(key []byte) (sum byte) {
	for _, b := range key {
		sum ^= b
	}
	return sum
}
