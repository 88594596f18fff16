package bonding

import (
	"fmt"
	"maps"
	"strconv"

	"bondstack/bonding/flowmap"
	"bondstack/link"
)

// plan is a transaction that was thought through on shadows of the slaves: the
// bond itself is as it was.
type plan struct {
	bond    *Bond
	now     instant
	ch      change
	changes []planned
	ends    []end    // of slaves that stay
	added   []*slave // shadows of slaves that are not there yet
	slaves  []*slave // shadows of all that are there in the end
	removed []*slave
	active  *slave // the shadow of who will be active
	faults  []error
	// before and after are who sends what.
	before, after spreading
}

// planned is a change and whom it is for.
type planned struct {
	SlaveChange
	slave *slave
}

// end is a slave and what will be of it.
type end struct{ real, shadow *slave }

// shadow copies what a plan needs of a slave.
func (s *slave) shadow() *slave {
	return &slave{bond: s.bond, ep: s.ep, device: s.device, name: s.name, linkMachine: s.linkMachine, state: s.state,
		backup: s.backup, disabled: s.disabled, goneUntil: s.goneUntil, flap: s.flap, draining: s.draining,
		standsBack: s.standsBack, queueID: s.queueID, prio: s.prio, weight: s.weight, draws: s.draws, distributes: s.distributes}
}

// plan thinks a transaction through. The bond's lock is held.
func (b *Bond) plan(t *Transaction, now instant) *plan {
	p := &plan{bond: b, now: now}
	if b.closed {
		p.fault(ErrClosed)
		return p
	}
	p.before = b.spreadNow()
	for _, s := range b.slaves {
		p.ends = append(p.ends, end{s, s.shadow()})
	}
	for i := range t.Slaves {
		p.changeSlave(&t.Slaves[i])
	}
	for _, name := range t.Remove {
		p.remove(name, t.Revertible)
	}
	for _, e := range p.ends {
		p.slaves = append(p.slaves, e.shadow)
	}
	for i := range t.Add {
		p.add(&t.Add[i])
	}
	p.checkNames()
	p.standBack()
	p.active = p.shadowOf(b.active)
	p.selectActive(false)
	if b.changesMode(t.Options) {
		p.planMode(t)
		p.after.config = p.ch.config
		return p
	}
	p.ch = change{config: b.config, up: b.dispatcher != nil, slaves: p.slaves, active: p.active}
	options := t.Options
	if b.isMode(options["mode"]) { // so it may be named, whatever is there
		options = maps.Clone(options)
		delete(options, "mode")
	}
	if err := p.ch.apply(options); err != nil {
		p.fault(err)
	}
	p.settleShadows()
	p.after = p.spreadThen()
	return p
}

func (p *plan) fault(err error) { p.faults = append(p.faults, err) }

func (p *plan) slaveFault(op, name string, kind error, format string, args ...any) {
	p.fault(&SlaveError{op, name, fmt.Sprintf(format, args...), kind})
}

// find returns the slave of an old name that is not removed.
func (p *plan) find(op, name string) *end {
	for i := range p.ends {
		if p.ends[i].real.name == name {
			return &p.ends[i]
		}
	}
	p.slaveFault(op, name, ErrNoSlave, "the slaves are %s", (&change{slaves: p.bond.slaves}).slaveNames())
	return nil
}

func (p *plan) changeSlave(c *SlaveChange) {
	e := p.find("set", c.Slave)
	if e == nil {
		return
	}
	s := e.shadow
	p.changes = append(p.changes, planned{*c, e.real})
	if c.NewName != nil {
		if err := CheckName(*c.NewName); err != nil {
			p.slaveFault("rename", c.Slave, ErrInvalid, "%v", err)
		}
		if e.real.device != nil {
			p.slaveFault("rename", c.Slave, ErrInvalid, "it is a device of a table, and renamed there")
		}
		s.name = *c.NewName
	}
	if c.Priority != nil {
		s.prio = *c.Priority
	}
	if c.Weight != nil {
		if s.weight = *c.Weight; s.weight > MaxWeight {
			p.slaveFault("set", c.Slave, ErrInvalid, "weight %d: allowed are 0 to %d", s.weight, MaxWeight)
		}
	}
	if c.Drained != nil {
		s.draining = *c.Drained
	}
	if c.Enabled != nil {
		p.enable(e, *c.Enabled)
	}
}

