package bonding

import (
	"errors"
	"fmt"

	"bondstack/link"
)

// LinkState returns the bond's own state: up while a NIC has it, carrier while
// a slave's link is up, the sum of the speeds of the slaves that may transmit
// (the least in broadcast), and the duplex of the first that knows it. It
// implements link.StateEndpoint.
func (b *Bond) LinkState() link.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.linkState()
}

func (b *Bond) linkState() link.State {
	// An enslaved bond is up for the bond above it; so is one without a NIC
	// for whoever asks what it would be.
	state := link.State{Up: !b.closed, Carrier: b.carrier, Speed: link.SpeedUnknown, Duplex: link.DuplexUnknown}
	known := false
	for _, s := range b.slaves {
		if !s.canTransmit() {
			continue
		}
		if state.Duplex == link.DuplexUnknown {
			state.Duplex = s.state.Duplex
		}
		if s.state.Speed == link.SpeedUnknown {
			continue
		}
		switch {
		case !known:
			state.Speed, known = s.state.Speed, true
		case b.config.mode == Broadcast:
			state.Speed = min(state.Speed, s.state.Speed)
		default:
			state.Speed += s.state.Speed
		}
	}
	return state
}

// SubscribeLinkState implements link.StateEndpoint.
func (b *Bond) SubscribeLinkState(f func()) (cancel func()) { return b.stateSubs.add(f) }

// SetPromiscuous has the bond deliver unicast frames for any address. It is
// passed on to the slaves that filter: in active-backup to the active one, and
// with each failover to the next. It implements link.FilterEndpoint.
func (b *Bond) SetPromiscuous(on bool) error {
	var err error
	b.fromAbove(func(instant) {
		if b.promiscuous == on {
			return
		}
		b.promiscuous = on
		b.dirty = true
		for _, s := range b.slaves {
			if !b.config.mode.info().primary || s == b.active {
				err = errors.Join(err, s.setPromiscuous(on))
			}
		}
	})
	return err
}

// moveFilters moves promiscuity with the active slave.
func (b *Bond) moveFilters(prev, next *slave) {
	if !b.promiscuous {
		return
	}
	if prev != nil {
		b.warnError(prev.setPromiscuous(false))
	}
	if next != nil {
		b.warnError(next.setPromiscuous(true))
	}
}

func (s *slave) setPromiscuous(on bool) error {
	f, ok := s.ep.(link.FilterEndpoint)
	if !ok {
		return nil
	}
	var err error
	s.bond.set(func() { err = f.SetPromiscuous(on) })
	if err != nil {
		return fmt.Errorf("slave %s: %w", s.name, err)
	}
	return nil
}
