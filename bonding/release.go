package bonding

import "fmt"

// Release takes a slave out of the bond. When it returns, no frame is or will
// be written to the endpoint by the bond, nor delivered from it: its descriptor
// may be closed and used again. The endpoint has the MAC address and MTU that
// it had before; it is detached, and closing it is its maker's business.
// Release waits for the writes under way on every slave, so it must not be called
// from within one, and an endpoint whose WritePackets blocks holds it up.
func (b *Bond) Release(name string) error {
	b.configMu.Lock()
	defer b.configMu.Unlock()
	return b.release(name, func(s *slave) bool { return s.name == name })
}

// release is Release with configMu held, for the slave that is meant.
func (b *Bond) release(name string, meant func(*slave) bool) error {
	var s *slave
	var err error
	b.control(func(now instant) {
		if s = b.first(meant); s == nil {
			err = &SlaveError{"release", name, "the slaves are " + (&change{slaves: b.slaves}).slaveNames(), ErrNoSlave}
			return
		}
		b.dismiss(s, now)
	})
	if err != nil {
		return err
	}
	b.farewell([]*slave{s})
	return nil
}

// farewell lets slaves go that were dismissed, with configMu held: nothing is
// written to them, or delivered from them, when it returns.
func (b *Bond) farewell(slaves []*slave) {
	b.partWith(slaves)
	for _, s := range slaves {
		s.device.giveBack()
	}
}

// partWith is farewell to slaves that will join again: their table still holds
// those that are devices of one.
func (b *Bond) partWith(slaves []*slave) {
	for _, s := range slaves {
		s.detached.Store(true)
	}
	b.readers.Synchronize()
	for _, s := range slaves {
		s.detach()
		b.restore(s)
	}
	b.retire()
}

// restore gives an endpoint that was released what it had before.
func (b *Bond) restore(s *slave) {
	b.control(func(instant) {
		b.endLinger(s)
		if b.promiscuous {
			b.warnError(s.setPromiscuous(false))
		}
		b.forgetAbove(s)
	})
	if s.ep.LinkAddress() != s.permMAC && !b.keepsOwnMAC(s) {
		s.ep.SetLinkAddress(s.permMAC)
	}
	if s.ep.MTU() != s.permMTU {
		s.ep.SetMTU(s.permMTU)
	}
}

// retire keeps the counters of those who have left.
func (b *Bond) retire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.leaving {
		b.retired.add(s)
		b.retiredGone.Add(s.counters.drops[dropTxLinkGone].Load())
	}
	b.leaving = nil
}

// dismiss takes a slave out of all that is published next.
func (b *Bond) dismiss(s *slave, now instant) {
	s.released = true
	s.apart.Store(b.leavingReceiver(s))
	s.setInactive()
	list := make([]*slave, 0, len(b.slaves)-1)
	for _, other := range b.slaves {
		if other != s {
			list = append(list, other)
		}
	}
	b.slaves = list
	b.dirty = true
	if s == b.primary {
		b.primary = nil
	}
	if s.permMAC == b.mac && len(list) > 0 {
		b.warn("the bond keeps %s, the address of released slave %s: see that both are not on one network", b.mac, s.name)
	}
	b.slaveEvent(EventRelease, s)
	wasActive := s == b.active
	if wasActive {
		b.changeActive(nil, now)
	}
	if b.config.mode.balances() {
		b.leaveLB(s)
	}
	if wasActive {
		b.reselect(now)
	}
	b.leaving = append(b.leaving, s)
}

// detach ends the endpoint's deliveries and its news.
func (s *slave) detach() {
	if s.cancel != nil {
		s.cancel()
	}
	s.ep.Attach(nil)
	s.ep.Wait()
	s.apart.Store(nil)
	givePortNumber(s.portNumber)
}

func (b *Bond) find(name string) *slave {
	return b.first(func(s *slave) bool { return s.name == name })
}

// first returns the first slave that is meant, nil when there is none.
func (b *Bond) first(meant func(*slave) bool) *slave {
	for _, s := range b.slaves {
		if meant(s) {
			return s
		}
	}
	return nil
}

// SetSlaveEnabled takes a slave out of use by hand, or back into it. It is
// apart from the link's state: no news of the link brings a disabled slave
// back.
func (b *Bond) SetSlaveEnabled(name string, enabled bool) error {
	return b.changeSlave(name, func(s *slave, now instant) { b.setEnabled(s, enabled, now) })
}

func (b *Bond) setEnabled(s *slave, enabled bool, now instant) {
	if s.disabled == !enabled {
		return
	}
	s.disabled = !enabled
	b.dirty = true
	next := linkDown // no downdelay: whoever disables a slave means it
	if enabled {
		s.goneUntil = 0
		s.look()
		next, s.until = b.firstLink(s, now)
		s.waited = false
	}
	b.propose(s, next, now)
	s.verdicts.begin(next)
}

// SetSlavePriority sets a slave's prio. Without a primary the active slave is
// selected anew.
func (b *Bond) SetSlavePriority(name string, priority int32) error {
	return b.changeSlave(name, func(s *slave, now instant) {
		s.prio = priority
		b.dirty = true
		switch {
		case !b.config.mode.info().primary:
		case b.primary != nil:
			b.warn("slave %s: priority %d is kept, but the primary %s comes first", name, priority, b.primary.name)
		default:
			b.reselect(now)
		}
	})
}

func (b *Bond) changeSlave(name string, f func(*slave, instant)) error {
	err := error(&SlaveError{"set", name, fmt.Sprintf("in bond %s", b.Name()), ErrNoSlave})
	b.control(func(now instant) {
		if s := b.find(name); s != nil {
			f(s, now)
			err = nil
		}
	})
	return err
}
