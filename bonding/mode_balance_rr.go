package bonding

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writeBalanceRR sends packets by all slaves in turn, packets_per_slave to
// each. A dead slave's turn goes to the next one that may transmit.
func writeBalanceRR(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	pick := pickTurn
	switch s.packetsPerSlave {
	case 0:
		pick = pickRandom
	case 1:
		pick = pickNext
	}
	return s.spread(pkts, stripe, s.turn, pick)
}

// pickNext is packets_per_slave 1.
func pickNext(s *snapshot, pkt *stack.PacketBuffer) *slave {
	if isIGMP(pkt) {
		return s.igmpSlave()
	}
	return s.turn[s.bond.rrCount.Add(1)%uint32(len(s.turn))]
}

// pickTurn is packets_per_slave above 1.
func pickTurn(s *snapshot, pkt *stack.PacketBuffer) *slave {
	if isIGMP(pkt) {
		return s.igmpSlave()
	}
	return s.turn[s.bond.rrCount.Add(1)/s.packetsPerSlave%uint32(len(s.turn))]
}

// pickRandom is packets_per_slave 0.
func pickRandom(s *snapshot, pkt *stack.PacketBuffer) *slave {
	if isIGMP(pkt) {
		return s.igmpSlave()
	}
	return s.turn[uint32(s.bond.options.Rand())%uint32(len(s.turn))]
}

// isIGMP reports whether a packet is IGMP, which goes by one slave always, so
// that a snooping switch sees the group on one port. TCP and UDP are known by
// their mark without a look at the header.
func isIGMP(pkt *stack.PacketBuffer) bool {
	if pkt.NetworkProtocolNumber != header.IPv4ProtocolNumber ||
		pkt.TransportProtocolNumber == header.TCPProtocolNumber ||
		pkt.TransportProtocolNumber == header.UDPProtocolNumber {
		return false
	}
	ip := pkt.NetworkHeader().Slice()
	return len(ip) >= header.IPv4MinimumSize && header.IPv4(ip).Protocol() == uint8(header.IGMPProtocolNumber)
}

// igmpSlave is the active slave, whatever its link, else the first turn's.
func (s *snapshot) igmpSlave() *slave {
	if s.active != nil {
		return s.active
	}
	return s.turn[0]
}
