package bonding

import (
	"errors"
	"fmt"
	"slices"
)

// Revert takes a transaction back: options, slaves and their settings are as
// they were before it, the active slave too if it can be. Options that others
// have changed since go back as well. What cannot be taken back, such as a slave
// whose link does not take the bond's MTU any more, is in the error; all else is
// done. Who has closed an endpoint that was removed must not call it. A second
// call does nothing.
func (a *Applied) Revert() error {
	b := a.bond
	b.configMu.Lock()
	defer b.configMu.Unlock()
	if a.reverted {
		return nil
	}
	a.reverted = true
	if a.mode {
		return a.modeBack()
	}
	b.control(a.nameBack)
	var errs []error
	back := map[*slave]*slave{}
	for _, was := range a.slaves {
		if !slices.Contains(a.removed, was.slave) {
			continue
		}
		s, err := b.comeBack(&was)
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot be put back: %w", err))
			continue
		}
		back[was.slave] = s
	}
	b.control(func(now instant) {
		if b.closed {
			errs = append(errs, ErrClosed)
			return
		}
		a.giveBack(back, now)
	})
	b.farewell(slices.DeleteFunc(slices.Clone(a.added), func(s *slave) bool { return !slices.Contains(b.leaving, s) }))
	return errors.Join(errs...)
}

// nameBack gives slaves their old names, which removed slaves may have to have
// again.
func (a *Applied) nameBack(now instant) {
	for _, was := range a.slaves {
		if s := was.slave; !s.released && s.name != was.name {
			a.bond.renameSlave(s, was.name, now)
		}
	}
}

// comeBack enslaves a slave that was released, out of use until the swap.
func (b *Bond) comeBack(was *slaveBefore) (*slave, error) {
	o := SlaveOptions{Priority: was.prio, Weight: was.weight, Disabled: true, Listener: was.slave.listener}
	if b.Mode() == IEEE8023AD {
		o.ActorPortPriority = was.slave.actorPortPrio
	}
	if err := b.enslave(was.name, was.slave.ep, o, nil); err != nil {
		return nil, err
	}
	return b.slaveOf(was.slave.ep), nil
}

// giveBack restores what was remembered, of those who came back too. The bond's
// lock is held.
func (a *Applied) giveBack(back map[*slave]*slave, now instant) {
	b := a.bond
	var active *slave
	var order []*slave
	for _, was := range a.slaves {
		s := was.slave
		if new := back[s]; new != nil {
			s = new
		}
		if s.released {
			continue
		}
		order = append(order, s)
		s.prio, s.weight, s.queueID, s.draining = was.prio, was.weight, was.queueID, was.draining
		b.setEnabled(s, !was.disabled, now)
		if was.slave == a.active {
			active = s
		}
	}
	for _, s := range b.slaves { // who came since
		if !slices.Contains(order, s) {
			order = append(order, s)
		}
	}
	b.slaves = order
	b.optionsBack(a, active, now)
	for _, s := range a.added {
		if !s.released {
			b.dismiss(s, now)
		}
	}
	b.dirty = true
}

// optionsBack restores the options and, if it can serve, the active slave.
func (b *Bond) optionsBack(a *Applied, active *slave, now instant) {
	ch := change{config: a.before, up: b.dispatcher != nil, slaves: b.slaves, active: b.active}
	if b.config.primary != a.before.primary {
		b.config.primary = a.before.primary
		b.rematchPrimary()
	}
	b.takeOver = false
	if a.before.mode.info().primary && active != nil && active != b.active && active.usable() && active.link != linkDown {
		ch.activate = &active.name
	}
	b.take(&ch, now)
}
