package lacp

// setLoop marks a port that hears its own system: it is cabled to another port
// of the bond, or to something that reflects. A marked port is in no
// aggregator, and PDUs of its own system move none of its machines, so they
// raise no rate.
func (s *System) setLoop(p *port, looped bool, why string) {
	if !looped {
		p.loopUntil = Never
	}
	if p.looped == looped {
		return
	}
	p.looped = looped
	p.touched, s.regroup = true, true
	s.note(p, Loop, bit(!looped), bit(looped), why)
}

// runLoop unmarks a port that has not heard its own system for a while.
func (s *System) runLoop(p *port) {
	if p.loopUntil <= s.now {
		s.setLoop(p, false, "own system not heard for 90 s")
	}
	if p.looped && !p.cfg.Link.Up {
		s.setLoop(p, false, "link is down")
	}
}
