package bonding

import "time"

// linkState is a slave's link as the bond sees it, with Linux's numbers.
type linkState uint8

const (
	linkUp   linkState = 0 // in use
	linkFail linkState = 1 // lost, downdelay running
	linkDown linkState = 2
	linkBack linkState = 3 // found again, updelay running
)

var linkNames = [...]string{"up", "going down", "down", "going back"}

// String returns the state as /proc/net/bonding shows it.
func (l linkState) String() string { return linkNames[l] }

// linkMachine is the MII monitor's state of one slave.
type linkMachine struct {
	link linkState
	// until is when the delay of linkFail or linkBack is over.
	until instant
	// waited is whether a pass has seen the link in linkBack. Who has only
	// been enslaved or enabled has not waited at all, and is not used early.
	waited bool
}

// passInput is what one pass of the monitor is given beside the links.
type passInput struct {
	now         instant
	updelay     time.Duration
	downdelay   time.Duration
	ignoreDelay bool // the first slave that comes back does so at once
}

// inspect is one pass over one slave. Linux counts the passes of a delay; here
// a delay ends at a moment, which is the same where passes are what finds a
// change, and is exact where the link itself told of it. It returns the state
// proposed, which is the present one where nothing is to be done, and whether
// the bypass of updelay was used.
func (m *linkMachine) inspect(usable bool, in passInput) (next linkState, bypassed bool) {
	switch {
	case m.link == linkUp && !usable:
		m.until = in.now.add(in.downdelay)
		fallthrough
	case m.link == linkFail && !usable:
		if in.now >= m.until {
			return linkDown, false
		}
		return linkFail, false
	case m.link == linkFail:
		return linkUp, false
	case m.link == linkBack && !usable:
		return linkDown, false
	case m.link == linkDown && usable:
		m.until = in.now.add(in.updelay)
		fallthrough
	case m.link == linkBack:
		m.waited = true
		if in.ignoreDelay || in.now >= m.until {
			return linkUp, in.ignoreDelay
		}
		return linkBack, false
	}
	return m.link, false
}

// pass inspects every slave and commits what it finds: the MII monitor's one
// pass. It runs every miimon, at the end of a delay, and whenever a link tells
// of a change. Without a monitor it only looks: the modes that spread leave out
// slaves without carrier, monitored or not.
func (b *Bond) pass(now instant) {
	monitored := b.config.miimon > 0 && b.dispatcher != nil
	in := passInput{
		now:         now,
		updelay:     b.config.passes(b.config.updelay),
		downdelay:   b.config.passes(b.config.downdelay),
		ignoreDelay: b.ignoresUpdelay(),
	}
	proposals := make([]linkState, len(b.slaves))
	changed := false
	for i, s := range b.slaves {
		was, speed := s.usable(), s.state.Speed
		if s.goneUntil != 0 && now >= s.goneUntil {
			s.goneUntil = 0
		}
		s.look()
		s.noteLoss(was, now)
		b.dirty = b.dirty || was != s.usable() || speed != s.state.Speed // weights are speeds
		if !monitored {
			continue
		}
		mine := s.linkMachine
		mine.link = b.view(s, monitorMII)
		next, bypassed := mine.inspect(s.usable(), in)
		s.until, s.waited = mine.until, mine.waited
		if bypassed {
			in.ignoreDelay = false
		}
		proposals[i] = b.say(s, monitorMII, next)
		changed = changed || proposals[i] != s.link
	}
	if changed {
		b.commit(proposals, now)
	}
	b.watchMAC()
}

// ignoresUpdelay reports whether the first slave to come back skips its
// updelay: active-backup without an active slave, or a hash mode in which none
// is usable. The other modes always wait, as in Linux.
func (b *Bond) ignoresUpdelay() bool {
	mode := b.config.mode.info()
	switch {
	case b.config.mode == ActiveBackup:
		return b.active == nil
	case b.config.mode == IEEE8023AD && (b.lag == nil || b.lag.system.Active() == 0):
		return false
	case mode.hash, b.config.mode.balances():
		return len(b.slaves) > 0 && !b.anyUsable()
	}
	return false
}

func (b *Bond) anyUsable() bool {
	for _, s := range b.slaves {
		if s.canTransmit() {
			return true
		}
	}
	return false
}

// commit takes over the proposals of a pass, and selects an active slave where
// one of them asks for it.
func (b *Bond) commit(proposals []linkState, now instant) {
	old := make([]linkState, len(b.slaves))
	for i, s := range b.slaves {
		old[i], s.link = s.link, proposals[i]
	}
	reselect := false
	for i, s := range b.slaves {
		if s.link == old[i] {
			continue
		}
		b.dirty = true
		switch s.link {
		case linkUp:
			reselect = b.commitUp(s, now) || reselect
		case linkDown:
			reselect = b.commitDown(s) || reselect
			if !s.disabled {
				s.flap.lost(now, b.config.flapBackoff)
			}
		}
		b.linkEvent(s, old[i])
	}
	if reselect {
		b.reselect(now)
	}
}

