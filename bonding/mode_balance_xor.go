package bonding

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writeBalanceXOR sends each packet by the usable slave that its hash picks.
func writeBalanceXOR(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	return s.spread(pkts, stripe, s.usable, pickHash)
}

func pickHash(s *snapshot, pkt *stack.PacketBuffer) *slave {
	sum := s.hashOf(pkt)
	if s.flows != nil {
		return s.usable[s.flows.Index(sum)]
	}
	return s.usable[sum%uint32(len(s.usable))]
}
