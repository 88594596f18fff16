package lacptest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"bondstack/bonding/lacp"
)

// Station is what a cable can end at.
type Station interface {
	// Receive takes a PDU that came to a port. It keeps no part of it.
	Receive(now lacp.Instant, p *Port, pdu []byte)
	// Plugged tells that the link of a port came or went.
	Plugged(now lacp.Instant, p *Port)
	// Deadline and Advance are as those of lacp.System.
	Deadline() (lacp.Instant, bool)
	Advance(now lacp.Instant)
}

// Net is a set of stations and the time they share.
type Net struct {
	// Rand is where all chance comes from.
	Rand *rand.Rand
	// Late is by how much Nodes may be advanced after their deadlines, by
	// chance, as real timers are.
	Late time.Duration
	// Bound is how long two ends may disagree before Faults tells. 0 means
	// for ever.
	Bound time.Duration
	// Worst is the longest disagreement so far.
	Worst time.Duration
	// PDUs counts what was put on cables.
	PDUs uint64

	now      lacp.Instant
	queue    queue
	stations []Station
	cables   []*Cable
	dirty    bool // agreement has to be looked at
	faults   []string
}

// NewNet makes a Net whose chance follows from seed.
func NewNet(seed uint64) *Net {
	return &Net{Rand: rand.New(rand.NewPCG(seed, 0x1acb))}
}

// Now returns the instant.
func (n *Net) Now() lacp.Instant { return n.now }

// At has f called at an instant, or now if that is past.
func (n *Net) At(at lacp.Instant, f func()) { n.queue.push(event{at: max(at, n.now), do: f}) }

// Run goes on for a time.
func (n *Net) Run(d time.Duration) { n.RunTo(n.now + d) }

// RunTo goes on to an instant, everything of that instant included.
func (n *Net) RunTo(end lacp.Instant) {
	for {
		n.agree()
		at := n.queue.next()
		for _, s := range n.stations {
			if d, ok := s.Deadline(); ok {
				at = min(at, d)
			}
		}
		if at > end {
			n.now = end
			n.agree()
			return
		}
		n.now = max(n.now, at)
		n.step()
	}
}

// Until goes on until f is true, which is looked at after each event, and
// returns when that was and false if it was not within d.
func (n *Net) Until(d time.Duration, f func() bool) (lacp.Instant, bool) {
	end := n.now + d
	for !f() {
		at := n.queue.next()
		for _, s := range n.stations {
			if d, ok := s.Deadline(); ok {
				at = min(at, d)
			}
		}
		if at > end {
			n.RunTo(end)
			return n.now, f()
		}
		n.RunTo(at)
	}
	return n.now, true
}

// step does what is due now: frames and the test's own deeds first, in order.
func (n *Net) step() {
	for n.queue.next() <= n.now {
		e := n.queue.pop()
		if e.do != nil {
			e.do()
			continue
		}
		if e.to.cable == e.cable && e.cable.Up {
			e.to.Station.Receive(n.now, e.to, e.frame.pdu[:])
		}
		n.queue.give(e.frame)
	}
	for _, s := range n.stations {
		if d, ok := s.Deadline(); ok && d <= n.now {
			s.Advance(n.now)
		}
	}
}

// Faults returns what went wrong so far.
func (n *Net) Faults() []string { return n.faults }

func (n *Net) fault(format string, args ...any) {
	if len(n.faults) < 20 {
		n.faults = append(n.faults, fmt.Sprintf("at %v: ", n.now)+fmt.Sprintf(format, args...))
	}
}
