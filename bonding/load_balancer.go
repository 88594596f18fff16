package bonding

import (
	"time"

	"bondstack/bonding/rlb"
	"bondstack/bonding/tlb"
)

// balancer is modes balance-tlb and balance-alb of a bond that a NIC has: the
// transmit table, and what is done from time to time. It is guarded by Bond.mu.
type balancer struct {
	bond  *Bond
	start instant
	table *tlb.Table
	// since is when the table's period began.
	since instant
	// rebalance is when the period ends.
	rebalance instant
	// learned is when learning packets were sent last.
	learned instant
	// rebalances counts the periods that are over.
	rebalances uint64
	// teaching is the slave that is promiscuous until then, so as to hear those
	// who still use the address of one that cannot receive.
	teaching      *slave
	teachingUntil instant
	// clients is the receiving half of balance-alb, nil in balance-tlb.
	clients *receiveBalancer
	// clientsAt is when it has its next tick.
	clientsAt instant
}

const (
	// lbTick is the period of Linux's work for these modes. All that they do in
	// time is done at a multiple of it.
	lbTick = 100 * time.Millisecond
	// rebalanceInterval is how long a transmit table is in use.
	rebalanceInterval = 10 * time.Second
	// leastPeriod is how long a table is in use at least: what was sent in less
	// says little of a rate.
	leastPeriod = time.Second
	// teachTime is how long a slave stays promiscuous for another's address.
	teachTime = 10 * time.Second
)

// balances reports whether the mode is balance-tlb or balance-alb.
func (m Mode) balances() bool { return m == BalanceTLB || m == BalanceALB }

// updateBalancer starts and ends the balancer with the bond, and does what is
// due. It is called after every change.
func (b *Bond) updateBalancer(now instant) {
	want := b.config.mode.balances() && b.dispatcher != nil
	switch {
	case want && b.balancer == nil:
		b.startBalancer(now)
	case !want && b.balancer != nil:
		b.balancer.endTeaching()
		b.balancer = nil
		b.dirty = true
	}
	if b.balancer != nil {
		b.balancer.advance(now)
	}
}

func (b *Bond) startBalancer(now instant) {
	l := &balancer{bond: b, start: now, table: tlb.New(), since: now, learned: now, rebalance: now.add(rebalanceInterval)}
	for _, s := range b.slaves {
		s.member = tlb.NewMember(0)
	}
	if b.config.mode == BalanceALB {
		l.clients, l.clientsAt = newReceiveBalancer(b), now.add(lbTick)
	}
	b.balancer = l
	b.dirty = true
}

// advance does what is due.
func (l *balancer) advance(now instant) {
	if len(l.bond.slaves) == 0 || !l.ticks() {
		l.learned, l.since, l.rebalance = now, now, now.add(rebalanceInterval)
	}
	if now >= l.learnAt() {
		l.learned = now
		for _, s := range l.bond.slaves {
			l.bond.sendLearning(s, s.mac)
		}
	}
	if now >= l.rebalance {
		l.endPeriod(now)
	}
	if l.teaching != nil && now >= l.teachingUntil {
		l.endTeaching()
	}
	if l.clients != nil {
		l.advanceClients(now)
	}
}

// ticks reports whether anything is done from time to time: in balance-tlb only
// if it is dynamic.
func (l *balancer) ticks() bool {
	return l.bond.config.mode == BalanceALB || !l.bond.config.tlbStatic
}

// learnAt is when learning packets are due.
func (l *balancer) learnAt() instant {
	return l.learned.add(time.Duration(l.bond.config.lpInterval) * time.Second)
}

// deadline is when the balancer wants to run next, zero for never.
func (l *balancer) deadline() instant {
	if len(l.bond.slaves) == 0 || !l.ticks() {
		return l.teachingUntil
	}
	due := min(l.learnAt(), l.rebalance)
	if l.teaching != nil {
		due = min(due, l.teachingUntil)
	}
	if l.clients != nil {
		due = min(due, l.clientsAt)
	}
	return due
}

