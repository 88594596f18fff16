package bonding

import (
	"net/netip"
	"sync/atomic"
	"time"

	"bondstack/bonding/probe"
)

// arpMonitor is the ARP monitor of a bond (arp_interval): it sends probes to
// targets, and takes a slave that hears nothing for down. It is guarded by
// Bond.mu, but for what is atomic.
//
// Its passes are on a grid of intervals, and judge by the grid's time, so that a
// timer that fires late changes no decision. One that is late by more than half
// an interval found the process asleep or the machine too busy: no slave can be
// blamed for what was not asked, so all that is remembered moves by as much.
type arpMonitor struct {
	next      instant // the next pass; 0: the monitor is off
	half      instant // the look between two passes; 0: it is done
	looked    instant // the last look, by the grid
	interval  time.Duration
	candidate *slave // the one that is tried while none is active
	proven    bool   // as published: see activeProven
	due       []*slave
	sources   atomic.Pointer[[]netip.Addr] // of the last probes
	unrouted  atomic.Pointer[[]netip.Addr] // targets that the last probes had no source for
}

// arpSlave is what the ARP monitor keeps of a slave.
type arpSlave struct {
	evidence *evidence
	frames   uint64               // received, at the last look
	lastRx   instant              // of the last evidence of any kind
	targetRx [probe.Slots]instant // of each target
}

func (b *Bond) arpTiming(now instant) arpTiming {
	return arpTiming{now, b.config.arp.interval, b.config.arp.missedMax}
}

// updateARPMonitor starts and ends the monitor with the bond and the option. The
// first pass is at once, but by the timer: locks of the stack may be held here.
func (b *Bond) updateARPMonitor(now instant) {
	m, c := &b.arp, &b.config.arp
	want := c.interval > 0 && b.dispatcher != nil
	if m.candidate != nil && (m.candidate.released || !want) {
		m.candidate.setInactive()
		m.candidate = nil
		b.dirty = true
	}
	switch {
	case want && m.interval != c.interval:
		m.next, m.half, m.looked, m.interval = now, 0, now, c.interval
		b.dirty = true
		for _, s := range b.slaves {
			if s.verdicts[monitorARP] != linkDown {
				s.verdicts.begin(s.link)
			}
			s.forget(now, c.interval)
			if s.link == linkUp {
				s.lastLinkUp = now // its time of grace
			}
		}
	case !want && m.interval != 0:
		m.next, m.half, m.interval, m.proven, m.due = 0, 0, 0, false, nil
		b.dirty = true
	}
}

// forget begins a slave's evidence anew. As in Linux one that is up counts as
// heard and asked an interval ago, which gives the first probes the time to be
// answered.
func (s *slave) forget(now instant, interval time.Duration) {
	s.evidence = newEvidence()
	s.frames = s.counters.frames()
	s.lastRx = never
	if s.bond.view(s, monitorARP) == linkUp && interval > 0 {
		s.lastRx = now.add(-interval - 1)
		s.evidence.tx.Store(int64(s.lastRx))
	}
	for i := range s.targetRx {
		s.targetRx[i] = s.lastRx
	}
	s.bond.dirty = true
}

// deadline is when the monitor wants to run next, or zero.
func (m *arpMonitor) deadline() instant {
	if m.half != 0 && m.half < m.next {
		return m.half
	}
	return m.next
}

// runARPMonitor does what is due.
func (b *Bond) runARPMonitor(now instant) {
	m := &b.arp
	if m.next == 0 {
		return
	}
	if late := time.Duration(now - m.next); late > m.interval/2 {
		b.excuse(late)
	}
	if m.half != 0 && now >= m.half {
		b.lookAtEvidence(m.half)
		m.half = 0
	}
	if now >= m.next {
		at := m.next
		m.half, m.next = at.add(m.interval/2), at.add(m.interval)
		b.lookAtEvidence(at)
		b.pass(now)
		b.judgeByEvidence(at, now)
	}
}

