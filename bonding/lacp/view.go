package lacp

// Status is what a System is in at one moment: all that Linux shows of mode
// 802.3ad, and more. It shares nothing with the System.
type Status struct {
	Config           Config
	SystemPriority   uint16 // in force
	Carrier          bool
	Active           *AggregatorStatus  // nil if there is none
	Aggregators      []AggregatorStatus // those with ports, by id
	Ports            []PortStatus       // in the order of AddPort
	Counters         Counters           // of all ports, the removed ones too
	CollectorControl string             // "coupled" or "independent"
}

// AggregatorStatus is an aggregator with ports.
type AggregatorStatus struct {
	ID         uint16
	Active     bool
	Ports      int      // that are usable: "Number of ports" of Linux
	Members    []PortID // all, those without a link too
	ActorKey   uint16
	PartnerKey uint16
	PartnerMAC MAC
	Individual bool
	Bandwidth  uint64 // of the usable ports, Mbit/s; unknown speeds count as 0
}

// PortStatus is a port.
type PortStatus struct {
	Number       PortID
	Aggregator   uint16 // id, 0 if it never had one
	Link         LinkState
	Actor        Info // details actor lacp pdu
	Partner      Info // details partner lacp pdu
	Heard        bool // a partner is known, Partner is not the default
	ActorChurn   MachineState
	PartnerChurn MachineState
	ActorCount   uint32 // times churned
	PartnerCount uint32
	Receive      MachineState // of the machines
	Periodic     MachineState
	Mux          MachineState
	Selection    MachineState
	Looped       bool
	Drain        DrainStage
	Fallback     bool // carries data without a partner
	Takes        bool // the data path takes frames from it
	Sends        bool // the data path sends frames on it
	LastRx       Instant
	Counters     Counters
}

// Status returns the present state.
func (s *System) Status() Status {
	st := Status{Config: s.cfg, SystemPriority: s.cfg.systemPriority(), Carrier: s.carrier,
		Counters: s.retired, CollectorControl: "coupled"}
	if s.cfg.Independent {
		st.CollectorControl = "independent"
	}
	s.census()
	for _, a := range s.aggs {
		if !s.empty(a) {
			st.Aggregators = append(st.Aggregators, s.aggregatorStatus(a))
		}
	}
	for i := range st.Aggregators {
		if st.Aggregators[i].Active {
			active := st.Aggregators[i]
			st.Active = &active
		}
	}
	for _, p := range s.ports {
		st.Ports = append(st.Ports, p.status())
		st.Counters.add(&p.counters)
	}
	return st
}

func (s *System) aggregatorStatus(a *aggregator) AggregatorStatus {
	st := AggregatorStatus{ID: a.id, Active: a == s.active, Ports: a.usable, ActorKey: a.key,
		PartnerKey: a.partner.Key, PartnerMAC: a.partner.System, Individual: a.individual, Bandwidth: a.bandwidth}
	for _, p := range s.ports {
		if p.agg == a {
			st.Members = append(st.Members, p.id)
		}
	}
	return st
}

// Port returns the state of one port, and false if there is none of the number.
func (s *System) Port(id PortID) (PortStatus, bool) {
	p := s.port(id)
	if p == nil {
		return PortStatus{}, false
	}
	return p.status(), true
}

func (p *port) status() PortStatus {
	st := PortStatus{Number: p.id, Link: p.cfg.Link, Actor: p.actor, Partner: p.partner, Heard: p.partner.heard(),
		ActorChurn: p.state[ActorChurn], PartnerChurn: p.state[PartnerChurn],
		ActorCount: p.churns[0], PartnerCount: p.churns[1],
		Receive: p.state[ReceiveMachine], Periodic: p.state[PeriodicMachine], Mux: p.state[MuxMachine],
		Selection: p.state[SelectionLogic], Looped: p.looped, Fallback: p.fallback, Drain: p.drain.stage,
		Takes: p.receive, Sends: p.transmit, LastRx: p.lastRx, Counters: p.counters}
	if p.agg != nil {
		st.Aggregator = p.agg.id
	}
	return st
}

// ChurnName returns Linux's name of a churn state.
func ChurnName(s MachineState) string {
	switch s {
	case ChurnMonitor:
		return "monitoring"
	case Churned:
		return "churned"
	case NoChurn:
		return "none"
	}
	return "unknown"
}