// tick is the first tick at or after a moment.
func (l *balancer) tick(at instant) instant {
	n := (at - l.start + instant(lbTick) - 1) / instant(lbTick)
	return l.start + n*instant(lbTick)
}

// rebalanceSoon has the period end with the next tick, or once it has lasted
// long enough: slaves have come, or have changed their parts.
func (l *balancer) rebalanceSoon(now instant) {
	l.rebalance = min(l.rebalance, l.tick(max(now, l.since.add(leastPeriod))))
}

// endPeriod makes the next transmit table: with what the last one has counted,
// and with new members, so that writers that still have the last one change
// nothing of it.
func (l *balancer) endPeriod(now instant) {
	b, elapsed := l.bond, time.Duration(now-l.since)
	l.rebalance = now.add(rebalanceInterval)
	usable := b.usable()
	was := make([]*tlb.Member, len(usable))
	for i, s := range usable {
		was[i] = s.member
	}
	for _, s := range b.slaves {
		s.member = tlb.NewMember(0)
	}
	if b.active != nil {
		b.active.member = tlb.NewMember(l.table.LooseRate(elapsed))
	}
	l.table = l.table.Next(elapsed, candidates(usable), was)
	l.since = now
	l.rebalances++
	b.dirty = true
}

// joinLB makes a new slave one of an adaptive mode: it receives nothing until
// it is the active one, and has an address of its own to send from.
func (b *Bond) joinLB(s *slave, now instant) {
	s.member = tlb.NewMember(0)
	s.setActive()
	s.listen(false)
	b.giveOwnMAC(s)
	b.linkUpLB(s, now)
}

// linkUpLB and linkDownLB are a slave's link that was found, or lost.
func (b *Bond) linkUpLB(_ *slave, now instant) {
	if b.balancer != nil {
		b.balancer.rebalanceSoon(now)
		b.clients().do((*rlb.Table).Rebalance)
	}
}

func (b *Bond) linkDownLB(s *slave) {
	if b.balancer != nil {
		b.balancer.table.Release(s.member)
		b.clientsLost(s)
	}
}

// standBackLB is a slave that begins to stand back, or ends it. It still receives
// for those who do not know yet.
func (b *Bond) standBackLB(s *slave, now instant) {
	if !s.standsBack {
		b.linkUpLB(s, now)
	} else if b.balancer != nil {
		b.balancer.table.Release(s.member)
		b.clients().do(func(t *rlb.Table) { t.Lost(s.slot) })
	}
}

// leaveLB is a slave that has left the bond's list. Where another one has the
// address that it came with, it takes that away with it, and leaves its own to
// the other.
func (b *Bond) leaveLB(s *slave) {
	if b.balancer != nil {
		b.balancer.table.Release(s.member)
		if b.balancer.teaching == s {
			b.balancer.endTeaching()
		}
		b.clients().do(func(t *rlb.Table) { t.Lost(s.slot) })
	}
	if s.permMAC == s.mac || s.permMAC == b.mac {
		return
	}
	if other := b.withMAC(s.permMAC); other != nil {
		b.swapMAC(s, other)
	}
}

// switchLB is another active slave: it receives, and the bond's address goes to
// it.
func (b *Bond) switchLB(prev, next *slave, now instant) {
	if prev != nil {
		prev.listen(false)
	}
	if next == nil {
		return
	}
	next.listen(true)
	if b.balancer != nil {
		b.balancer.endTeaching()
		b.balancer.rebalanceSoon(now) // what is not balanced goes by another slave
	}
	b.moveMAC(prev, next)
}

// listen has the slave receive, or not. In these modes only the active one
// does, while all of them send.
func (s *slave) listen(on bool) { s.rxInactive = !on && !s.bond.config.allSlavesActive }

// usable are the slaves that may transmit, in order.
func (b *Bond) usable() []*slave {
	var list []*slave
	for _, s := range b.slaves {
		if s.canTransmit() {
			list = append(list, s)
		}
	}
	return list
}
