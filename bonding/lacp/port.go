package lacp

import "fmt"

// PortID is a port's number, from 1. It is the number that the partner sees,
// so it should be unique among the ports of all Systems of a process: two bonds
// may share their system address.
type PortID uint16

// PortConfig describes a port to AddPort.
type PortConfig struct {
	Number PortID
	// Priority is actor_port_prio, DefaultPortPriority unless set. To the
	// standard smaller is better; to the policy PortPrio greater is.
	Priority uint16
	// UserKey is ad_user_port_key, 0 to 1023: the upper ten bits of the key.
	// Ports with different ones are never aggregated.
	UserKey uint16
	// Link is the state of the link now.
	Link LinkState
}

// port is what the machines of one port share. All is written by the System's
// calls.
type port struct {
	id  PortID
	cfg PortConfig // Link kept up to date

	actor   Info // what the port tells of itself, state bits included
	partner Info // operational partner: recorded, or the defaults
	view    Info // what the last PDU said of this port, for Explain
	claimed State

	state [machineCount]MachineState
	agg   *aggregator // nil before the first selection

	ntt      bool // NTT: there is something to tell
	touched  bool // machines have to run
	looped   bool
	receive  bool // the data path takes frames
	transmit bool // the data path sends frames
	fallback bool
	drain    drain

	currentUntil Instant // current_while_timer
	periodicAt   Instant // periodic_timer
	waitUntil    Instant // wait_while_timer
	actorAt      Instant // actor_churn_timer
	partnerAt    Instant // partner_churn_timer
	loopUntil    Instant
	due          Instant // the next of all

	sent     limiter // LACPDUs
	markers  limiter // marker responses
	starts   limiter // entries to collecting
	lastRx   Instant // of a LACPDU from a partner
	churns   [2]uint32
	counters Counters
	events   ring
}

// defaultPartner is the administrative partner, as in Linux.
var defaultPartner = Info{SystemPriority: 0xffff, Key: 1, PortPriority: 255, Port: 1}

func unknownPort(id PortID) error { return fmt.Errorf("lacp: there is no port %d", id) }

// AddPort adds a port and starts its machines.
func (s *System) AddPort(now Instant, c PortConfig) error {
	switch {
	case c.Number == 0:
		return fmt.Errorf("lacp: port number 0 is not one of 1 to 65535")
	case s.port(c.Number) != nil:
		return fmt.Errorf("lacp: port number %d is in use", c.Number)
	case c.UserKey > MaxUserKey:
		return fmt.Errorf("lacp: user key %d of port %d is not one of 0 to %d", c.UserKey, c.Number, MaxUserKey)
	}
	s.enter(now, TriggerAdd)
	p := &port{id: c.Number, cfg: c, partner: defaultPartner, lastRx: Never, loopUntil: Never,
		currentUntil: Never, periodicAt: Never, waitUntil: Never, actorAt: Never, partnerAt: Never,
		drain: drain{until: Never}}
	s.ports = append(s.ports, p)
	s.addAggregator()
	s.begin(p, "new port")
	s.settle()
	return nil
}

// RemovePort takes a port out. A port that was talking says farewell with a
// last PDU, in which aggregation, synchronization, collecting and distributing
// are clear, so that the partner stops using the link at once. That PDU does
// not wait for the limit of three a second.
func (s *System) RemovePort(now Instant, id PortID) error {
	p := s.port(id)
	if p == nil {
		return unknownPort(id)
	}
	s.enter(now, TriggerRemove)
	if s.talking(p) {
		p.actor.State &^= Aggregation | Synchronization | Collecting | Distributing
		s.send(p)
	}
	s.unselect(p, "port removed")
	s.runMux(p)
	s.drop(p)
	s.note(nil, Removed, uint16(id), 0, "port removed")
	s.settle()
	return nil
}

// Close removes all ports.
func (s *System) Close(now Instant) {
	for len(s.ports) > 0 {
		_ = s.RemovePort(now, s.ports[len(s.ports)-1].id) // it is there
	}
}

// drop forgets a port: its counters go to those of the System.
func (s *System) drop(p *port) {
	if p.receive || p.transmit {
		s.changes |= DataChanged
	}
	p.agg = nil
	for i, q := range s.ports {
		if q == p {
			s.ports = append(s.ports[:i], s.ports[i+1:]...)
			break
		}
	}
	s.retired.add(&p.counters)
	s.dropAggregator()
	s.regroup = true
}

// LinkChanged tells a port of the state of its link. It does nothing if the
// state is the one that the port has.
func (s *System) LinkChanged(now Instant, id PortID, l LinkState) error {
	p := s.port(id)
	if p == nil {
		return unknownPort(id)
	}
	old := p.cfg.Link
	if old == l {
		return nil
	}
	s.enter(now, TriggerLink)
	p.cfg.Link = l
	p.touched = true
	switch {
	case !old.Up && l.Up:
		s.begin(p, "link up")
	case old.Up && l.Up && old.Half != l.Half:
		s.begin(p, "duplex changed")
	default:
		s.rekey(p)
	}
	s.settle()
	return nil
}

// rekey has a port whose key changed look for another aggregator. The partner
// stays known: it will answer to the new key.
func (s *System) rekey(p *port) {
	old := p.actor.Key
	s.describe(p)
	if p.actor.Key != old && p.cfg.Link.Up {
		s.unselect(p, "key changed")
	}
	s.regroup = true // bandwidth counts
}

// begin restarts a port's machines (BEGIN).
func (s *System) begin(p *port, why string) {
	p.touched = true
	p.drain.restart()
	s.describe(p)
	if p.state[ReceiveMachine] != Initialize {
		s.move(p, ReceiveMachine, Initialize, why)
	}
	s.setLoop(p, false, why)
	s.enterInitialize(p)
	p.lastRx = Never
	p.actorAt, p.partnerAt = Never, Never
	for _, m := range [...]Machine{ActorChurn, PartnerChurn} {
		if p.state[m] != ChurnMonitor {
			s.move(p, m, ChurnMonitor, why)
		}
	}
	s.stopPeriodic(p, why)
	s.runMux(p)
	p.ntt = true
	s.regroup = true
}

// eligible reports whether a port may be in an aggregator.
func (p *port) eligible() bool { return p.cfg.Link.Up && !p.looped }

// lacpEnabled is LACP_Enabled.
func (p *port) lacpEnabled() bool { return !p.cfg.Link.Half }
