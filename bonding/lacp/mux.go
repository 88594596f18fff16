package lacp

// runMuxes runs the mux machines of the ports that were touched, and of all
// ports once one has moved, since a port can wait for others.
func (s *System) runMuxes() {
	moved := false
	for _, p := range s.ports {
		if p.touched {
			moved = s.runMux(p) || moved
		}
	}
	if !moved && !s.regroup {
		return
	}
	s.regroup = false
	for _, p := range s.ports {
		s.runMux(p)
		p.touched = true
	}
}

// runMux runs a port's mux machine (IEEE 802.1AX, 6.4.15) until no arc is
// open, and reports whether it moved.
func (s *System) runMux(p *port) (moved bool) {
	for {
		to, why := s.muxNext(p)
		if to == p.state[MuxMachine] {
			return moved
		}
		s.muxTo(p, to, why)
		moved = true
	}
}

// muxNext returns where the mux machine goes from here, and why.
func (s *System) muxNext(p *port) (to MachineState, why string) {
	st := p.state[MuxMachine]
	chosen := p.state[SelectionLogic]
	sync := p.partner.State.Has(Synchronization)
	lost := "partner is not in sync"
	if chosen != Selected {
		lost = "port left the aggregator, or it is not active"
	}
	switch st {
	case Detached:
		if chosen != Unselected {
			return Waiting, "an aggregator was found"
		}
	case Waiting:
		if chosen == Unselected {
			return Detached, "port left the aggregator"
		}
		if chosen == Selected && s.ready(p) {
			return Attached, "waited for others"
		}
	case Attached:
		if chosen != Selected {
			return Detached, lost
		}
		if sync && p.starts.allow(s.now) {
			if s.cfg.Independent {
				return CollectingState, "partner is in sync"
			}
			return CollectingDistributing, "partner is in sync"
		}
	case CollectingDistributing:
		if chosen != Selected || !sync {
			return Attached, lost
		}
	case CollectingState:
		if chosen != Selected || !sync {
			return Attached, lost
		}
		if p.partner.State.Has(Collecting) {
			return DistributingState, "partner is collecting"
		}
	case DistributingState:
		if chosen != Selected || !sync {
			return CollectingState, lost
		}
		if !p.partner.State.Has(Collecting) {
			return CollectingState, "partner is not collecting"
		}
	}
	return st, ""
}

// muxTo enters a state of the mux machine.
func (s *System) muxTo(p *port, to MachineState, why string) {
	from := p.state[MuxMachine]
	s.move(p, MuxMachine, to, why)
	p.showMux()
	if to == Waiting {
		p.waitUntil = s.now + AggregateWait
	}
	if from == Attached && to > Attached {
		p.starts.note(s.now)
	}
}

// showMux has the state octet tell the state of the mux machine, and the
// partner be told if it has changed: also in DISTRIBUTING, where the standard
// spares the PDU, after which a slow partner would show the wrong state for
// 30 s. In EXPIRED the
// port is not in sync, whatever the mux machine says: with a link that is cut
// one way, the partner would otherwise go on sending into it until DEFAULTED.
func (p *port) showMux() {
	bits := Synchronization | Collecting | Distributing
	switch p.state[MuxMachine] {
	case Detached, Waiting:
		bits = 0
	case Attached:
		bits = Synchronization
	case CollectingState:
		bits = Synchronization | Collecting
	}
	if p.state[ReceiveMachine] == ExpiredState {
		bits &^= Synchronization
	}
	bits &^= p.drain.hides()
	bits |= p.actor.State &^ (Synchronization | Collecting | Distributing)
	if bits != p.actor.State {
		p.actor.State, p.ntt = bits, true
	}
}

// stopData takes a port back to ATTACHED, from where it goes on by the other
// kind of control.
func (s *System) stopData(p *port, why string) {
	if p.state[MuxMachine] == DistributingState {
		s.muxTo(p, CollectingState, why)
	}
	if p.state[MuxMachine] > Attached {
		s.muxTo(p, Attached, why)
	}
}

// ready is Ready for one port: it has waited, and so has every port that began
// to wait for the same aggregator in that time, so that ports that come up
// together attach together. Ports that began later are not waited for: one that
// keeps changing its mind cannot hold up the others.
func (s *System) ready(p *port) bool {
	if p.waitUntil > s.now {
		return false
	}
	for _, q := range s.ports {
		if q.agg == p.agg && q.state[MuxMachine] == Waiting && q.state[SelectionLogic] == Selected &&
			q.waitUntil > s.now && q.waitUntil-AggregateWait < p.waitUntil {
			return false
		}
	}
	return true
}

// muxDue is when the mux machine wants to run again. A port that waits for
// others is run by them. A port may come back to collecting three times a
// second, so that a partner that flickers cannot keep the data path busy.
func (s *System) muxDue(p *port) Instant {
	switch {
	case p.state[SelectionLogic] != Selected:
		return Never
	case p.state[MuxMachine] == Waiting && p.waitUntil > s.now:
		return p.waitUntil
	case p.state[MuxMachine] == Attached && p.partner.State.Has(Synchronization):
		return p.starts.from()
	}
	return Never
}
