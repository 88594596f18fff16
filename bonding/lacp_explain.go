package bonding

import (
	"fmt"
	"strconv"
	"time"

	"bondstack/bonding/lacp"
)

// LACPExplanation says in words what an 802.3ad bond does with its slaves, and
// why.
type LACPExplanation struct {
	Bond string `json:"bond"`
	Mode Mode   `json:"mode"`
	// Carrier is the bond's, and Summary says in a sentence why it is on or
	// off. A bond without carrier sends no data.
	Carrier bool                  `json:"carrier"`
	Summary string                `json:"summary"`
	Ports   []LACPPortExplanation `json:"ports"` // in the order of enslaving
	// Changes are the last changes of state, oldest first: up to 32 of each
	// port and of the bond as a whole. Those of released slaves are gone.
	Changes []LACPChange `json:"changes"`
}

// LACPPortExplanation is about one slave.
type LACPPortExplanation struct {
	Slave       string `json:"slave"`
	Port        uint16 `json:"port_number"`
	Distributes bool   `json:"distributes"` // the bond sends data by it
	State       string `json:"state"`       // what it does and why, in a sentence
	Remedy      string `json:"remedy"`      // what would make it distribute; empty if it does
}

// LACPChange is a change of state.
type LACPChange struct {
	Time    time.Time `json:"time"`
	Slave   string    `json:"slave,omitempty"` // empty: of the bond as a whole
	Machine string    `json:"machine"`         // a state machine of IEEE 802.1AX, or what else changed
	From    string    `json:"from"`
	To      string    `json:"to"`
	Trigger string    `json:"trigger"` // what made the machines run
	Cause   string    `json:"cause"`
}

// ExplainLACP tells why each slave of an 802.3ad bond does or does not
// distribute, what would make it, and what changed last. It returns an error
// in the other modes.
func (b *Bond) ExplainLACP() (LACPExplanation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := LACPExplanation{Bond: b.Name(), Mode: b.config.mode, Carrier: b.carrier,
		Ports: make([]LACPPortExplanation, 0, len(b.slaves)), Changes: []LACPChange{}}
	if b.config.mode != IEEE8023AD {
		return e, fmt.Errorf("bond %s: %w: LACP runs in mode %s, and this is %s", b.Name(), ErrMode, IEEE8023AD, b.config.mode)
	}
	e.Summary = b.explainCarrier()
	for _, s := range b.slaves {
		p := LACPPortExplanation{Slave: s.name, Port: s.portNumber, Distributes: s.canTransmit() && b.carrier}
		p.State, p.Remedy = b.explainPort(s)
		e.Ports = append(e.Ports, p)
	}
	if b.lag != nil {
		e.Changes = b.lag.changes()
	}
	return e, nil
}

// explainCarrier tells why the bond has a carrier, or has none.
func (b *Bond) explainCarrier() string {
	switch {
	case b.lag == nil:
		return "no NIC has the bond, so LACP does not run"
	case len(b.slaves) == 0:
		return "carrier is off: there are no slaves"
	}
	a := b.lag.system.Status().Active
	switch {
	case a == nil:
		return "carrier is off: there is no active aggregator, since no port has a link without a loop"
	case b.carrier:
		return fmt.Sprintf("carrier is on: active aggregator %d has %s, %s", a.ID, ports(a.Ports), partnerOf(a))
	case b.config.lacp.strict:
		return fmt.Sprintf("carrier is off: fewer ports of active aggregator %d (%s) collect and distribute than min_links %d asks for, with lacp_strict on",
			a.ID, partnerOf(a), max(b.config.minLinks, 1))
	}
	return fmt.Sprintf("carrier is off: active aggregator %d has %s, and min_links is %d", a.ID, ports(a.Ports), b.config.minLinks)
}

func ports(n int) string {
	if n == 1 {
		return "1 usable port"
	}
	return strconv.Itoa(n) + " usable ports"
}

func partnerOf(a *lacp.AggregatorStatus) string {
	if a.PartnerMAC == (lacp.MAC{}) {
		return "without a partner"
	}
	return "with partner " + a.PartnerMAC.String()
}

// explainPort tells of a slave: first what LACP cannot know, since to it the
// link is just down.
func (b *Bond) explainPort(s *slave) (state, remedy string) {
	switch {
	case b.lag == nil:
		return "does not distribute: no NIC has the bond", "create a NIC on the bond"
	case s.disabled:
		return "does not distribute: it was disabled by hand", "enable it"
	case s.link == linkBack:
		return "does not distribute yet: its link is back and waits for updelay",
			fmt.Sprintf("LACP begins in %v", time.Duration(max(s.until-b.now(), 0)).Round(time.Millisecond))
	case s.goneUntil != 0 && s.state.Usable():
		return "does not distribute: a write found that its link is gone", "it is tried again within a miimon"
	}
	why, _ := b.lag.system.Explain(time.Duration(b.now()), lacp.PortID(s.portNumber))
	if why.Sends && !b.carrier {
		return "agrees with its partner, but the bond sends nothing: it has no carrier", "enough ports for min_links have to be usable"
	}
	return why.State, why.Remedy
}

// changes are the system's events, in the bond's terms.
func (a *aggregation) changes() []LACPChange {
	now, wall := a.bond.now(), a.bond.clock.Now()
	list := []LACPChange{}
	for _, e := range a.system.Events() {
		c := LACPChange{Time: wall.Add(e.At - time.Duration(now)), Machine: e.Machine.String(),
			From: stateName(e.Machine, e.From), To: stateName(e.Machine, e.To), Trigger: e.Trigger.String(), Cause: e.Why}
		if s := a.members[e.Port]; s != nil {
			c.Slave = s.name
		}
		list = append(list, c)
	}
	return list
}

// stateName names a value of a machine, or of what else changed.
func stateName(m lacp.Machine, v uint16) string {
	switch m {
	case lacp.Carrier, lacp.Fallback, lacp.Loop:
		return map[bool]string{false: "off", true: "on"}[v == 1]
	case lacp.ActiveAggregator, lacp.Removed:
		if v == 0 {
			return "none"
		}
		return strconv.Itoa(int(v))
	case lacp.Drain:
		return lacp.DrainStage(v).String()
	}
	return m.StateName(lacp.MachineState(v))
}
