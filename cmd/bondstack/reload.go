package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"bondstack/bonding"
	"bondstack/bonding/control"
	"bondstack/cmd/bondstack/config"
)

// reload reads the file again and has all bonds be as it says: all of them, or
// nothing changes. What happens, in this order:
//
//  1. The file is read and checked. With a fault it ends here.
//  2. Links of new slaves are opened. Clients of the control sockets wait from
//     here on. The change of each bond is tried.
//  3. In the order of the file, for each bond: services and forwards end and
//     begin, addresses and routes are added, the bond's transaction is made; new
//     bonds start.
//  4. When all that has worked: routes and addresses that are not in the file any
//     more go, and then bonds.
//
// What fails in step 2 or 3 has all that was done so far taken back, the latest
// first. What cannot change while a bond runs stays, and is named in the log.
func (p *program) reload(ctx context.Context) {
	f, faults, err := readConfig(p.path)
	if err != nil {
		p.log.Error("the file cannot be read: nothing is changed", "file", p.path, "error", err)
		return
	}
	for _, fault := range faults {
		level := slog.LevelError
		if fault.Warning {
			level = slog.LevelWarn
		}
		p.log.Log(ctx, level, "fault of the file", "file", p.path, "fault", fault.Error())
	}
	if n := len(faults.Errors()); n > 0 {
		p.log.Error("the file has faults: nothing is changed", "file", p.path, "faults", n)
		return
	}
	r := &reloading{program: p, file: f}
	defer r.end()
	if err := r.make(ctx); err != nil {
		r.back()
		p.log.Error("the file cannot be put into force: nothing is changed", "file", p.path, "error", err)
		return
	}
	r.commit()
	p.log.Info("reloaded", "file", p.path)
}

// reloading is a reload under way.
type reloading struct {
	*program
	file    *config.File
	members []*member // as they will be
	changes []*bondChange
	undo    []func() error
}

// bondChange is the change of a bond that runs.
type bondChange struct {
	*member
	to      config.Bond
	batch   *control.Batch
	added   []bonding.NewSlave
	missing []slaveSpec
}

// make does steps 2 and 3.
func (r *reloading) make(ctx context.Context) error {
	r.tellKept("log.format", r.file.Log.Format == r.program.file.Log.Format)
	r.tellKept("metrics", r.file.Metrics == r.program.file.Metrics)
	r.tellKept("web", r.file.Web == r.program.file.Web)
	for i := range r.file.Bonds {
		if m := r.find(r.file.Bonds[i].Name); m != nil {
			if err := r.prepare(m, r.file.Bonds[i]); err != nil {
				return fmt.Errorf("bond %s: %w", m.config.Name, err)
			}
		}
	}
	for i := range r.file.Bonds {
		name := r.file.Bonds[i].Name
		if c := r.changeOf(name); c != nil {
			if err := r.change(c); err != nil {
				return fmt.Errorf("bond %s: %w", name, err)
			}
			r.members = append(r.members, c.member)
			continue
		}
		m, err := r.start(ctx, i, r.file)
		if err != nil {
			return fmt.Errorf("bond %s: %w", name, err)
		}
		r.undo = append(r.undo, func() error { m.stop(); return nil })
		r.members = append(r.members, m)
	}
	return nil
}

func (r *reloading) tellKept(key string, same bool) {
	if !same {
		r.log.Warn("this cannot change while bondstack runs: it stays as it is", "key", key)
	}
}

func (r *reloading) find(name string) *member {
	i := slices.IndexFunc(r.program.members, func(m *member) bool { return m.config.Name == name })
	if i < 0 {
		return nil
	}
	return r.program.members[i]
}

func (r *reloading) changeOf(name string) *bondChange {
	i := slices.IndexFunc(r.changes, func(c *bondChange) bool { return c.to.Name == name })
	if i < 0 {
		return nil
	}
	return r.changes[i]
}

