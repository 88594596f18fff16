package bonding

import (
	"fmt"
	"time"
)

// drainGrace is for how long a drained slave of active-backup still receives:
// until switches have learned where the successor is.
const drainGrace = time.Second

// Drain takes a slave out of use without losing a frame, so that its cable can be
// pulled: those who can serve in its place do so from here on, announced where a
// failover is, and the slave still receives what was on its way to it, in
// active-backup for a second. Where addresses move with the active slave (in
// balance-tlb and balance-alb, and with fail_over_mac) frames on their way to the
// slave may be lost. In 802.3ad the port first stops sending, then tells
// the partner that it is out of sync, and stops taking frames a second later. The
// slave stays drained whatever becomes of its link, and no failure is counted. It
// is used all the same while no other slave can serve, but in 802.3ad where LACP
// keeps the partner from sending on it. When Drain returns, the writes that were
// under way are over, so like Release it must not be called from within one. An
// error tells that no other slave can serve now, or that there is no such slave.
func (b *Bond) Drain(name string) error {
	err := b.drain(name, func(s *slave, now instant) error {
		switch {
		case s.draining:
			return nil
		case !b.othersServe(s, now):
			return &SlaveError{"drain", name, "another has to be up and not held back first", ErrNoSuccessor}
		}
		s.draining = true
		s.graceUntil = now.add(drainGrace)
		return nil
	})
	if err == nil {
		b.readers.Synchronize()
	}
	return err
}

// Undrain has a slave that was drained used again, as if its link had come up,
// without updelay.
func (b *Bond) Undrain(name string) error {
	return b.drain(name, func(s *slave, _ instant) error {
		s.draining = false
		return nil
	})
}

func (b *Bond) drain(name string, f func(*slave, instant) error) (err error) {
	found := b.changeSlave(name, func(s *slave, now instant) {
		b.dirty = true
		err = f(s, now)
	})
	if found != nil {
		return &SlaveError{"drain", name, fmt.Sprintf("in bond %s", b.Name()), ErrNoSlave}
	}
	return err
}

// updateStandBack decides which slaves stand back: those that are drained, or
// held by flap_backoff, while another can serve. It reports whether that is
// another answer than before.
func (b *Bond) updateStandBack(now instant) (changed bool) {
	reselect := false
	for _, s := range b.slaves {
		if s.graceUntil != 0 && now >= s.graceUntil {
			b.endLinger(s)
			s.graceUntil = 0
			b.dirty = true
		}
		stands := s.heldBack(now) && b.othersServe(s, now)
		if stands == s.standsBack {
			continue
		}
		s.standsBack, b.dirty, changed = stands, true, true
		if b.config.mode.balances() {
			b.standBackLB(s, now)
		}
		if stands {
			reselect = reselect || s == b.active
		} else {
			reselect = reselect || b.active == nil || s == b.primary || s.prio > b.active.prio
		}
	}
	if reselect {
		b.reselect(now)
	}
	return changed
}

// heldBack reports whether the slave is to be used only where no other can.
func (s *slave) heldBack(now instant) bool { return s.draining || s.flap.holds(now) }

// othersServe reports whether a slave that is not held back can do what s does.
func (b *Bond) othersServe(s *slave, now instant) bool {
	return othersServe(b.slaves, s, b.config.mode, now)
}

func othersServe(slaves []*slave, s *slave, mode Mode, now instant) bool {
	for _, other := range slaves {
		if other != s && other.link == linkUp && other.usable() && !other.heldBack(now) &&
			(mode != IEEE8023AD || other.distributes) {
			return true
		}
	}
	return false
}

// candidates are what the selection chooses from.
func (b *Bond) candidates() (slaves []*slave, active, primary *slave) {
	for _, s := range b.slaves {
		if !s.standsBack {
			slaves = append(slaves, s)
		}
	}
	active, primary = b.active, b.primary
	if active != nil && active.standsBack {
		active = nil
	}
	if primary != nil && primary.standsBack {
		primary = nil
	}
	return slaves, active, primary
}
