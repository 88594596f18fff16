package bonding

import "bondstack/link"

// choose selects the active slave among slaves by Linux's rules. primary may be
// nil; takeOver has it preferred once whatever primary_reselect says, and used
// reports that this was made use of. It reads the slaves and changes nothing.
func choose(slaves []*slave, active, primary *slave, reselect PrimaryReselect, takeOver bool) (best *slave, used bool) {
	candidate := primary
	if candidate == nil || candidate.link != linkUp {
		// Without a primary that is up, the slave of the greatest priority
		// stands in for it. Equal priorities, as by default, make that the
		// first one: so primary_reselect=always moves back to it whenever
		// selection runs.
		candidate = greatestUp(slaves)
		if candidate == nil || candidate == active {
			if active != nil && active.link == linkUp {
				return active, false
			}
			return firstUsable(slaves), false
		}
	} else if takeOver {
		return candidate, true
	}
	if active == nil || active.link != linkUp {
		return candidate, false
	}
	switch reselect {
	case ReselectAlways:
		return candidate, false
	case ReselectBetter:
		if faster(candidate.state, active.state) {
			return candidate, false
		}
	}
	return active, false
}

// greatestUp returns the slave of the greatest priority whose link is up, the
// first of equals.
func greatestUp(slaves []*slave) *slave {
	var best *slave
	for _, s := range slaves {
		if s.link == linkUp && (best == nil || s.prio > best.prio) {
			best = s
		}
	}
	return best
}

// firstUsable returns the first slave that is up; where none is, that one on
// its way up which has waited longest, if it has waited at all.
func firstUsable(slaves []*slave) *slave {
	var best *slave
	for _, s := range slaves {
		switch {
		case s.link == linkUp:
			return s
		case s.link == linkBack && s.usable() && s.waited && (best == nil || s.until < best.until):
			best = s
		}
	}
	return best
}

// faster reports whether a link is better than another: of greater speed, or
// of equal speed and greater duplex. What is unknown counts as greatest.
func faster(a, b link.State) bool {
	if a.Speed != b.Speed {
		return a.Speed > b.Speed
	}
	return a.Duplex > b.Duplex
}

// reselect runs the selection and changes to what it chose.
func (b *Bond) reselect(now instant) {
	slaves, active, primary := b.candidates()
	best, used := choose(slaves, active, primary, b.config.reselect, b.takeOver)
	if used {
		b.takeOver = false
	}
	b.changeActive(best, now)
}

// rematchPrimary finds the slave that the primary's name stands for. The name
// is kept where there is none.
func (b *Bond) rematchPrimary() {
	b.primary = nil
	for _, s := range b.slaves {
		if s.name == b.config.primary {
			b.primary, b.takeOver = s, true
		}
	}
}

// activate is active_slave: a switch by hand, once. An empty name lets the
// selection decide.
func (b *Bond) activate(name string, now instant) {
	b.failovers.why = CauseByHand
	if name == "" {
		b.changeActive(nil, now)
		b.reselect(now)
		return
	}
	for _, s := range b.slaves {
		if s.name == name {
			b.changeActive(s, now)
		}
	}
}