// propose commits a proposal for one slave, over the heads of its monitors.
func (b *Bond) propose(s *slave, next linkState, now instant) {
	s.verdicts.all(next)
	if next == linkUp {
		s.lastLinkUp = now
	}
	proposals := make([]linkState, len(b.slaves))
	for i, other := range b.slaves {
		proposals[i] = other.link
		if other == s {
			proposals[i] = next
		}
	}
	b.commit(proposals, now)
}

// commitUp is a slave's link becoming usable. It reports whether the active
// slave is to be selected anew.
func (b *Bond) commitUp(s *slave, now instant) bool {
	if b.config.miimon > 0 { // else its activation counts
		s.lastLinkUp = now
	}
	switch {
	case b.config.mode.balances():
		b.linkUpLB(s, now)
	case b.config.mode != ActiveBackup && b.config.mode != IEEE8023AD: // LACP gives the role there
		s.setActive()
	}
	return b.active == nil || s == b.primary || s.prio > b.active.prio
}

// commitDown is a slave's link being lost for good.
func (b *Bond) commitDown(s *slave) bool {
	if s.failures != ^uint32(0) {
		s.failures++
	}
	switch {
	case b.config.mode.balances():
		b.linkDownLB(s)
	case b.config.mode == ActiveBackup || b.config.mode == IEEE8023AD:
		s.setInactive()
	}
	return s == b.active
}

// unmonitored is the warning for miimon 0.
const unmonitored = "miimon is 0: links are not monitored, and no slave is ever found to be down"

// miimonChanged starts, stops or hurries the passes. Linux runs a pass at once
// when miimon is set.
func (b *Bond) miimonChanged(now instant) {
	switch {
	case b.config.miimon == 0:
		b.nextPass = 0
		if b.config.monitors() == 0 {
			b.warn(unmonitored)
		}
	case b.dispatcher != nil:
		b.nextPass = now
	}
}

// arm sets the timer to what is due next: a pass, the end of a delay, or an
// announcement.
func (b *Bond) arm(now instant) {
	due := b.nextPass
	earlier := func(at instant) {
		if at != 0 && (due == 0 || at < due) {
			due = at
		}
	}
	if b.nextPass != 0 {
		for _, s := range b.slaves {
			if l := b.view(s, monitorMII); l == linkFail || l == linkBack {
				earlier(s.until)
			}
		}
	}
	earlier(b.arp.deadline())
	for _, s := range b.slaves {
		earlier(s.graceUntil)
		if s.flap.holds(now) {
			earlier(s.flap.until)
		}
	}
	earlier(b.notify.due)
	earlier(b.resend.due)
	if b.copies != nil {
		earlier(b.copies.due)
	}
	if b.lag != nil {
		earlier(b.lag.deadline())
	}
	if b.balancer != nil {
		earlier(b.balancer.deadline())
	}
	if due == b.armed {
		return
	}
	b.armed = due
	switch {
	case due == 0:
		b.timer.Stop()
	case b.timer == nil:
		b.timer = b.clock.AfterFunc(time.Duration(max(due-now, 0)), b.timerFired)
	default:
		b.timer.Reset(time.Duration(max(due-now, 0)))
	}
}

// timerFired does what is due.
func (b *Bond) timerFired() {
	b.control(func(now instant) {
		b.armed = 0
		if b.nextPass != 0 {
			if now >= b.nextPass {
				b.nextPass = now.add(b.config.miimon)
			}
			b.pass(now)
		}
		b.runARPMonitor(now)
	})
}

// set runs f, which calls setters of slaves' endpoints, with mu held. What a link
// tells from within one waits until mu is free: a bond never does that, other
// links may.
func (b *Bond) set(f func()) {
	b.setting.Store(true)
	defer b.setting.Store(false)
	f()
}

// whenFree runs f, which takes mu, now or, where a link calls from within a
// setter, soon.
func (b *Bond) whenFree(f func()) {
	if b.setting.Load() {
		b.clock.AfterFunc(0, f)
		return
	}
	f()
}

// linkChanged is called by a link that tells of a change.
func (b *Bond) linkChanged(s *slave) { b.whenFree(func() { b.takeLinkChange(s) }) }

// takeLinkChange looks at the links, of which one has changed.
func (b *Bond) takeLinkChange(s *slave) {
	b.control(func(now instant) {
		if !s.released {
			s.goneUntil = 0
			b.failovers.told = s
			b.pass(now)
			b.failovers.told = nil
		}
	})
}