// excuse takes time in which the monitor did not run out of the account. What
// came meanwhile, as frames that another goroutine received, is of now, not of a
// time to come, in which nothing can have been heard.
func (b *Bond) excuse(late time.Duration) {
	m := &b.arp
	b.lookAtEvidence(m.next)
	m.next, m.half, m.looked = m.next.add(late), 0, m.looked.add(late)
	later := func(at instant) instant { return min(at.add(late), m.next) }
	for _, s := range b.slaves {
		s.lastRx = later(s.lastRx)
		s.lastLinkUp = later(s.lastLinkUp)
		s.evidence.tx.Store(int64(later(instant(s.evidence.tx.Load()))))
		for i := range s.targetRx {
			s.targetRx[i] = later(s.targetRx[i])
		}
	}
}

// lookAtEvidence collects what the data path has seen since the last look. at is
// the present moment by the grid.
func (b *Bond) lookAtEvidence(at instant) {
	m := &b.arp
	for _, s := range b.slaves {
		heard := s.evidence.heard.Swap(0)
		s.evidence.asked.Store(0)
		frames := s.counters.frames()
		switch c := &b.config.arp; {
		case c.validate.covers(s.backup):
			for slot := range s.targetRx {
				if heard&(1<<slot) != 0 {
					s.targetRx[slot] = max(s.targetRx[slot], instant(s.evidence.at[slot].Load()))
					s.lastRx = max(s.lastRx, s.targetRx[slot])
				}
			}
		case c.validate.filters() && heard&(1<<filtered) != 0, !c.validate.filters() && frames != s.frames:
			s.lastRx = max(s.lastRx, m.looked)
			for slot := range s.targetRx {
				s.targetRx[slot] = s.lastRx
			}
		}
		s.frames = frames
	}
	m.looked = at
	b.dirty = b.dirty || b.activeProven() != m.proven
}

// activeProven reports whether the active slave has heard a target since it
// became the active one.
func (b *Bond) activeProven() bool {
	return b.active != nil && b.lastEvidence(b.active) >= b.active.lastLinkUp
}

// lastEvidence is when a slave was known to work. With arp_all_targets all that
// is when the target was heard that was heard least lately, in active-backup and
// where frames are validated.
func (b *Bond) lastEvidence(s *slave) instant {
	c := &b.config.arp
	if !c.allTargets || b.config.mode != ActiveBackup || !c.validate.covers(s.backup) {
		return s.lastRx
	}
	oldest := s.lastRx
	for i := range c.targets.V4 {
		oldest = min(oldest, s.targetRx[i])
	}
	for i := range c.targets.V6 {
		oldest = min(oldest, s.targetRx[probe.MaxTargets+i])
	}
	return oldest
}

// sight is what the monitor judges a slave by.
func (b *Bond) sight(s *slave) arpSight {
	return arpSight{link: b.view(s, monitorARP), backup: s.backup, barred: s.disabled || s.goneUntil != 0,
		lastRx: b.lastEvidence(s), lastTx: instant(s.evidence.tx.Load()), lastLinkUp: s.lastLinkUp}
}

// judgeByEvidence is one pass: it judges every slave, commits, and says who is
// to be probed.
func (b *Bond) judgeByEvidence(at, now instant) {
	t := b.arpTiming(at)
	if b.config.mode == ActiveBackup {
		b.passActiveBackup(t, now)
	} else {
		b.passBalanced(t, now)
	}
}

// settleByEvidence commits what a pass proposes. The cause of a failover that
// comes of it is on record.
func (b *Bond) settleByEvidence(proposals []linkState, now instant) {
	changed := false
	for i, s := range b.slaves {
		changed = changed || proposals[i] != s.link
		if proposals[i] == linkDown && s.link != linkDown {
			s.loss = loss{seen: s.loss.seen, at: max(s.lastRx, 0), why: CauseARP}
		}
	}
	if changed {
		b.commit(proposals, now)
	}
}

// moveEvidence follows a change of the targets: each keeps what was heard of it,
// and a new one counts as heard now.
func (b *Bond) moveEvidence(old *probe.Targets, now instant) {
	for _, s := range b.slaves {
		was := s.targetRx
		for i := range s.targetRx {
			s.targetRx[i] = now
		}
		for list, base := range map[*[]netip.Addr]int{&b.config.arp.targets.V4: 0, &b.config.arp.targets.V6: probe.MaxTargets} {
			for i, a := range *list {
				if slot, ok := old.Slot(a); ok {
					s.targetRx[base+i] = was[slot]
				}
			}
		}
		tx := s.evidence.tx.Load()
		s.evidence = newEvidence() // the data path's slots are others now
		s.evidence.tx.Store(tx)
	}
}