// prepare opens the links of new slaves, has clients wait, and tries the change.
func (r *reloading) prepare(m *member, to config.Bond) error {
	c := &bondChange{member: m, to: to}
	for _, key := range c.to.Keep(&m.config) {
		r.tellKept(m.config.Name+": "+key, false)
	}
	o := m.core()
	batch, err := o.control.changes.Begin()
	if err != nil {
		return err
	}
	c.batch = batch
	o.joiner.mu.Lock()
	r.changes = append(r.changes, c)
	present := o.bond.Status().Slaves
	var errs []error
	for i := range c.to.Slaves {
		s := &c.to.Slaves[i]
		if slices.ContainsFunc(present, func(p bonding.SlaveStatus) bool { return p.Name == s.Name }) {
			continue
		}
		spec := slaveSpec{s.KindOrDefault(), s.Name}
		ep, warnings, err := o.joiner.kinds[spec.kind](spec.name, o.joiner.link)
		switch {
		case err == nil:
			c.added = append(c.added, bonding.NewSlave{Name: s.Name, Endpoint: ep, Options: s.Options()})
		case isAbsent(err) && !c.to.RequireSlaves:
			c.missing = append(c.missing, spec)
		default:
			errs = append(errs, fmt.Errorf("slave %s: %w", s.Name, err))
		}
		for _, w := range warnings {
			r.log.Warn(w, "slave", s.Name)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if list := r.transactions(c); len(list) > 0 { // what follows may depend on the first
		_, err = batch.Try(list[0])
	}
	return err
}

// change does step 3 for a bond.
func (r *reloading) change(c *bondChange) error {
	if h, ok := c.running.(*hosted); ok {
		if err := r.host(h, c.to.HostChange(&c.config)); err != nil {
			return err
		}
	}
	o := c.core()
	_, kept, err := c.to.OptionChange(o.bond, &c.config)
	if err != nil {
		return err
	}
	for _, key := range kept {
		r.tellKept(c.to.Name+": "+key, false)
	}
	r.undo = append(r.undo, c.batch.Revert)
	for _, t := range r.transactions(c) {
		out, err := c.batch.Apply(t)
		if err != nil {
			return err
		}
		if len(out.Differences) > 0 {
			r.log.Info("changed by the file", "bond", c.to.Name, "differences", fmt.Sprint(out.Differences))
		}
	}
	return r.rest(c)
}

// rest changes what transactions do not have.
func (r *reloading) rest(c *bondChange) error {
	b := c.core().bond
	if old := b.MTU(); c.to.MTU != 0 && c.to.MTU != old {
		if err := r.do(func() error { return b.ChangeMTU(c.to.MTU) }, func() error { return b.ChangeMTU(old) }); err != nil {
			return err
		}
	}
	if b.Mode() != bonding.IEEE8023AD {
		return nil
	}
	priorities := map[string]uint16{}
	for _, s := range c.config.Slaves {
		priorities[s.Name] = s.ActorPortPrio
	}
	for _, s := range c.to.Slaves {
		was, is := orUsual(priorities[s.Name]), orUsual(s.ActorPortPrio)
		if _, running := priorities[s.Name]; !running || was == is {
			continue
		}
		set := func(v uint16) func() error { return func() error { return b.SetActorPortPriority(s.Name, v) } }
		if err := r.do(set(is), set(was)); err != nil && !errors.Is(err, bonding.ErrNoSlave) {
			return err
		}
	}
	return nil
}

// orUsual is an actor_port_prio, or the one that none stands for.
func orUsual(prio uint16) uint16 {
	if prio == 0 {
		return 255
	}
	return prio
}

// do does a step that can be taken back.
func (r *reloading) do(step, back func() error) error {
	err := step()
	if err == nil {
		r.undo = append(r.undo, back)
	}
	return err
}

// commit does step 4. What fails here is told: the rest is in force.
func (r *reloading) commit() {
	for _, c := range r.changes {
		if h, ok := c.running.(*hosted); ok {
			r.remove(h, c.to.HostChange(&c.config))
		}
		j := c.core().joiner
		j.missing, j.options = c.missing, map[string]bonding.SlaveOptions{}
		for i := range c.to.Slaves {
			j.options[c.to.Slaves[i].Name] = c.to.Slaves[i].Options()
		}
		c.member.config = c.to
	}
	var gone []*member
	for _, m := range r.program.members {
		if !slices.Contains(r.members, m) {
			gone = append(gone, m)
		}
	}
	r.program.members = r.members
	r.showThese(r.members)
	for _, m := range gone {
		r.log.Info("the bond is not in the file any more", "bond", m.config.Name)
		m.stop()
	}
	old := r.program.file
	r.file.Metrics, r.file.Web, r.file.Log.Format = old.Metrics, old.Web, old.Log.Format
	r.program.file = r.file
	if !r.byFlag {
		r.level.Set(logLevels[r.file.Log.Level])
	}
}

// back takes back what was done, the latest first.
func (r *reloading) back() {
	for _, undo := range slices.Backward(r.undo) {
		if err := undo(); err != nil {
			r.log.Error("not all could be taken back", "error", err)
		}
	}
	for _, c := range r.changes {
		for _, n := range c.added {
			n.Endpoint.Close()
		}
	}
}

// end lets clients go on.
func (r *reloading) end() {
	for _, c := range r.changes {
		c.core().joiner.mu.Unlock()
		c.batch.End()
	}
}
