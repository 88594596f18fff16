package main

import (
	"fmt"
	"slices"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/config"
)

// transactions are what a bond has to change: one, but two where the mode changes
// with it, and one or two for each slave whose queue changes.
func (r *reloading) transactions(c *bondChange) []bonding.Transaction {
	b := c.core().bond
	options, _, err := c.to.OptionChange(b, &c.config)
	if err != nil {
		return nil // the file was checked
	}
	slaves := bonding.Transaction{Options: map[string]string{}, Add: c.added}
	var leave, enter []bonding.Transaction // of queues, which no two slaves may have at once
	queue := func(name string, id uint16) bonding.Transaction {
		return bonding.Transaction{Options: map[string]string{"queue_id": fmt.Sprintf("%s:%d", name, id)}}
	}
	for _, p := range b.Status().Slaves {
		i := slices.IndexFunc(c.to.Slaves, func(s config.Slave) bool { return s.Name == p.Name })
		if i < 0 {
			slaves.Remove = append(slaves.Remove, p.Name)
			continue
		}
		s := &c.to.Slaves[i]
		enabled := !s.Disabled
		if s.Prio != p.Priority || s.Weight != p.Weight || enabled != p.Enabled {
			slaves.Slaves = append(slaves.Slaves, bonding.SlaveChange{Slave: s.Name, Priority: &s.Prio, Weight: &s.Weight, Enabled: &enabled})
		}
		if s.QueueID != p.QueueID && p.QueueID != 0 {
			leave = append(leave, queue(s.Name, 0))
		}
		if s.QueueID != p.QueueID && s.QueueID != 0 {
			enter = append(enter, queue(s.Name, s.QueueID))
		}
	}
	var list []bonding.Transaction
	active, hasActive := options["active_slave"]
	if _, mode := options["mode"]; mode {
		delete(options, "active_slave") // it may be a slave that is yet to come
		list = append(list, bonding.Transaction{Options: options})
		if options = map[string]string{}; hasActive {
			options["active_slave"] = active
		}
	}
	slaves.Options = options
	if len(options)+len(slaves.Add)+len(slaves.Slaves)+len(slaves.Remove) > 0 {
		list = append(list, slaves)
	}
	return slices.Concat(leave, list, enter)
}
