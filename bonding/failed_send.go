package bonding

import (
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// noSlave drops a list because no slave is there for it.
func (s *snapshot) noSlave(pkts stack.PacketBufferList) (int, tcpip.Error) {
	s.bond.drops.add(dropTxNoSlave, pkts.Len())
	return 0, nil
}

// sendElsewhere sends what is left of a list, after sent of it went out, by the
// first of others that can: the link of from turned out to be gone. The control
// side is told, and makes the failover that this has begun; until then every
// write finds its way here.
func (s *snapshot) sendElsewhere(from *slave, others []*slave, pkts stack.PacketBufferList, sent int, stripe uint32) (int, tcpip.Error) {
	s.bond.linkGone(from)
	skip(&pkts, sent)
	for i := range len(others) + len(s.reserve) {
		next := s.elsewhere(others, i)
		if next == from {
			continue
		}
		n, err := s.sendInstead(from, next, pkts, stripe)
		sent += n
		if err == nil || !link.Gone(err) {
			from.rescued(n)
			return sent, err
		}
		skip(&pkts, n)
		s.bond.linkGone(next)
	}
	from.counters.drop(dropTxLinkGone, pkts.Len())
	return sent, nil
}

// elsewhere is the next slave to try: others, then those that stand back.
func (s *snapshot) elsewhere(others []*slave, i int) *slave {
	if i < len(others) {
		return others[i]
	}
	return s.reserve[i-len(others)]
}

// linkGone tells the control side that a write found the slave's link gone. It
// is called by the data path, perhaps with locks of the stack held, so the
// control side acts on another goroutine: a timer's. Of many reports until then
// one is passed on.
func (b *Bond) linkGone(s *slave) {
	if s.counters.gone.CompareAndSwap(false, true) {
		s.counters.goneAt.Store(int64(b.now()))
		s.counters.rescuedAt.Store(0)
		b.clock.AfterFunc(0, func() { b.commitLinkGone(s) })
	}
}

// rescued keeps when another slave took the first n frames of this one, whose
// link is gone.
func (s *slave) rescued(n int) {
	if n > 0 && s.counters.rescuedAt.Load() == 0 {
		s.counters.rescuedAt.CompareAndSwap(0, int64(s.bond.now()))
	}
}

// commitLinkGone takes the slave's link for down until the link tells of a
// change, or the next pass has looked.
func (b *Bond) commitLinkGone(s *slave) {
	b.control(func(now instant) {
		s.counters.gone.Store(false)
		period := b.config.period()
		if s.released || period == 0 || b.dispatcher == nil {
			return
		}
		s.goneUntil = now.add(period)
		s.noteGone()
		b.dirty = true
		if s == b.arp.candidate {
			return // the next pass tries another
		}
		b.propose(s, linkDown, now) // no downdelay: nothing can be sent
		s.forget(now, 0)            // what was heard before does not bring it back
	})
}
