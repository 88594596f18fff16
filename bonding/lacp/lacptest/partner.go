package lacptest

import (
	"time"

	"bondstack/bonding/lacp"
)

// Heard is a LACPDU that a Partner received.
type Heard struct {
	At  lacp.Instant
	PDU lacp.PDU
}

// Partner is a station with one port that says what a test has it say. Its
// fields may be changed at any moment.
type Partner struct {
	// Actor is what it tells of itself.
	Actor lacp.Info
	// Stubborn has it tell View of the other end. Otherwise it tells what it
	// heard last.
	Stubborn bool
	View     lacp.Info
	// Replies has it answer each PDU at once.
	Replies bool
	// Every is its period, from the last PDU that it sent. 0 is never.
	Every time.Duration
	// Silent has it say nothing.
	Silent bool
	// Heard are the LACPDUs that came.
	Heard []Heard
	// Markers counts the marker responses that came.
	Markers int

	Port Port
	last lacp.Instant
}

var _ Station = (*Partner)(nil)

// Agreeing is the state of a partner that is content.
const Agreeing = lacp.Activity | lacp.Timeout | lacp.Aggregation | lacp.Synchronization | lacp.Collecting | lacp.Distributing

// NewPartner adds a partner that agrees to everything, answers each PDU, and
// sends one each second.
func (n *Net) NewPartner(system lacp.MAC, port uint16) *Partner {
	p := &Partner{Replies: true, Every: lacp.FastPeriod, Actor: lacp.Info{SystemPriority: 32768, System: system,
		Key: 7, PortPriority: 32768, Port: port, State: Agreeing}}
	p.Port = Port{Station: p, ID: lacp.PortID(port), net: n}
	n.stations = append(n.stations, p)
	return p
}

// Say sends a PDU now.
func (p *Partner) Say() {
	p.last = p.Port.net.now
	if p.Silent {
		return
	}
	pdu := lacp.PDU{Version: 1, Actor: p.Actor, Partner: p.View}
	if n := len(p.Heard); n > 0 && !p.Stubborn {
		pdu.Partner = p.Heard[n-1].PDU.Actor
	}
	p.Port.Send(pdu.AppendTo(nil))
}

// Receive implements Station.
func (p *Partner) Receive(now lacp.Instant, _ *Port, pdu []byte) {
	if pdu[0] == lacp.SubtypeMarker {
		p.Markers++
		return
	}
	d, err := lacp.Parse(pdu)
	if err != nil {
		panic(err)
	}
	p.Heard = append(p.Heard, Heard{now, d})
	if p.Replies {
		p.Say()
	}
}

// Last returns the last PDU that came, the zero PDU if none did.
func (p *Partner) Last() lacp.PDU {
	if len(p.Heard) == 0 {
		return lacp.PDU{}
	}
	return p.Heard[len(p.Heard)-1].PDU
}

// Since returns the PDUs that came at an instant or later.
func (p *Partner) Since(at lacp.Instant) []Heard {
	for i, h := range p.Heard {
		if h.At >= at {
			return p.Heard[i:]
		}
	}
	return nil
}

// Plugged implements Station.
func (p *Partner) Plugged(now lacp.Instant, _ *Port) { p.last = now }

// Deadline implements Station.
func (p *Partner) Deadline() (lacp.Instant, bool) {
	if p.Every == 0 || !p.Port.Up() {
		return lacp.Never, false
	}
	return p.last + p.Every, true
}

// Advance implements Station.
func (p *Partner) Advance(now lacp.Instant) {
	if at, ok := p.Deadline(); ok && at <= now {
		p.Say()
	}
}
