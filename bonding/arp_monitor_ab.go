package bonding

import "slices"

// passActiveBackup is a pass in active-backup: only the active slave is probed;
// the backups have to hear its probes, which a switch floods. Without an active
// slave one after the other is tried, one in each interval.
func (b *Bond) passActiveBackup(t arpTiming, now instant) {
	m := &b.arp
	proposals := make([]linkState, len(b.slaves))
	searching := m.candidate != nil
	for i, s := range b.slaves {
		sight := b.sight(s)
		next := t.judgeBackup(sight, searching)
		switch {
		case next == sight.link:
		case next == linkUp:
			b.endTrial(nil)
		case next == linkFail:
			if s != b.active { // another monitor may have made it that
				s.setInactive()
			}
			b.dirty = true
			if b.active != nil {
				m.candidate = nil
			}
		case next == linkDown && s == b.active:
			m.candidate = nil
		}
		proposals[i] = b.say(s, monitorARP, next)
	}
	b.settleByEvidence(proposals, now)
	if b.active != nil {
		m.due = append(m.due, b.active)
		return
	}
	b.tryNext(t.now, now)
}

// endTrial takes the role from the slave that was tried, unless it is the one
// that becomes active.
func (b *Bond) endTrial(active *slave) {
	s := b.arp.candidate
	if s == nil {
		return
	}
	b.arp.candidate, b.dirty = nil, true
	if s == active {
		return
	}
	s.setInactive()
	if b.view(s, monitorARP) == linkBack {
		s.verdicts[monitorARP] = linkFail
	}
}

// tryNext gives the next usable slave the role of the active one for an
// interval, and has it probed.
func (b *Bond) tryNext(at, now instant) {
	m := &b.arp
	proposals := make([]linkState, len(b.slaves))
	for i, s := range b.slaves {
		proposals[i] = s.link
		if s.link == linkUp && !s.usable() {
			proposals[i] = b.say(s, monitorARP, linkDown)
		}
	}
	last := -1
	if m.candidate != nil {
		last = slices.Index(b.slaves, m.candidate)
	}
	i := nextCandidate(len(b.slaves), last, func(i int) bool { return b.slaves[i].usable() })
	if last >= 0 && i != last { // it may have been disabled during its trial
		m.candidate.setInactive()
		b.dirty = true
	}
	if i >= 0 {
		s := b.slaves[i]
		m.candidate = s
		proposals[i] = b.say(s, monitorARP, linkBack)
		s.setActive()
		s.lastLinkUp, s.waited = at, false
		m.due = append(m.due, s)
		b.dirty = true
	}
	b.settleByEvidence(proposals, now)
}
