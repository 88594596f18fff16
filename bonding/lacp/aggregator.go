package lacp

// aggregator is a set of ports that can work as one link. The first three
// fields after the id are fixed when the first port comes.
type aggregator struct {
	id         uint16
	key        uint16 // operational key of its ports
	partner    Info   // of the first port; only what takes compares counts
	individual bool   // its port cannot be aggregated

	// What follows is counted anew by each election.

	usable    int // ports with a link and without a loop
	priority  int // sum of their priorities
	bandwidth uint64
}

// addAggregator adds one with the smallest free id. Linux makes one with each
// slave and counts on; the ids are the same until a slave goes.
func (s *System) addAggregator() {
	id, at := uint16(1), 0
	for at < len(s.aggs) && s.aggs[at].id == id {
		id++
		at++
	}
	s.aggs = append(s.aggs, nil)
	copy(s.aggs[at+1:], s.aggs[at:])
	s.aggs[at] = &aggregator{id: id}
}

// dropAggregator removes the last one that is empty. Those with ports keep
// their ids.
func (s *System) dropAggregator() {
	for i := len(s.aggs) - 1; i >= 0; i-- {
		if s.empty(s.aggs[i]) {
			if s.active == s.aggs[i] {
				s.activate(nil, "its last port was removed")
			}
			s.aggs = append(s.aggs[:i], s.aggs[i+1:]...)
			return
		}
	}
}

// elect finds the active aggregator, and puts the ports of the others on
// standby.
func (s *System) elect() {
	s.census()
	var best *aggregator
	if s.active != nil && s.active.usable > 0 {
		best = s.active
	}
	for _, a := range s.aggs {
		if a.usable > 0 && a != best && (best == nil || s.better(a, best)) {
			best = a
		}
	}
	why := "better by ad_select"
	switch old := s.active; {
	case old == nil:
		why = "the first that is usable"
	case old.usable == 0:
		why = "the last one has no usable port"
	case s.cfg.Select == Stable && (old.partner.heard() || !best.partner.heard()):
		best = old
	case !old.partner.heard() && best.partner.heard():
		why = "it has a partner"
	}
	if best != s.active {
		s.activate(best, why)
	}
	for _, p := range s.ports {
		s.standby(p)
	}
}

// census counts what the election compares.
func (s *System) census() {
	for _, a := range s.aggs {
		a.usable, a.priority, a.bandwidth = 0, 0, 0
	}
	for _, p := range s.ports {
		if p.eligible() && p.agg != nil {
			p.agg.usable++
			p.agg.priority += int(p.cfg.Priority)
			p.agg.bandwidth += p.cfg.Link.bandwidth()
		}
	}
}

// better reports whether a is to be preferred to b, which is kept when they are
// equal. With a partner is better than without, aggregatable better than
// individual, then ad_select decides.
func (s *System) better(a, b *aggregator) bool {
	if h := a.partner.heard(); h != b.partner.heard() {
		return h
	}
	if a.individual != b.individual {
		return b.individual
	}
	if s.cfg.Select == PortPrio && a.priority != b.priority {
		return a.priority > b.priority
	}
	if (s.cfg.Select == PortPrio || s.cfg.Select == Count) && a.usable != b.usable {
		return a.usable > b.usable
	}
	return a.bandwidth > b.bandwidth
}

func (s *System) activate(a *aggregator, why string) {
	old := s.Active()
	s.active = a
	s.note(nil, ActiveAggregator, old, s.Active(), why)
	s.changes |= ActiveChanged
}

// standby sets a port SELECTED or STANDBY by whether its aggregator is the
// active one.
func (s *System) standby(p *port) {
	switch active := p.agg == s.active; {
	case p.state[SelectionLogic] == Standby && active:
		s.move(p, SelectionLogic, Selected, "the aggregator is active")
	case p.state[SelectionLogic] == Selected && !active:
		s.move(p, SelectionLogic, Standby, "the aggregator is not active")
	}
}

// fallback reports whether a port works without a partner: it is the one of the
// active aggregator, and there is nobody to talk to.
func (s *System) fallback(p *port) bool {
	st := p.state[ReceiveMachine]
	return !s.cfg.Strict && p.agg != nil && p.agg == s.active && p.state[SelectionLogic] == Selected &&
		!p.partner.heard() && (st == DefaultedState || st == LACPDisabled)
}

// updateCarrier decides the bond's carrier: enough ports of the active
// aggregator have a link, or, where strict, distribute.
func (s *System) updateCarrier() {
	n := uint32(0)
	for _, p := range s.ports {
		if p.agg != nil && p.agg == s.active && p.eligible() &&
			(!s.cfg.Strict || p.actor.State.Has(Collecting|Distributing)) {
			n++
		}
	}
	if on := n >= max(s.cfg.MinLinks, 1); on != s.carrier {
		s.carrier = on
		s.note(nil, Carrier, bit(!on), bit(on), "ports that count against min_links")
		s.changes |= CarrierChanged
	}
}
