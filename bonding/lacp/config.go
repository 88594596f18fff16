package lacp

import (
	"errors"
	"fmt"
)

// Policy is ad_select: which aggregator is the active one. The numbers are
// Linux's.
type Policy uint8

// The policies.
const (
	Stable    Policy = 0 // the active one stays until it has no usable port left
	Bandwidth Policy = 1 // the one with the greatest bandwidth
	Count     Policy = 2 // the one with the most ports
	PortPrio  Policy = 3 // the one with the greatest sum of port priorities
)

var policyNames = [...]string{"stable", "bandwidth", "count", "actor_port_prio"}

// String returns Linux's name of the policy.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// The defaults of Linux.
const (
	DefaultSystemPriority = 65535
	DefaultPortPriority   = 255
)

// Config are the settings of a System. The zero value of each but System is
// Linux's default.
type Config struct {
	// System is the system's address: ad_actor_system, or the bond's MAC. It
	// must be a unicast address and not zero.
	System MAC
	// SystemPriority is ad_actor_sys_prio. 0 means 65535.
	SystemPriority uint16
	// Passive is lacp_active off: be silent until the partner speaks.
	Passive bool
	// Fast is lacp_rate fast: ask the partner for a PDU each second, and take
	// 3 s of silence for its loss. Otherwise 30 s and 90 s. How often this
	// side sends is what the partner asks for.
	Fast bool
	// Select is ad_select.
	Select Policy
	// MinLinks is min_links, how many ports of the active aggregator must be
	// usable for the carrier to be on. 0 is as 1.
	MinLinks uint32
	// Independent is coupled_control off: a port sends only once the partner
	// says that it takes frames.
	Independent bool
	// Strict is lacp_strict on: no port carries data without a partner, and
	// only ports that collect and distribute count for the carrier.
	Strict bool
}

// Validate returns an error that names every setting that is not allowed.
func (c *Config) Validate() error {
	var errs []error
	if c.System == (MAC{}) || c.System[0]&1 != 0 {
		errs = append(errs, fmt.Errorf("lacp: system address %v is not a unicast address", c.System))
	}
	if int(c.Select) >= len(policyNames) {
		errs = append(errs, fmt.Errorf("lacp: selection policy %d is not one of 0 to %d", c.Select, len(policyNames)-1))
	}
	return errors.Join(errs...)
}

func (c *Config) systemPriority() uint16 {
	if c.SystemPriority == 0 {
		return DefaultSystemPriority
	}
	return c.SystemPriority
}

// SetConfig changes the settings. It returns an error and changes nothing if
// they are not valid. What the partners have to know is told at once: Linux
// leaves a change of lacp_rate and lacp_active to the next PDU, with which a
// partner of a port that turns fast is late.
func (s *System) SetConfig(now Instant, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	s.enter(now, TriggerConfig)
	old := s.cfg
	s.cfg = c
	for _, p := range s.ports {
		p.touched = true
		s.describe(p)
		if old.Independent != c.Independent {
			s.stopData(p, "coupled_control changed")
		}
	}
	s.regroup = true
	s.settle()
	return nil
}

// SetPortPriority changes a port's priority (actor_port_prio).
func (s *System) SetPortPriority(now Instant, id PortID, priority uint16) error {
	p := s.port(id)
	if p == nil {
		return unknownPort(id)
	}
	s.enter(now, TriggerConfig)
	p.cfg.Priority = priority
	p.touched, s.regroup = true, true
	s.describe(p)
	s.settle()
	return nil
}

// describe writes the settings into what the port tells of itself. The partner
// must agree to a change of who the port is before data flows on.
func (s *System) describe(p *port) {
	old := p.actor
	a := &p.actor
	a.SystemPriority, a.System = s.cfg.systemPriority(), s.cfg.System
	a.Key, a.PortPriority, a.Port = p.cfg.Link.key(p.cfg.UserKey), p.cfg.Priority, uint16(p.id)
	a.State = a.State.with(Activity, !s.cfg.Passive).with(Timeout, s.cfg.Fast).with(Aggregation, true)
	if !old.sameEnd(a) {
		p.partner.State &^= Synchronization
	}
	if old != *a {
		p.ntt = true
	}
}
