package lacp

import (
	"math"
	"time"
)

// Instant is a moment: the time since any fixed one.
type Instant = time.Duration

// Never is the instant of what is not due.
const Never Instant = math.MaxInt64

// The times of IEEE 802.1AX, 6.4.4, and Linux.
const (
	FastPeriod    = time.Second
	SlowPeriod    = 30 * time.Second
	ShortTimeout  = 3 * time.Second
	LongTimeout   = 90 * time.Second
	AggregateWait = 2 * time.Second
	ChurnTime     = 60 * time.Second
	// LoopTime is how long a port counts as looped after it heard its own
	// system: one PDU may be lost even at the slow rate.
	LoopTime = LongTimeout
)

// Changes tells what a call changed.
type Changes uint8

// The changes.
const (
	DataChanged    Changes = 1 << iota // what Data returns, of some port
	ActiveChanged                      // what Active returns
	CarrierChanged                     // what Carrier returns
)

// Output takes what a System wants done. Its methods are called from within
// those of the System, which they must not call.
type Output interface {
	// Send sends a LACPDU or marker response on a port: 110 octets, which go
	// behind an Ethernet header with Group, the port's own address and
	// EtherType. They are valid until Send returns.
	Send(id PortID, pdu []byte)
	// Changed is called once in a call that changed something. Data, Active
	// and Carrier have the new values and may be called. It comes before the
	// PDUs that tell of the change, so that a port says that it takes frames
	// only when it does.
	Changed(c Changes)
}

// System is one bond: its ports, their machines, and the aggregators.
type System struct {
	cfg Config
	out Output

	ports []*port       // in the order of AddPort
	aggs  []*aggregator // by id; as many as there are ports

	now     Instant
	trigger Trigger
	regroup bool // the aggregators have to be compared
	changes Changes
	active  *aggregator
	carrier bool
	due     Instant // the next of all ports

	arcs    [machineCount][stateCount][stateCount]uint64
	retired Counters // of ports that are gone
	events  ring
	frame   [PDUSize]byte // scratch, so that nothing is allocated to send
	pdu     PDU           // scratch
}

// New makes a System without ports. It returns an error if the settings are
// not valid.
func New(c Config, out Output) (*System, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &System{cfg: c, out: out, due: Never}, nil
}

// Deadline returns when Advance has to be called next, and false if never.
// After Advance(now) it is later than now.
func (s *System) Deadline() (Instant, bool) { return s.due, s.due != Never }

// Advance runs what is due. Calling it early does nothing.
func (s *System) Advance(now Instant) {
	s.enter(now, TriggerTime)
	if s.due > s.now {
		return
	}
	for _, p := range s.ports {
		p.touched = p.touched || p.due <= s.now
	}
	s.settle()
}

// Data reports whether the data path may take frames from a port, and send
// frames on it.
func (s *System) Data(id PortID) (receive, transmit bool) {
	if p := s.port(id); p != nil {
		return p.receive, p.transmit
	}
	return false, false
}

// Active returns the id of the active aggregator, 0 if there is none.
func (s *System) Active() uint16 {
	if s.active == nil {
		return 0
	}
	return s.active.id
}

// Carrier reports whether the bond has a carrier: min_links ports of the active
// aggregator are usable.
func (s *System) Carrier() bool { return s.carrier }

func (s *System) port(id PortID) *port {
	for _, p := range s.ports {
		if p.id == id {
			return p
		}
	}
	return nil
}

// enter begins a call. Time does not go back: an instant before the last one
// counts as the last one.
func (s *System) enter(now Instant, t Trigger) {
	s.now = max(s.now, now)
	s.trigger = t
	s.changes = 0
}

// settle runs the machines until nothing moves. The order makes one pass
// enough: what a port heard decides where it belongs, all ports decide which
// aggregator is active, that decides what each may do, and what has come of it
// is told to the partners.
func (s *System) settle() {
	for _, p := range s.ports {
		if p.touched {
			s.runReceive(p)
			s.runLoop(p)
			s.runSelection(p)
		}
	}
	if s.regroup {
		s.elect()
	}
	for _, p := range s.ports {
		if p.touched {
			s.runDrain(p)
		}
	}
	s.runMuxes()
	for _, p := range s.ports {
		if p.touched {
			s.runPeriodic(p)
			s.runChurn(p, ActorChurn, &p.actorAt, p.churnState())
			s.runChurn(p, PartnerChurn, &p.partnerAt, p.partner.State)
			s.updateData(p)
		}
	}
	s.updateCarrier()
	if s.changes != 0 {
		s.out.Changed(s.changes)
	}
	s.due = Never
	for _, p := range s.ports {
		if p.touched {
			p.touched = false
			p.due = min(s.transmit(p), s.muxDue(p), p.currentUntil, p.periodicAt, p.actorAt, p.partnerAt, p.loopUntil, p.drain.until)
		}
		s.due = min(s.due, p.due)
	}
}

// updateData decides what the data path may do with a port.
func (s *System) updateData(p *port) {
	fallback := s.fallback(p)
	receive := fallback || p.actor.State.Has(Collecting)
	transmit := fallback || p.actor.State.Has(Distributing)
	if fallback != p.fallback {
		p.fallback = fallback
		s.note(p, Fallback, bit(!fallback), bit(fallback), "one port works alone while no partner is heard")
	}
	if receive != p.receive || transmit != p.transmit {
		p.receive, p.transmit = receive, transmit
		s.changes |= DataChanged
	}
}

func bit(b bool) uint16 {
	if b {
		return 1
	}
	return 0
}
