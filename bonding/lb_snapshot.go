package bonding

import (
	"slices"

	"bondstack/bonding/tlb"
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// balanceView is what the data path of balance-tlb and balance-alb reads beside
// the rest of a snapshot, of which it is a part.
type balanceView struct {
	// table has the flows. It is nil with tlb_dynamic_lb off, and while no NIC
	// has the bond: then the hash picks.
	table *tlb.Table
	// among are the members of snapshot.usable, in the same order.
	among []tlb.Candidate
	// active is the active slave if it may transmit.
	active *slave
	// sources are the slaves' recorded addresses, by slot.
	sources []tcpip.LinkAddress
	// own are the same, packed, without those that are the bond's.
	own []uint64
	// clients is the receiving half of balance-alb, nil in balance-tlb and while
	// no NIC has the bond.
	clients *receiveBalancer
	// ipv6 has IPv6 clients balanced too.
	ipv6 bool
	// heard are, in balance-alb, the packed addresses besides the bond's that
	// each slave receives for, by slot.
	heard [][]uint64
}

// balanceView builds the adaptive modes' part of a snapshot.
func (b *Bond) balanceView(usable []*slave) *balanceView {
	v := &balanceView{clients: b.clients(), ipv6: b.config.ipv6Receive}
	if b.balancer != nil && !b.config.tlbStatic {
		v.table = b.balancer.table
		v.among = candidates(usable)
	}
	if b.active != nil && b.active.canTransmit() {
		v.active = b.active
	}
	for _, s := range b.slaves {
		for len(v.sources) <= s.slot {
			v.sources = append(v.sources, "")
			v.heard = append(v.heard, nil)
		}
		if b.config.mode == BalanceALB {
			v.heard[s.slot] = b.heardBy(s)
		}
		v.sources[s.slot] = s.mac
		if s.mac != b.mac {
			v.own = append(v.own, mac48([]byte(s.mac)))
		}
	}
	return v
}

// candidates are the slaves' members of the transmit table, by their weights.
func candidates(usable []*slave) []tlb.Candidate {
	among := make([]tlb.Candidate, len(usable))
	for i, s := range usable {
		among[i] = tlb.Candidate{Member: s.member, Speed: s.weightAmong(usable)}
	}
	return among
}

// unbalanced is the slave of a packet that is not balanced, nil for none, and
// counts the packet.
func (v *balanceView) unbalanced(pkt *stack.PacketBuffer) *slave {
	if v.active != nil && v.table != nil {
		v.table.Loose(pkt.Size())
	}
	return v.active
}

// sendsFrom reports whether a packed address is a slave's own. v may be nil.
func (v *balanceView) sendsFrom(addr uint64) bool { return v != nil && slices.Contains(v.own, addr) }

// receivesFor reports whether a slave receives frames to an address besides the
// bond's: in balance-alb others know the slaves' own.
func (v *balanceView) receivesFor(slot int, addr uint64) bool {
	return v != nil && slot < len(v.heard) && slices.Contains(v.heard[slot], addr)
}

// sendBalanced is sendOr of the adaptive modes.
func (s *snapshot) sendBalanced(to *slave, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	switch to {
	case nil:
		return s.noSlave(pkts)
	case talk:
		return s.sendTalk(pkts, stripe)
	}
	n, err := s.sendOwn(to, pkts, stripe)
	switch {
	case err == nil || !link.Gone(err):
		return n, err
	case to == s.active:
		// Whoever takes over has the bond's address in a moment.
		return s.sendElsewhere(to, s.standby, pkts, n, stripe)
	default:
		return s.sendElsewhere(to, s.usable, pkts, n, stripe)
	}
}

// sendInstead sends by a slave in the place of another.
func (s *snapshot) sendInstead(from, to *slave, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	if s.lb != nil && from != s.active {
		return s.sendOwn(to, pkts, stripe)
	}
	return to.send(pkts, stripe)
}
