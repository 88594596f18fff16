package metrics

import (
	"bondstack/bonding"
	"bondstack/bonding/lacp"

	"github.com/prometheus/client_golang/prometheus"
)

// aggregation adds what an 802.3ad bond as a whole has.
func aggregation(f *families[bonding.Status]) {
	f.add(prometheus.GaugeValue, "bondstack_lacp_aggregator_ports", "Ports of the active aggregator; 0 where there is none.", nil, func(st *bonding.Status, add add) {
		if st.LACP == nil {
			return
		}
		ports := 0
		if st.LACP.Aggregator != nil {
			ports = st.LACP.Aggregator.Ports
		}
		add(float64(ports))
	})
	f.add(prometheus.GaugeValue, "bondstack_lacp_min_links", "Ports that the aggregator needs for the bond to have carrier.", nil, func(st *bonding.Status, add add) {
		if st.LACP != nil {
			add(float64(st.LACP.MinLinks))
		}
	})
	within := func(name, help string, value func(*bonding.LACPAggregator) float64) {
		f.add(prometheus.GaugeValue, "bondstack_lacp_aggregator_"+name, help, nil, func(st *bonding.Status, add add) {
			if st.LACP != nil && st.LACP.Aggregator != nil {
				add(value(st.LACP.Aggregator))
			}
		})
	}
	within("id", "Number of the active aggregator; absent where there is none.", func(a *bonding.LACPAggregator) float64 { return float64(a.ID) })
	within("actor_key", "Our key of the active aggregator.", func(a *bonding.LACPAggregator) float64 { return float64(a.ActorKey) })
	within("partner_key", "The partner's key of the active aggregator.", func(a *bonding.LACPAggregator) float64 { return float64(a.PartnerKey) })
	f.add(prometheus.GaugeValue, "bondstack_lacp_partner_info", "The system that the active aggregator leads to; always 1.", []string{"partner_mac_address"}, func(st *bonding.Status, add add) {
		if st.LACP != nil && st.LACP.Aggregator != nil {
			add(1, st.LACP.Aggregator.PartnerMAC)
		}
	})
}

// portFlags are the bits of a port's state by IEEE 802.1AX, the lowest first.
var portFlags = []string{"activity", "timeout", "aggregation", "synchronization", "collecting", "distributing", "defaulted", "expired"}

// portMetrics are those of a slave in 802.3ad.
var portMetrics = func() *families[bonding.LACPPort] {
	f := &families[bonding.LACPPort]{labels: []string{"master", "slave"}}
	f.gauge("bondstack_lacp_port_aggregator_id", "Number of the port's aggregator; 0 where it has none.", func(p *bonding.LACPPort) float64 { return float64(p.Aggregator) })
	ends(f)
	machines(f)
	f.flag("bondstack_lacp_port_looped", "1 where the port hears its own system.", func(p *bonding.LACPPort) bool { return p.Looped })
	f.flag("bondstack_lacp_port_fallback", "1 where the port works without a partner.", func(p *bonding.LACPPort) bool { return p.Fallback })
	f.states("bondstack_lacp_port_drain_stage", "1 for how far a drain of the port is.", "stage", drainStages(), func(p *bonding.LACPPort) string { return p.Drain })
	frames(f)
	return f
}()

