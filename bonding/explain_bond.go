package bonding

import (
	"fmt"
	"time"
)

// Explanation says in words what a bond does with its slaves, and why.
type Explanation struct {
	Bond    string `json:"bond"`
	Mode    Mode   `json:"mode"`
	Carrier bool   `json:"carrier"`
	// Summary says who carries what, in a sentence.
	Summary string             `json:"summary"`
	Slaves  []SlaveExplanation `json:"slaves"` // in the order of enslaving
	// Failovers are the last ones, oldest first.
	Failovers []Failover `json:"failovers"`
}

// SlaveExplanation is about one slave.
type SlaveExplanation struct {
	Slave string `json:"slave"`
	// InUse is whether the bond sends data by it.
	InUse bool `json:"in_use"`
	// Why says what it does and why, in a sentence.
	Why string `json:"why"`
	// Remedy is what would have it used; empty where it is, or may be as it is.
	Remedy string `json:"remedy"`
}

// Explain tells why each slave is or is not in use, what would have it used, and what
// the last failovers were.
func (b *Bond) Explain() Explanation {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := Explanation{Bond: b.Name(), Mode: b.config.mode, Carrier: b.carrier, Slaves: []SlaveExplanation{},
		Failovers: b.failovers.show(b.lostFrames(b.slaves))}
	sp := b.spreadNow()
	for _, s := range b.slaves {
		x := SlaveExplanation{Slave: s.name, InUse: contains(sp.usable, s)}
		if b.config.mode == ActiveBackup {
			x.InUse = s == b.active
		}
		x.Why, x.Remedy = b.explainSlave(s)
		e.Slaves = append(e.Slaves, x)
	}
	e.Summary = b.summary(&sp)
	return e
}

func (b *Bond) summary(sp *spreading) string {
	switch {
	case len(b.slaves) == 0:
		return "there are no slaves"
	case b.config.mode == IEEE8023AD:
		return b.explainCarrier()
	case b.config.mode == ActiveBackup && b.active == nil, b.config.mode != ActiveBackup && len(sp.usable) == 0:
		return "nothing is sent: no slave has a link that is up"
	case b.config.mode == ActiveBackup:
		return fmt.Sprintf("%s is the active slave: %s", b.active.name, b.whyActive())
	}
	return fmt.Sprintf("%d of %d slaves send", len(sp.usable), len(b.slaves))
}

// explainSlave tells of a slave. The first thing that keeps it from being used is
// what is said.
func (b *Bond) explainSlave(s *slave) (why, remedy string) {
	now := b.now()
	left := time.Duration(max(s.until-now, 0)).Round(time.Millisecond)
	switch {
	case s.silenced:
		return "all its frames are discarded, as a drill has it", "it ends by itself"
	case s.disabled:
		return "not used: it was disabled by hand", fmt.Sprintf("bondstack set %s.enabled=1", s.name)
	case s.goneUntil != 0 && s.state.Usable():
		return "not used: a write found that its link is gone", "it is tried again within a miimon"
	case s.link == linkFail:
		return "its link is down, and downdelay runs: it counts as up", fmt.Sprintf("it is given up in %v unless the link is back", left)
	case s.link == linkBack:
		return "not used yet: its link is back and waits for updelay", fmt.Sprintf("it is used in %v", left)
	case s.link == linkDown:
		return b.whyDown(s)
	case s.standsBack && s.draining:
		return "not used: it is drained, and others serve", fmt.Sprintf("bondstack drain %s --undo", s.name)
	case s.standsBack:
		return "not used: it flapped, and flap_backoff holds it back while others serve",
			fmt.Sprintf("it is used in %v unless it is lost again", s.flap.left(now).Round(time.Millisecond))
	case b.config.mode == IEEE8023AD:
		return b.explainPort(s)
	}
	return b.whyRole(s)
}

// whyDown names who says that a link is down.
func (b *Bond) whyDown(s *slave) (why, remedy string) {
	switch {
	case !s.state.Up:
		return "not used: the interface is down", "set it up"
	case !s.state.Carrier:
		return "not used: its link has no carrier", "look at the cable, and at the other end's port"
	case b.foundBy(s, monitorARP):
		return "not used: it has carrier, but the ARP monitor hears none of the targets by it",
			"look at the path to arp_ip_target and ns_ip6_target, and at arp_validate"
	case b.foundBy(s, monitorProbe):
		return "not used: it has carrier, but the other bond's hellos do not come, or ours do not arrive (probe_interval)",
			"look at the path between the bonds"
	}
	return "not used: its link has carrier, and counts as down until the monitor's next pass", "wait for miimon"
}

// whyRole tells of a slave whose link is up, in a mode where the bond alone decides.
func (b *Bond) whyRole(s *slave) (why, remedy string) {
	switch {
	case b.config.mode != ActiveBackup && b.sharesMAC(s):
		return "not used: it has the same address as another slave, in a mode that needs them apart", "give the interface an address of its own"
	case b.config.mode != ActiveBackup && s == b.active && b.config.mode.balances():
		return "sends, and receives for the bond's address: " + b.whyActive(), ""
	case b.config.mode != ActiveBackup:
		return "sends", ""
	case s == b.active:
		return "active: " + b.whyActive(), ""
	}
	return fmt.Sprintf("backup: %s is active: %s", b.active.displayName("no slave"), b.whyActive()), ""
}

// whyActive tells why the active slave is the active one, by the rules of choose.
func (b *Bond) whyActive() string {
	slaves, active, primary := b.candidates()
	switch {
	case active == nil:
		return "none is up"
	case active == primary:
		return "it is the primary"
	case active.link != linkUp:
		return "its downdelay runs"
	}
	up := 0
	for _, s := range slaves {
		if s.link == linkUp {
			up++
		}
	}
	best := greatestUp(slaves)
	switch {
	case up == 1:
		return "it is the only one that is up"
	case primary != nil && primary.link == linkUp:
		return fmt.Sprintf("it stays although the primary %s is up (primary_reselect %s)", primary.name, b.config.reselect)
	case best != active && best.prio > active.prio:
		return fmt.Sprintf("it stays although %s has a greater prio (primary_reselect %s)", best.name, b.config.reselect)
	case best.prio == active.prio && active != firstOf(slaves, active.prio):
		return "it was chosen when others were down, or by hand, and nothing asks for a change"
	}
	return "it has the greatest prio of those that are up, and is the first of these"
}

// firstOf is the first slave of a priority that is up.
func firstOf(slaves []*slave, prio int32) *slave {
	for _, s := range slaves {
		if s.link == linkUp && s.prio == prio {
			return s
		}
	}
	return nil
}