func (p *plan) enable(e *end, on bool) {
	s := e.shadow
	s.disabled = !on
	switch {
	case s.disabled == e.real.disabled:
		s.link, s.until = e.real.link, e.real.until
	case on:
		s.goneUntil = 0
		s.state = link.StateOf(s.ep)
		s.link, s.until = p.bond.firstLink(s, p.now)
	default:
		s.link = linkDown
	}
}

func (p *plan) remove(name string, revertible bool) {
	e := p.find("release", name)
	if e == nil {
		return
	}
	if revertible && e.real.device != nil {
		p.slaveFault("release", name, ErrInvalid, "it is a device of a table, and a bond cannot take it back by itself")
	}
	p.removed = append(p.removed, e.real)
	for i := range p.ends {
		if p.ends[i].real == e.real {
			p.ends = append(p.ends[:i], p.ends[i+1:]...)
			return
		}
	}
}

// add is for a slave that is not there yet.
func (p *plan) add(n *NewSlave) {
	s := &slave{bond: p.bond, name: n.Name, state: link.StateOf(n.Endpoint), disabled: n.Options.Disabled,
		queueID: n.Options.QueueID, prio: n.Options.Priority, weight: n.Options.Weight,
		backup: p.bond.config.mode == ActiveBackup || p.bond.config.mode == IEEE8023AD}
	s.link, s.until = p.bond.firstLink(s, p.now)
	p.slaves = append(p.slaves, s)
	p.added = append(p.added, s)
}

// checkNames finds two that would have one name. That of a slave which is
// removed is free only afterwards.
func (p *plan) checkNames() {
	names := map[string]bool{}
	for _, s := range p.removed {
		names[s.name] = true
	}
	for _, s := range p.slaves {
		if names[s.name] {
			p.slaveFault("rename", s.name, ErrSlaveExists, "two slaves would have this name")
		}
		names[s.name] = true
	}
}

// standBack finds out who stands back, and refuses to drain who has no
// successor.
func (p *plan) standBack() {
	mode := p.bond.config.mode
	for _, s := range p.slaves {
		serve := othersServe(p.slaves, s, mode, p.now)
		s.standsBack = s.heldBack(p.now) && serve
	}
	for _, e := range p.ends {
		if e.shadow.draining && !e.real.draining && !othersServe(p.slaves, e.shadow, mode, p.now) {
			p.slaveFault("drain", e.real.name, ErrNoSuccessor, "another has to be up and not held back first")
		}
	}
}

func (p *plan) shadowOf(s *slave) *slave {
	for _, e := range p.ends {
		if e.real == s {
			return e.shadow
		}
	}
	return nil
}

// selectActive finds out who will be active, as reselect does: where the selection
// does not run, who is active stays so.
func (p *plan) selectActive(again bool) {
	b := p.bond
	name := b.config.primary
	if p.ch.primaryAgain {
		name = p.ch.primary
	}
	var primary *slave
	for _, s := range p.slaves {
		if s.name == name {
			primary = s
		}
	}
	active := p.active
	// A primary that is found or lost by its name has the selection run.
	again = again || primary != p.shadowOf(b.primary) && len(p.changes) > 0 || active == nil || active.link == linkDown || active.standsBack
	for _, s := range p.added {
		again = again || s.link == linkUp && (s == primary || s.prio > active.prio)
	}
	for _, e := range p.ends {
		came := e.shadow.link == linkUp && (e.real.link != linkUp || e.real.standsBack && !e.shadow.standsBack)
		if active != nil && came && (e.shadow == primary || e.shadow.prio > active.prio) || primary == nil && e.shadow.prio != e.real.prio {
			again = true
		}
	}
	if !again {
		return
	}
	var list []*slave
	for _, s := range p.slaves {
		if !s.standsBack {
			list = append(list, s)
		}
	}
	if active != nil && active.standsBack {
		active = nil
	}
	if primary != nil && primary.standsBack {
		primary = nil
	}
	reselect := b.config.reselect
	if p.ch.primaryAgain {
		reselect = p.ch.reselect
	}
	p.active, _ = choose(list, active, primary, reselect, p.ch.primaryAgain && primary != nil)
}