// ends adds what has the label "end": ours is actor, the other is partner.
func ends(f *families[bonding.LACPPort]) {
	both := func(kind prometheus.ValueType, name, help string, value func(end *bonding.LACPEnd, churn string, churns uint32) float64) {
		f.add(kind, "bondstack_lacp_port_"+name, help, []string{"end"}, func(p *bonding.LACPPort, add add) {
			add(value(&p.Actor, p.ActorChurn, p.ActorChurnCount), "actor")
			add(value(&p.Partner, p.PartnerChurn, p.PartnerChurnCount), "partner")
		})
	}
	f.add(prometheus.GaugeValue, "bondstack_lacp_port_state", "A bit of the port state of IEEE 802.1AX, as each end says.", []string{"end", "flag"}, func(p *bonding.LACPPort, add add) {
		for bit, flag := range portFlags {
			add(float64(p.Actor.State>>bit&1), "actor", flag)
			add(float64(p.Partner.State>>bit&1), "partner", flag)
		}
	})
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	both(gauge, "key", "The port's key.", func(e *bonding.LACPEnd, _ string, _ uint32) float64 { return float64(e.Key) })
	both(gauge, "number", "The port's number.", func(e *bonding.LACPEnd, _ string, _ uint32) float64 { return float64(e.Port) })
	both(gauge, "priority", "The port's priority; less is better.", func(e *bonding.LACPEnd, _ string, _ uint32) float64 { return float64(e.PortPriority) })
	both(gauge, "system_priority", "The priority of the port's system; less is better.", func(e *bonding.LACPEnd, _ string, _ uint32) float64 { return float64(e.SystemPriority) })
	both(gauge, "churned", "1 where the end has not come into sync for a minute.", func(_ *bonding.LACPEnd, churn string, _ uint32) float64 { return number(churn == "churned") })
	both(counter, "churns_total", "Times that the end has not come into sync for a minute.", func(_ *bonding.LACPEnd, _ string, churns uint32) float64 { return float64(churns) })
	f.add(gauge, "bondstack_lacp_port_partner_info", "The system at the other end; always 1.", []string{"partner_mac_address"}, func(p *bonding.LACPPort, add add) {
		add(1, p.Partner.System)
	})
}

// machines adds the states of the standard's machines, by its names.
func machines(f *families[bonding.LACPPort]) {
	for _, m := range []struct {
		machine lacp.Machine
		name    string
		value   func(*bonding.LACPPort) string
	}{
		{lacp.ReceiveMachine, "receive", func(p *bonding.LACPPort) string { return p.Receive }},
		{lacp.MuxMachine, "mux", func(p *bonding.LACPPort) string { return p.Mux }},
		{lacp.SelectionLogic, "selection", func(p *bonding.LACPPort) string { return p.Selection }},
	} {
		f.states("bondstack_lacp_port_"+m.name+"_state", "1 for the state of the port's "+m.name+" machine of IEEE 802.1AX.", "state", m.machine.StateNames(), m.value)
	}
}

func drainStages() (names []string) {
	for s := lacp.DrainStage(0); s <= lacp.Returning; s++ {
		names = append(names, s.String())
	}
	return names
}

// frames adds the port's counters of LACP's and the marker protocol's frames.
func frames(f *families[bonding.LACPPort]) {
	for _, c := range []struct {
		name, help string
		value      func(*lacp.Counters) uint64
	}{
		{"received_lacpdus", "LACPDUs received.", func(c *lacp.Counters) uint64 { return c.LACPDURx }},
		{"sent_lacpdus", "LACPDUs sent.", func(c *lacp.Counters) uint64 { return c.LACPDUTx }},
		{"received_unknown", "Frames of the slow protocols received with another subtype.", func(c *lacp.Counters) uint64 { return c.UnknownRx }},
		{"received_illegal", "LACPDUs received that are too short.", func(c *lacp.Counters) uint64 { return c.IllegalRx }},
		{"received_markers", "Markers received.", func(c *lacp.Counters) uint64 { return c.MarkerRx }},
		{"sent_markers", "Markers sent.", func(c *lacp.Counters) uint64 { return c.MarkerTx }},
		{"received_marker_responses", "Marker responses received.", func(c *lacp.Counters) uint64 { return c.MarkerRespRx }},
		{"sent_marker_responses", "Marker responses sent.", func(c *lacp.Counters) uint64 { return c.MarkerRespTx }},
		{"received_unknown_markers", "Frames of the marker protocol received that are neither.", func(c *lacp.Counters) uint64 { return c.MarkerUnknownRx }},
		{"received_looped_lacpdus", "LACPDUs received from the own system.", func(c *lacp.Counters) uint64 { return c.LoopRx }},
		{"received_ignored_lacpdus", "LACPDUs received while the link was down or half duplex.", func(c *lacp.Counters) uint64 { return c.IgnoredRx }},
		{"unanswered_markers", "Markers received and not answered, since more than three came in a second.", func(c *lacp.Counters) uint64 { return c.MarkerLimited }},
	} {
		f.counter("bondstack_lacp_port_"+c.name+"_total", c.help, func(p *bonding.LACPPort) uint64 { return c.value(&p.Counters) })
	}
}
