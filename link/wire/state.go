package wire

import (
	"sync"
	"sync/atomic"

	"bondstack/link"
)

var _ link.StateEndpoint = (*Endpoint)(nil)

// Bits of a state word. Bits 0 to 7 are these, 8 to 15 the duplex mode, 32 to 63
// the speed.
const (
	stateUp      = 1 << 0
	stateCarrier = 1 << 1
	stateClosed  = 1 << 2
	// stateUsable is what a state word must have for frames to be sent.
	stateUsable = stateUp | stateCarrier
)

// linkState is the state of an end, in one word so that the data path reads it
// with one load, and those who want to know of changes.
type linkState struct {
	word atomic.Uint64

	// up and closed are guarded by cable.mu.
	up, closed bool

	// mu guards the following.
	mu          sync.Mutex
	subscribers []*subscriber
}

type subscriber struct{ f func() }

// stateWord returns the state of an end. c.mu must be held, or nobody else know
// the cable yet.
//
// An end has carrier when the cable is whole and both ends are up, as with a
// kernel's veth.
func (c *cable) stateWord(e *Endpoint) uint64 {
	w := uint64(c.speed)<<32 | uint64(c.duplex)<<8
	if e.state.closed {
		return w | stateClosed
	}
	if e.state.up {
		w |= stateUp
		if c.carrier && e.peer.state.up {
			w |= stateCarrier
		}
	}
	return w
}

// change applies a change under c.mu, publishes both ends' states, and tells the
// subscribers of those that changed.
func (c *cable) change(apply func()) {
	c.mu.Lock()
	apply()
	var changed [2]bool
	for i, e := range c.ends {
		w := c.stateWord(e)
		changed[i] = e.state.word.Swap(w) != w
	}
	c.mu.Unlock()
	for i, e := range c.ends {
		if changed[i] {
			e.state.notify()
		}
	}
}

func (s *linkState) notify() {
	s.mu.Lock()
	list := s.subscribers // never changed in place
	s.mu.Unlock()
	for _, sub := range list {
		sub.f()
	}
}

// LinkState implements link.StateEndpoint.
func (e *Endpoint) LinkState() link.State {
	w := e.state.word.Load()
	return link.State{
		Up:      w&stateUp != 0,
		Carrier: w&stateCarrier != 0,
		Speed:   uint32(w >> 32),
		Duplex:  link.Duplex(w >> 8),
	}
}

// SubscribeLinkState implements link.StateEndpoint. Changes are reported by the
// goroutine that makes them, before the call that made them returns.
func (e *Endpoint) SubscribeLinkState(f func()) (cancel func()) {
	s := &e.state
	sub := &subscriber{f}
	s.mu.Lock()
	s.subscribers = append(s.subscribers[:len(s.subscribers):len(s.subscribers)], sub)
	s.mu.Unlock()
	return func() { s.cancel(sub) }
}

func (s *linkState) cancel(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rest []*subscriber
	for _, other := range s.subscribers {
		if other != sub {
			rest = append(rest, other)
		}
	}
	s.subscribers = rest
}

// SetCarrier cuts the cable (false) or mends it (true), for both ends. Frames
// sent without carrier are dropped and counted; those already on their way
// arrive.
func (e *Endpoint) SetCarrier(up bool) {
	e.cable.change(func() { e.cable.carrier = up })
}

// SetUp sets this end administratively up or down. A write on an end that is
// down returns ErrInvalidEndpointState, frames that reach it are dropped and
// counted, and the other end has no carrier. Ends are up when made.
func (e *Endpoint) SetUp(up bool) {
	e.cable.change(func() { e.state.up = up && !e.state.closed })
}

// SetSpeed sets the speed, in Mbit/s or link.SpeedUnknown, and the duplex mode
// that both ends report: a cable runs at one speed. It returns an error for a
// duplex mode that there is not.
func (e *Endpoint) SetSpeed(speed uint32, duplex link.Duplex) error {
	if err := validDuplex(duplex); err != nil {
		return err
	}
	e.cable.change(func() { e.cable.speed, e.cable.duplex = speed, duplex })
	return nil
}
