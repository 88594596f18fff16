package bonding

import (
	"errors"
	"fmt"
	"maps"
)

// changesMode reports whether options ask for another mode of a bond that is in
// use, or for what is none. The bond's lock is held.
func (b *Bond) changesMode(options map[string]string) bool {
	text, given := options["mode"]
	return given && !b.isMode(text) && (len(b.slaves) > 0 || b.dispatcher != nil)
}

// isMode reports whether a text is the present mode.
func (b *Bond) isMode(text string) bool {
	v, ok := modeNumber.parse(text)
	return ok && Mode(v) == b.config.mode
}

// planMode reads the options of a change of the mode: the mode itself, and what
// else is to be set with it, in the order of the table.
func (p *plan) planMode(t *Transaction) {
	if len(t.Add)+len(t.Slaves)+len(t.Remove) > 0 {
		p.fault(&OptionError{"mode", t.Options["mode"], "it is changed by itself or with other options, not with slaves", ErrInvalid})
	}
	// All begins anew, so what is set while a bond is down may be set now.
	empty := change{config: p.bond.config}
	if err := empty.apply(map[string]string{"mode": t.Options["mode"]}); err != nil {
		p.fault(err)
		return
	}
	rest := maps.Clone(t.Options)
	delete(rest, "mode")
	p.ch = change{config: empty.config, slaves: p.slaves, active: p.active, warnings: empty.warnings}
	if err := p.ch.apply(rest); err != nil {
		p.fault(err)
	}
}

// switchMode makes a change of the mode, with configMu held: all slaves leave,
// the options change, and all join again, and are put into use by one swap.
// Frames that are sent meanwhile are lost, and counted as tx_no_slave; the NIC
// and with it all connections stay. Where a slave cannot be in the new mode, all
// goes back.
func (b *Bond) switchMode(ch *change) error {
	b.mu.Lock()
	old, active, slaves := b.config, b.active, b.slaves
	b.mu.Unlock()
	joined, err := b.beginAnew(ch, slaves, active)
	if err == nil {
		return nil
	}
	if joined[active] != nil {
		active = joined[active]
	}
	_, undo := b.beginAnew(&change{config: old}, b.mergeSlaves(slaves, joined), active)
	if undo != nil {
		return errors.Join(err, fmt.Errorf("and not all could go back: %w", undo))
	}
	return err
}

// modeBack takes a change of the mode back, with configMu held.
func (a *Applied) modeBack() error {
	b := a.bond
	b.mu.Lock()
	ch := change{config: a.before}
	for _, was := range a.slaves {
		// It is another slave now, of the same endpoint.
		s := b.first(func(s *slave) bool { return s.ep == was.slave.ep })
		if s == nil {
			continue
		}
		s.weight, s.queueID = was.weight, was.queueID
		if was.slave == a.active && a.before.mode.info().primary {
			ch.activate = &s.name
		}
	}
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return ErrClosed
	}
	return b.switchMode(&ch)
}

// mergeSlaves returns of each old slave what stands for it now.
func (b *Bond) mergeSlaves(slaves []*slave, now map[*slave]*slave) []*slave {
	list := make([]*slave, len(slaves))
	for i, s := range slaves {
		if list[i] = s; now[s] != nil {
			list[i] = now[s]
		}
	}
	return list
}

// beginAnew takes all slaves out, takes the options, and takes slaves in again.
func (b *Bond) beginAnew(ch *change, slaves []*slave, active *slave) (joined map[*slave]*slave, err error) {
	var out []*slave
	b.control(func(now instant) {
		// The active one last, so that none takes over for a moment, nor gives
		// the bond its address.
		for _, s := range b.slaves {
			if s != b.active {
				out = append(out, s)
			}
		}
		if b.active != nil {
			out = append(out, b.active)
		}
		b.dismissAll(out, now)
	})
	b.partWith(out)
	b.control(func(now instant) {
		bare := *ch
		bare.slaves, bare.active, bare.activate, bare.queues, bare.weights, bare.primaryAgain = nil, nil, nil, nil, nil, false
		b.take(&bare, now)
	})
	joined = map[*slave]*slave{}
	var errs []error
	for _, s := range slaves {
		o := SlaveOptions{Priority: s.prio, Weight: s.weight, QueueID: s.queueID, Disabled: true, Listener: s.listener}
		if ch.mode == IEEE8023AD {
			o.ActorPortPriority = s.actorPortPrio
		}
		if err := b.enslave(s.name, s.ep, o, s.device); err != nil {
			errs = append(errs, err)
			continue
		}
		joined[s] = b.slaveOf(s.ep)
	}
	b.control(func(now instant) { b.intoUse(ch, joined, active, now) })
	return joined, errors.Join(errs...)
}

// intoUse makes slaves that have joined again what they were. Who was active is
// so again, unless the options say who.
func (b *Bond) intoUse(ch *change, joined map[*slave]*slave, active *slave, now instant) {
	for was, s := range joined {
		s.draining = was.draining
		if was.disabled {
			continue
		}
		b.setEnabled(s, true, now)
	}
	for name, id := range ch.queues {
		if s := b.find(name); s != nil {
			s.queueID = id
		}
	}
	for name, weight := range ch.weights {
		if s := b.find(name); s != nil {
			s.weight = weight
		}
	}
	b.dirty = true
	if !b.config.mode.info().primary {
		return
	}
	switch s := joined[active]; {
	case ch.activate != nil && (*ch.activate == "" || canBeActive(b.find(*ch.activate))):
		b.activate(*ch.activate, now)
	case active != nil && canBeActive(s) && b.primary == nil:
		b.activate(s.name, now)
	default:
		b.reselect(now)
	}
}

func canBeActive(s *slave) bool { return s != nil && s.link == linkUp && s.usable() }
