package bonding

import (
	"fmt"
	"strings"

	"bondstack/bonding/lacp"
)

// LACPStatus is the state of an 802.3ad bond.
type LACPStatus struct {
	Active         bool            `json:"lacp_active"`
	Fast           bool            `json:"lacp_rate_fast"`
	MinLinks       uint32          `json:"min_links"`
	Select         string          `json:"ad_select"`
	SystemPriority uint16          `json:"system_priority"`
	System         string          `json:"system_mac_address"`
	Coupled        bool            `json:"coupled_control"`
	Strict         bool            `json:"lacp_strict"`
	Aggregator     *LACPAggregator `json:"active_aggregator"` // null: there is none
	Counters       lacp.Counters   `json:"counters"`
}

// LACPAggregator is the active aggregator.
type LACPAggregator struct {
	ID         uint16 `json:"aggregator_id"`
	Ports      int    `json:"number_of_ports"`
	ActorKey   uint16 `json:"actor_key"`
	PartnerKey uint16 `json:"partner_key"`
	PartnerMAC string `json:"partner_mac_address"`
}

// LACPPort is what LACP knows of a slave.
type LACPPort struct {
	Aggregator        uint16        `json:"aggregator_id"` // 0: none
	Actor             LACPEnd       `json:"actor"`
	Partner           LACPEnd       `json:"partner"`
	ActorChurn        string        `json:"actor_churn_state"` // monitoring, churned or none
	PartnerChurn      string        `json:"partner_churn_state"`
	ActorChurnCount   uint32        `json:"actor_churned_count"`
	PartnerChurnCount uint32        `json:"partner_churned_count"`
	Receive           string        `json:"receive_machine"`
	Mux               string        `json:"mux_machine"`
	Selection         string        `json:"selection"`
	Looped            bool          `json:"looped"`   // it hears its own system
	Drain             string        `json:"drain"`    // how far a drain is
	Fallback          bool          `json:"fallback"` // it works without a partner
	Counters          lacp.Counters `json:"counters"`
	Explanation       string        `json:"explanation"` // why it does or does not distribute
}

// LACPEnd is one end of a link, in the terms of its PDUs.
type LACPEnd struct {
	SystemPriority uint16   `json:"system_priority"`
	System         string   `json:"system_mac_address"`
	Key            uint16   `json:"key"`
	PortPriority   uint16   `json:"port_priority"`
	Port           uint16   `json:"port_number"`
	State          uint8    `json:"port_state"`
	Flags          []string `json:"port_state_flags"`
}

func lacpEnd(i lacp.Info) LACPEnd {
	e := LACPEnd{i.SystemPriority, i.System.String(), i.Key, i.PortPriority, i.Port, uint8(i.State), []string{}}
	for bit, name := range [...]string{"activity", "timeout", "aggregation", "synchronization",
		"collecting", "distributing", "defaulted", "expired"} {
		if i.State&(1<<bit) != 0 {
			e.Flags = append(e.Flags, name)
		}
	}
	return e
}

// addLACPStatus adds what 802.3ad has to tell. While no NIC has the bond there
// are only the settings.
func (b *Bond) addLACPStatus(st *Status) {
	c := b.lacpConfig()
	st.LACP = &LACPStatus{Active: !c.Passive, Fast: c.Fast, MinLinks: c.MinLinks, Select: c.Select.String(),
		SystemPriority: c.SystemPriority, System: c.System.String(), Coupled: !c.Independent, Strict: c.Strict}
	for i := range st.Slaves {
		st.Slaves[i].LACP = &LACPPort{ActorChurn: "monitoring", PartnerChurn: "monitoring"}
	}
	if b.lag == nil {
		return
	}
	system := b.lag.system.Status()
	st.LACP.Counters = system.Counters
	if a := system.Active; a != nil {
		st.LACP.Aggregator = &LACPAggregator{a.ID, a.Ports, a.ActorKey, a.PartnerKey, a.PartnerMAC.String()}
	}
	for i, s := range b.slaves {
		id := lacp.PortID(s.portNumber)
		if p, ok := b.lag.system.Port(id); ok {
			state, remedy := b.explainPort(s)
			if remedy != "" {
				state += "; " + remedy
			}
			st.Slaves[i].LACP = lacpPort(p, state)
		}
	}
}

func lacpPort(p lacp.PortStatus, why string) *LACPPort {
	return &LACPPort{Aggregator: p.Aggregator, Actor: lacpEnd(p.Actor), Partner: lacpEnd(p.Partner),
		ActorChurn: lacp.ChurnName(p.ActorChurn), PartnerChurn: lacp.ChurnName(p.PartnerChurn),
		ActorChurnCount: p.ActorCount, PartnerChurnCount: p.PartnerCount,
		Receive: lacp.ReceiveMachine.StateName(p.Receive), Mux: lacp.MuxMachine.StateName(p.Mux),
		Selection: lacp.SelectionLogic.StateName(p.Selection), Looped: p.Looped, Fallback: p.Fallback, Drain: p.Drain.String(),
		Counters: p.Counters, Explanation: why}
}

// proc writes the section that Linux calls 802.3ad info.
func (l *LACPStatus) proc(st *Status, t *strings.Builder) {
	rate := map[bool]string{false: "slow", true: "fast"}
	active := map[bool]string{false: "off", true: "on"}
	fmt.Fprintf(t, "\n802.3ad info\nLACP active: %s\nLACP rate: %s\nMin links: %d\n", active[l.Active], rate[l.Fast], l.MinLinks)
	fmt.Fprintf(t, "Aggregator selection policy (ad_select): %s\n", l.Select)
	fmt.Fprintf(t, "System priority: %d\nSystem MAC address: %s\n", l.SystemPriority, l.System)
	a := l.Aggregator
	if a == nil {
		fmt.Fprintf(t, "bond %s has no active aggregator\n", st.Name)
		return
	}
	fmt.Fprintf(t, "Active Aggregator Info:\n\tAggregator ID: %d\n\tNumber of ports: %d\n\tActor Key: %d\n\tPartner Key: %d\n\tPartner Mac Address: %s\n",
		a.ID, a.Ports, a.ActorKey, a.PartnerKey, a.PartnerMAC)
}

// proc writes what Linux adds to a slave in 802.3ad.
func (p *LACPPort) proc(t *strings.Builder) {
	if p.Aggregator == 0 {
		t.WriteString("Aggregator ID: N/A\n")
		return
	}
	fmt.Fprintf(t, "Aggregator ID: %d\nActor Churn State: %s\nPartner Churn State: %s\n", p.Aggregator, p.ActorChurn, p.PartnerChurn)
	fmt.Fprintf(t, "Actor Churned Count: %d\nPartner Churned Count: %d\n", p.ActorChurnCount, p.PartnerChurnCount)
	p.Actor.proc(t, "actor", "port key")
	p.Partner.proc(t, "partner", "oper key")
}

func (e *LACPEnd) proc(t *strings.Builder, who, key string) {
	fmt.Fprintf(t, "details %s lacp pdu:\n    system priority: %d\n    system mac address: %s\n    %s: %d\n", who, e.SystemPriority, e.System, key, e.Key)
	fmt.Fprintf(t, "    port priority: %d\n    port number: %d\n    port state: %d\n", e.PortPriority, e.Port, e.State)
}
