package bonding

import "fmt"

// CutHow is how Cut takes a slave away.
type CutHow string

// The ways to take a slave away.
const (
	// CutSilence discards every frame of the slave, both ways, LACPDUs, probes and
	// ARP monitoring among them, as a path does that is broken somewhere behind the
	// link. The link itself keeps saying that it is up: miimon does not see it.
	CutSilence CutHow = "silence"
	// CutDisable disables the slave as SetSlaveEnabled does: the bond knows at once.
	CutDisable CutHow = "disable"
	// CutDrain drains it as Drain does, without losing a frame.
	CutDrain CutHow = "drain"
)

// Cut is a slave that is taken away for a time, to try what follows.
type Cut struct {
	bond   *Bond
	slave  *slave
	how    CutHow
	before [2]uint64 // what was discarded until then
	over   bool      // guarded by Bond.mu
}

// Cut takes a slave away until Restore. It returns an error where there is no such
// slave, where it is disabled, drained or cut already, where no other slave can serve
// in its place (ErrNoSuccessor; with force that counts only for CutDrain), and for a
// how that it does not know.
func (b *Bond) Cut(name string, how CutHow, force bool) (*Cut, error) {
	c := &Cut{bond: b, how: how}
	err := ErrClosed
	found := b.changeSlave(name, func(s *slave, now instant) {
		if !b.closed {
			c.slave = s
			err = c.begin(now, force)
		}
	})
	switch {
	case found != nil:
		return nil, &SlaveError{"cut", name, fmt.Sprintf("in bond %s", b.Name()), ErrNoSlave}
	case err != nil:
		return nil, err
	}
	b.readers.Synchronize()
	return c, nil
}

// begin is Cut with the lock held.
func (c *Cut) begin(now instant, force bool) error {
	b, s := c.bond, c.slave
	fault := func(why string, kind error) error { return &SlaveError{"cut", s.name, why, kind} }
	switch {
	case s.disabled:
		return fault("it is disabled", ErrBusy)
	case s.draining:
		return fault("it is drained", ErrBusy)
	case s.silenced:
		return fault("it is cut already", ErrBusy)
	case (!force || c.how == CutDrain) && !b.othersServe(s, now):
		return fault("no other slave can serve in its place", ErrNoSuccessor)
	}
	switch c.how {
	case CutSilence:
		c.before = s.counters.silenced()
		s.silenced = true
		b.tap(s)
	case CutDisable:
		b.setEnabled(s, false, now)
	case CutDrain:
		b.dirty, s.draining, s.graceUntil = true, true, now.add(drainGrace)
	default:
		return fault(fmt.Sprintf("%q: allowed are %s, %s and %s", c.how, CutSilence, CutDisable, CutDrain), ErrInvalid)
	}
	return nil
}

// Restore gives the slave back, whatever its name is by now; where it has left the
// bond there is nothing to give back. A second call does nothing.
func (c *Cut) Restore() {
	b, s := c.bond, c.slave
	b.control(func(now instant) {
		if c.over {
			return
		}
		c.over = true
		switch c.how {
		case CutSilence:
			s.silenced = false
			b.tap(s)
		case CutDisable:
			if !s.released {
				b.setEnabled(s, true, now)
			}
		case CutDrain:
			b.dirty, s.draining = true, false
		}
	})
}

// Discarded returns how many frames CutSilence has discarded until now: a GSO packet
// that was to be sent counts as one.
func (c *Cut) Discarded() (sent, received uint64) {
	n := c.slave.counters.silenced()
	if c.how != CutSilence {
		return 0, 0
	}
	return n[0] - c.before[0], n[1] - c.before[1]
}

// silenced returns how many frames were discarded by CutSilence, sent and received.
func (c *slaveCounters) silenced() [2]uint64 {
	return [2]uint64{c.drops[dropTxSilenced].Load(), c.drops[dropRxSilenced].Load()}
}
