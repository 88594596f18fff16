package lacp

// unselect is Selected := UNSELECTED.
func (s *System) unselect(p *port, why string) {
	if p.state[SelectionLogic] != Unselected {
		s.move(p, SelectionLogic, Unselected, why)
	}
	p.touched, s.regroup = true, true
}

// runSelection finds an aggregator for a port that has none (IEEE 802.1AX,
// 6.4.14). A port that was attached leaves its old one first, through the mux
// machine; one that is still WAITING and had no partner so far goes on waiting,
// so that the first PDU costs no time. A port whose link is down or looped has
// none, but goes on being shown with its last one.
func (s *System) runSelection(p *port) {
	fit := p.eligible()
	if !fit && p.state[SelectionLogic] != Unselected {
		why := "link is down"
		if p.looped {
			why = "own system heard: a loop"
		}
		s.unselect(p, why)
	}
	if p.state[SelectionLogic] != Unselected {
		return
	}
	if !fit || p.state[MuxMachine] != Waiting || p.agg.partner.heard() {
		s.runMux(p)
	}
	if !fit {
		return
	}
	s.choose(p)
	s.move(p, SelectionLogic, Standby, "an aggregator was found")
	s.regroup = true
}

// choose attaches a port to the aggregator that it fits into, or to an empty
// one, its last one before others. There are as many as there are ports, so
// there is one.
func (s *System) choose(p *port) {
	last := p.agg
	p.agg = nil
	var empty *aggregator
	for _, a := range s.aggs {
		if !s.empty(a) {
			if a.takes(p) {
				p.agg = a
				return
			}
		} else if empty == nil || a == last {
			empty = a
		}
	}
	empty.key, empty.partner = p.actor.Key, p.partner
	empty.individual = p.cfg.Link.Half || p.partner.heard() && !p.partner.State.Has(Aggregation)
	p.agg = empty
}

// takes reports whether a port can join an aggregator that has others: all its
// ports have the same key and the same partner with the same key. Ports without
// a partner stay alone, and so do individual ones.
func (a *aggregator) takes(p *port) bool {
	return !a.individual && !p.cfg.Link.Half && a.key == p.actor.Key &&
		p.partner.heard() && p.partner.State.Has(Aggregation) &&
		a.partner.System == p.partner.System && a.partner.SystemPriority == p.partner.SystemPriority &&
		a.partner.Key == p.partner.Key
}

func (s *System) empty(a *aggregator) bool {
	for _, p := range s.ports {
		if p.agg == a {
			return false
		}
	}
	return true
}
