package lacp

// Receive gives a port what it received: the payload of a frame with EtherType
// that was sent to Group. It reports whether the frame was for LACP and is done
// with; others (too short, or of another subtype) are counted and handled as
// ordinary frames. It keeps no part of the payload.
func (s *System) Receive(now Instant, id PortID, payload []byte) (consumed bool) {
	p := s.port(id)
	if p == nil {
		return false
	}
	s.enter(now, TriggerPDU)
	switch {
	case len(payload) < PDUSize:
		p.counters.IllegalRx++
		return false
	case payload[0] == SubtypeMarker:
		s.receiveMarker(p, payload)
		return true
	case payload[0] != SubtypeLACP:
		p.counters.UnknownRx++
		return false
	}
	p.counters.LACPDURx++
	_ = s.pdu.parse(payload) // cannot fail: length and subtype were checked
	s.receivePDU(p, &s.pdu)
	return true
}

// receivePDU is what the receive machine does with a LACPDU.
func (s *System) receivePDU(p *port, pdu *PDU) {
	if !p.cfg.Link.Up || !p.lacpEnabled() {
		p.counters.IgnoredRx++
		return
	}
	p.touched = true
	if pdu.Actor.System == s.cfg.System {
		p.counters.LoopRx++
		p.loopUntil = s.now + LoopTime
		s.setLoop(p, true, "own system heard")
		s.settle()
		return
	}
	s.findMoved(p, &pdu.Actor)
	s.move(p, ReceiveMachine, Current, "LACPDU received")
	s.enterCurrent(p, pdu)
	s.settle()
}

// runReceive runs the receive machine's arcs that need no PDU (IEEE 802.1AX,
// 6.4.12).
func (s *System) runReceive(p *port) {
	for {
		switch st := p.state[ReceiveMachine]; {
		case st == Initialize:
			s.move(p, ReceiveMachine, PortDisabled, "UCT")
			s.enterPortDisabled(p)
		case st == PortDisabled && !p.cfg.Link.Up:
			return
		case st == PortDisabled && p.lacpEnabled():
			s.move(p, ReceiveMachine, ExpiredState, "link is up")
			s.enterExpired(p)
		case st == PortDisabled:
			s.move(p, ReceiveMachine, LACPDisabled, "link is half duplex")
			s.enterLACPDisabled(p)
		case !p.cfg.Link.Up:
			s.move(p, ReceiveMachine, PortDisabled, "link is down")
			s.enterPortDisabled(p)
		case p.currentUntil > s.now:
			return
		case st == ExpiredState:
			s.move(p, ReceiveMachine, DefaultedState, "no LACPDU for 3 s more")
			s.enterDefaulted(p)
		default: // CURRENT: no other state has the timer running
			s.move(p, ReceiveMachine, ExpiredState, "no LACPDU in time")
			s.enterExpired(p)
		}
	}
}

func (s *System) enterInitialize(p *port) {
	s.unselect(p, "machines restarted")
	s.recordDefault(p)
	p.actor.State &^= Expired
}

func (s *System) enterPortDisabled(p *port) {
	p.partner.State &^= Synchronization
	p.currentUntil = Never
}

func (s *System) enterLACPDisabled(p *port) {
	s.unselect(p, "link is half duplex")
	s.recordDefault(p)
	p.partner.State &^= Aggregation
	p.actor.State &^= Expired
}

func (s *System) enterExpired(p *port) {
	p.partner.State = p.partner.State&^Synchronization | Timeout
	p.currentUntil = s.now + ShortTimeout
	p.actor.State |= Expired
	p.showMux()
}

// enterDefaulted replaces the partner by the defaults. A port that was with a
// partner looks for an aggregator of its own (update_Default_Selected).
func (s *System) enterDefaulted(p *port) {
	p.currentUntil = Never
	if !p.partner.sameEnd(&defaultPartner) {
		s.unselect(p, "partner silent")
	}
	p.ntt = true
	s.recordDefault(p)
	p.actor.State &^= Expired
	p.showMux()
}

func (s *System) recordDefault(p *port) {
	p.partner = defaultPartner
	p.actor.State |= Defaulted
}

// enterCurrent is update_Selected, update_NTT and recordPDU.
func (s *System) enterCurrent(p *port, pdu *PDU) {
	if !p.partner.sameEnd(&pdu.Actor) {
		s.unselect(p, "partner changed")
	}
	p.actor.State &^= Defaulted | Expired
	p.showMux()
	matched := p.actor.sameEnd(&pdu.Partner)
	const told = Activity | Timeout | Synchronization | Aggregation
	if !matched || (p.actor.State^pdu.Partner.State)&told != 0 {
		p.ntt = true
	}
	// An individual partner need not know us. One without a system is nobody.
	matched = (matched || !pdu.Actor.State.Has(Aggregation)) && pdu.Actor.heard()
	p.partner = pdu.Actor
	p.partner.State = p.partner.State.with(Synchronization, matched && pdu.Actor.State.Has(Synchronization))
	p.view, p.claimed = pdu.Partner, pdu.Actor.State
	p.lastRx = s.now
	p.currentUntil = s.now + LongTimeout
	if s.cfg.Fast {
		p.currentUntil = s.now + ShortTimeout
	}
}

// findMoved restarts a port without link whose partner is now heard on another
// one (port_moved), so that its status does not show a partner twice.
func (s *System) findMoved(p *port, partner *Info) {
	if !partner.heard() {
		return
	}
	for _, q := range s.ports {
		if q != p && q.state[ReceiveMachine] == PortDisabled &&
			q.partner.System == partner.System && q.partner.Port == partner.Port {
			s.move(q, ReceiveMachine, Initialize, "partner heard on another port")
			s.enterInitialize(q)
			q.touched = true
		}
	}
}
