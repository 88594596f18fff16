package bonding

import (
	"errors"
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Transaction is several changes of a live bond that are made as one: all of
// them or none, and the data path sees one swap. Slaves are named as they are
// before it, but by options (active_slave, primary, queue_id, weight), which see
// the names that slaves have after it.
type Transaction struct {
	// Options are options by their Linux names, as SetOptions takes them.
	Options map[string]string
	// Add are new slaves. They join out of use, and are put into use by the swap
	// that makes all other changes.
	Add []NewSlave
	// Slaves are changes of slaves; several for one slave are made in order.
	Slaves []SlaveChange
	// Remove are slaves to release.
	Remove []string
	// Revertible refuses what Revert could not take back: the removal of a
	// device of a table.
	Revertible bool
}

// NewSlave is what Enslave takes.
type NewSlave struct {
	Name     string
	Endpoint stack.LinkEndpoint
	Options  SlaveOptions
}

// SlaveChange changes one slave. A field that is nil leaves things as they are.
type SlaveChange struct {
	Slave    string
	NewName  *string // not for a device of a table, which is renamed there
	Enabled  *bool   // as SetSlaveEnabled
	Drained  *bool   // as Drain and Undrain
	Priority *int32  // as SetSlavePriority
	Weight   *uint32 // as SlaveOptions.Weight
}

// Outcome is what a transaction changes.
type Outcome struct {
	Differences []Difference `json:"differences"`
	Flows       FlowShare    `json:"flows"`
	Warnings    []string     `json:"warnings"` // such as a delay that is rounded
}

// Difference is one thing that is not as it was.
type Difference struct {
	Slave string `json:"slave,omitempty"` // by its old name; "" for the bond's own
	What  string `json:"what"`            // an option's name, member, name, enabled, drained, prio, weight or active_slave
	From  string `json:"from"`
	To    string `json:"to"`
}

// String returns the difference as a line for people.
func (d Difference) String() string {
	text := fmt.Sprintf("%s: %s -> %s", d.What, orNone(d.From), orNone(d.To))
	if d.Slave != "" {
		return "slave " + d.Slave + ": " + text
	}
	return text
}

// Applied is a transaction that was made, which can be taken back.
type Applied struct {
	Outcome
	bond     *Bond
	before   config
	active   *slave
	slaves   []slaveBefore
	added    []*slave
	removed  []*slave
	mode     bool // the mode was changed, and nothing of slaves
	reverted bool
}

// slaveBefore is what a transaction can change of a slave.
type slaveBefore struct {
	slave              *slave
	name               string
	disabled, draining bool
	prio               int32
	weight             uint32
	queueID            uint16
}

// Removed returns the endpoints of the slaves that were released. Who will not
// call Revert may close them.
func (a *Applied) Removed() []stack.LinkEndpoint { return endpointsOf(a.removed) }

// Added returns the endpoints of the slaves that joined. Who has called Revert
// may close them.
func (a *Applied) Added() []stack.LinkEndpoint { return endpointsOf(a.added) }

func endpointsOf(slaves []*slave) []stack.LinkEndpoint {
	var list []stack.LinkEndpoint
	for _, s := range slaves {
		list = append(list, s.ep)
	}
	return list
}

// Try checks a transaction as a whole and tells what Apply would change. It
// changes nothing. The error names every fault.
func (b *Bond) Try(t Transaction) (Outcome, error) {
	b.configMu.Lock()
	defer b.configMu.Unlock()
	return b.try(&t)
}

func (b *Bond) try(t *Transaction) (Outcome, error) {
	var errs []error
	for i := range t.Add {
		n := &t.Add[i]
		if err := b.mayEnslave(n.Name, n.Endpoint, n.Options); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return Outcome{}, errors.Join(errs...)
	}
	b.mu.Lock()
	p := b.plan(t, b.now())
	b.mu.Unlock()
	if err := errors.Join(p.faults...); err != nil {
		return Outcome{}, err
	}
	return p.outcome(), nil
}

// Apply makes a transaction. An error names every fault, and leaves bond,
// slaves and new endpoints as they were. When Apply returns, no frame is or will
// be written to a slave that was removed or drained, so like Release it must not
// be called from within a write.
func (b *Bond) Apply(t Transaction) (*Applied, error) {
	b.configMu.Lock()
	defer b.configMu.Unlock()
	out, err := b.try(&t)
	if err != nil {
		return nil, err
	}
	a := &Applied{Outcome: out, bond: b}
	b.mu.Lock()
	if a.mode = b.changesMode(t.Options); a.mode {
		a.remember(b)
		p := b.plan(&t, b.now())
		b.mu.Unlock()
		if err := b.switchMode(&p.ch); err != nil {
			return nil, err
		}
		return a, nil
	}
	b.mu.Unlock()
	undo := b.rememberAddress()
	rest := Transaction{Options: t.Options, Slaves: t.Slaves, Remove: t.Remove, Revertible: t.Revertible}
	for _, n := range t.Add {
		o := n.Options
		o.Disabled = true
		if err := b.enslave(n.Name, n.Endpoint, o, nil); err != nil {
			b.expel(a.added)
			undo()
			return nil, err
		}
		a.added = append(a.added, b.slaveOf(n.Endpoint))
		if on := true; !n.Options.Disabled {
			rest.Slaves = append(rest.Slaves[:len(rest.Slaves):len(rest.Slaves)], SlaveChange{Slave: n.Name, Enabled: &on})
		}
	}
	b.control(func(now instant) {
		p := b.plan(&rest, now) // what was tried above may not hold any more
		if err = errors.Join(p.faults...); err == nil {
			a.remember(b)
			b.make(p, now)
			a.removed = p.removed
		}
	})
	if err != nil {
		b.expel(a.added)
		undo()
		return nil, err
	}
	b.farewell(a.removed) // waits for writes to those who are drained, too
	return a, nil
}

// slaveOf returns the slave that an endpoint is.
func (b *Bond) slaveOf(ep stack.LinkEndpoint) *slave {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first(func(s *slave) bool { return s.ep == ep })
}

// expel takes out slaves that have just been added.
func (b *Bond) expel(added []*slave) {
	b.control(func(now instant) {
		for _, s := range added {
			if !s.released {
				b.dismiss(s, now)
			}
		}
	})
	b.farewell(added)
}

// rememberAddress returns what gives a bond without slaves back the address and
// MTU that the first slave replaced.
func (b *Bond) rememberAddress() (undo func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	mac, fixed, mtu := b.mac, b.macFixed, b.MTU()
	if len(b.slaves) > 0 {
		return func() {}
	}
	return func() { b.control(func(instant) { b.giveAddress(mac, fixed, mtu) }) }
}

func (b *Bond) giveAddress(mac tcpip.LinkAddress, fixed bool, mtu uint32) {
	b.mac, b.macFixed, b.dirty = mac, fixed, true
	b.mtu.Store(mtu)
	b.tellTables()
}

// remember keeps what Revert gives back. The bond's lock is held.
func (a *Applied) remember(b *Bond) {
	a.before, a.active = b.config, b.active
	for _, s := range b.slaves {
		a.slaves = append(a.slaves, slaveBefore{s, s.name, s.disabled, s.draining, s.prio, s.weight, s.queueID})
	}
}

// make makes a plan's changes. The bond's lock is held. New states come before
// the options, which may name such a slave; what takes slaves away comes after
// them, so that active_slave has its say before the selection has to.
func (b *Bond) make(p *plan, now instant) {
	reselect := false
	for _, c := range p.changes {
		s := c.slave
		if c.NewName != nil && *c.NewName != s.name {
			b.renameSlave(s, *c.NewName, now)
		}
		if c.Priority != nil && s.prio != *c.Priority {
			s.prio = *c.Priority
			reselect = true
		}
		if c.Weight != nil {
			s.weight = *c.Weight
		}
	}
	for _, end := range p.ends {
		if !end.shadow.disabled {
			b.setEnabled(end.real, true, now)
		}
		if !end.shadow.draining {
			end.real.draining = false
		}
	}
	if len(p.slaves) == 0 { // options that need this
		b.dismissAll(p.removed, now)
	}
	ch := p.ch
	ch.slaves, ch.active = b.slaves, b.active
	b.take(&ch, now)
	if reselect && b.config.mode.info().primary && b.primary == nil && ch.activate == nil {
		b.reselect(now)
	}
	for _, end := range p.ends {
		if end.shadow.draining && !end.real.draining {
			end.real.draining, end.real.graceUntil = true, now.add(drainGrace)
		}
		if end.shadow.disabled {
			b.setEnabled(end.real, false, now)
		}
	}
	if len(p.slaves) > 0 {
		b.dismissAll(p.removed, now)
	}
	b.dirty = true
}

func (b *Bond) dismissAll(slaves []*slave, now instant) {
	for _, s := range slaves {
		b.dismiss(s, now)
	}
}