// settleShadows has the options' wishes come true on the shadows.
func (p *plan) settleShadows() {
	for name, weight := range p.ch.weights {
		p.ch.slave(name).weight = weight
	}
	for name, id := range p.ch.queues {
		p.ch.slave(name).queueID = id
	}
	byHand := p.ch.activate != nil
	if byHand && *p.ch.activate != "" {
		p.active = p.ch.slave(*p.ch.activate)
	} else if byHand {
		p.active = nil
	}
	// As in take, the selection has the last word.
	if byHand && p.active == nil || p.ch.primaryAgain || p.ch.reselect != p.bond.config.reselect {
		p.selectActive(true)
	}
}

// outcome says what the plan changes.
func (p *plan) outcome() Outcome {
	out := Outcome{Differences: []Difference{}, Warnings: append([]string{}, p.ch.warnings...)}
	add := func(slave, what, from, to string) {
		if from != to {
			out.Differences = append(out.Differences, Difference{slave, what, from, to})
		}
	}
	for i := range optionTable {
		if o := &optionTable[i]; o.get != nil {
			add("", o.name, o.get(&p.bond.config), o.get(&p.ch.config))
		}
	}
	for _, s := range p.added {
		add(s.name, "member", "no", "yes")
	}
	for _, e := range p.ends {
		was, is := e.real, e.shadow
		add(was.name, "name", was.name, is.name)
		add(was.name, "enabled", yesNo(!was.disabled), yesNo(!is.disabled))
		add(was.name, "drained", yesNo(was.draining), yesNo(is.draining))
		add(was.name, "prio", strconv.Itoa(int(was.prio)), strconv.Itoa(int(is.prio)))
		add(was.name, "weight", strconv.Itoa(int(was.weight)), strconv.Itoa(int(is.weight)))
		add(was.name, "queue_id", strconv.Itoa(int(was.queueID)), strconv.Itoa(int(is.queueID)))
	}
	for _, s := range p.removed {
		add(s.name, "member", "yes", "no")
	}
	if p.bond.config.mode.info().primary && (p.active == nil || p.active != p.shadowOf(p.bond.active)) {
		add("", "active_slave", p.bond.active.displayName(""), p.active.displayName(""))
	}
	out.Flows = p.before.moved(&p.after)
	return out
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// spreadNow is who sends what at present.
func (b *Bond) spreadNow() spreading {
	sp := spreading{config: b.config, active: b.active}
	for _, s := range b.slaves {
		if s.canTransmit() && !b.belowMinLinks() && !b.sharesMAC(s) {
			sp.usable = append(sp.usable, s)
		}
	}
	sp.table = b.flowTable(b.config.hashMap, sp.usable)
	return sp
}

// spreadThen is who will send what, once links that are up have been so for
// updelay and LACP has agreed.
func (p *plan) spreadThen() spreading {
	sp := spreading{config: p.ch.config}
	real := map[*slave]*slave{}
	for _, e := range p.ends {
		real[e.shadow] = e.real
	}
	var usable []*slave
	for _, s := range p.slaves {
		was := real[s]
		if was == nil {
			real[s], was = s, s
		}
		comes := was == s || was.disabled && !s.disabled || was.draining && !s.draining
		waits := s.backup && !comes && p.ch.mode == IEEE8023AD
		if (s.link == linkUp || s.link == linkBack) && s.usable() && !s.standsBack && !waits {
			usable = append(usable, s)
			sp.usable = append(sp.usable, was)
		}
	}
	sp.active = real[p.active]
	sp.table = p.bond.flowTable(p.ch.hashMap, usable)
	return sp
}

// spreading is who sends which flows.
type spreading struct {
	config config
	active *slave
	usable []*slave
	table  *flowmap.Table // nil: modulo
}
