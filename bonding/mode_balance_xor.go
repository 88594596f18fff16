package bonding

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writeBalanceXOR sends each packet by the usable slave that its hash picks.
func writeBalanceXOR(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	pick := pickHash
	if s.flows != nil {
		pick = pickFlow
	}
	return s.spread(pkts, stripe, s.usable, pick)
}

func pickHash(s *snapshot, pkt *stack.PacketBuffer) *slave {
	return s.usable[s.hashOf(pkt)%uint32(len(s.usable))]
}

// pickFlow is xmit_hash_map consistent.
func pickFlow(s *snapshot, pkt *stack.PacketBuffer) *slave {
	return s.usable[s.flows.Index(s.hashOf(pkt))]
}
