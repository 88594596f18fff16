package metrics

import (
	"bondstack/bonding"

	"github.com/prometheus/client_golang/prometheus"
)

// bondMetrics are those of a bond.
var bondMetrics = func() *families[bonding.Status] {
	f := &families[bonding.Status]{labels: []string{"master"}}
	nodeExporter(f)
	state(f)
	f.traffic("bondstack_bond", "the bond", func(st *bonding.Status) *bonding.Counters { return &st.Counters })
	failovers(f)
	aggregation(f)
	reordering(f)
	balancing(f)
	return f
}()

// nodeExporter adds what node_exporter's collector "bonding" tells of a Linux
// bond, with its words.
func nodeExporter(f *families[bonding.Status]) {
	f.gauge("node_bonding_slaves", "Number of configured slaves per bonding interface.", func(st *bonding.Status) float64 {
		return float64(len(st.Slaves))
	})
	f.gauge("node_bonding_active", "Number of active slaves per bonding interface.", func(st *bonding.Status) (up float64) {
		for i := range st.Slaves {
			up += number(st.Slaves[i].MIIStatus == "up")
		}
		return up
	})
}

func state(f *families[bonding.Status]) {
	f.add(prometheus.GaugeValue, "bondstack_bond_info", "The bond's kind; always 1.", []string{"mode", "xmit_hash_policy", "mac_address"}, func(st *bonding.Status, add add) {
		add(1, st.Mode.String(), st.XmitHashPolicy, st.MACAddress)
	})
	f.flag("bondstack_bond_up", "1 where a stack or a device uses the bond.", func(st *bonding.Status) bool { return st.Up })
	f.flag("bondstack_bond_carrier", "1 where as many slaves are up as the bond needs to pass packets (min_links).", func(st *bonding.Status) bool { return st.Carrier })
	f.gauge("bondstack_bond_mtu_bytes", "The bond's MTU.", func(st *bonding.Status) float64 { return float64(st.MTU) })
	f.link("bondstack_bond", "the bond", func(st *bonding.Status) (*uint32, string) { return st.SpeedMbps, st.Duplex })
	f.gauge("bondstack_bond_warnings", "How many things look odd, as bondstack show tells.", func(st *bonding.Status) float64 { return float64(len(st.Warnings)) })
}

// reordering adds what restoring the order of TCP streams does.
func reordering(f *families[bonding.Status]) {
	within := func(kind prometheus.ValueType, name, help string, value func(*bonding.ReorderStatus) float64) {
		f.add(kind, "bondstack_reorder_"+name, help, nil, func(st *bonding.Status, add add) {
			if st.Reorder != nil {
				add(value(st.Reorder))
			}
		})
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	within(gauge, "active", "1 where the order of TCP streams is restored (rx_reorder).", func(r *bonding.ReorderStatus) float64 { return number(r.On) })
	within(gauge, "flows", "Streams whose order is known.", func(r *bonding.ReorderStatus) float64 { return float64(r.Flows) })
	within(gauge, "waiting_packets", "Packets that wait for what was sent before them.", func(r *bonding.ReorderStatus) float64 { return float64(r.Frames) })
	within(gauge, "waiting_bytes", "Memory of the packets that wait.", func(r *bonding.ReorderStatus) float64 { return float64(r.Bytes) })
	within(counter, "held_packets_total", "Packets that had to wait for what was sent before them.", func(r *bonding.ReorderStatus) float64 { return float64(r.Held) })
	f.add(counter, "bondstack_reorder_released_packets_total", "Packets that went on after a wait, by why.", []string{"reason"}, func(st *bonding.Status, add add) {
		if r := st.Reorder; r != nil {
			add(float64(r.Filled), "filled")
			add(float64(r.Lost), "lost")
			add(float64(r.Expired), "expired")
			add(float64(r.LinkGone), "link_gone")
			add(float64(r.Flushed), "flushed")
			add(float64(r.Evicted), "evicted")
		}
	})
	within(counter, "gaps_total", "Pieces of streams that were taken for lost.", func(r *bonding.ReorderStatus) float64 { return float64(r.Gaps) })
	within(counter, "late_packets_total", "Packets that came behind their stream's place: sent again, or given up too early.", func(r *bonding.ReorderStatus) float64 { return float64(r.Late) })
	within(counter, "overflow_packets_total", "Packets passed on out of order for want of room.", func(r *bonding.ReorderStatus) float64 { return float64(r.Overflow) })
	within(counter, "unknown_packets_total", "Packets passed on unseen, since the table of streams was full.", func(r *bonding.ReorderStatus) float64 { return float64(r.Unknown) })
	within(counter, "stale_acks_total", "Pure acknowledgements dropped, since a newer one had come by another link.", func(r *bonding.ReorderStatus) float64 { return float64(r.StaleAcks) })
}

// balancing adds what balance-tlb and balance-alb do.
func balancing(f *families[bonding.Status]) {
	within := func(kind prometheus.ValueType, name, help string, value func(*bonding.BalanceStatus) float64) {
		f.add(kind, "bondstack_balance_"+name, help, nil, func(st *bonding.Status, add add) {
			if st.Balance != nil {
				add(value(st.Balance))
			}
		})
	}
	within(prometheus.GaugeValue, "dynamic", "1 where flows are placed by load (tlb_dynamic_lb).", func(b *bonding.BalanceStatus) float64 { return number(b.Dynamic) })
	within(prometheus.CounterValue, "rebalances_total", "Periods after which flows were placed anew.", func(b *bonding.BalanceStatus) float64 { return float64(b.Rebalances) })
	clients := func(kind prometheus.ValueType, name, help string, value func(*bonding.ClientsStatus) float64) {
		f.add(kind, "bondstack_balance_"+name, help, nil, func(st *bonding.Status, add add) {
			if st.Balance != nil && st.Balance.Clients != nil {
				add(value(st.Balance.Clients))
			}
		})
	}
	clients(prometheus.GaugeValue, "clients", "Clients that balance-alb has told which slave to send to.", func(c *bonding.ClientsStatus) float64 { return float64(c.Count) })
	clients(prometheus.GaugeValue, "clients_limit", "How many clients there can be.", func(c *bonding.ClientsStatus) float64 { return float64(c.Max) })
	clients(prometheus.CounterValue, "clients_refused_total", "Times that a host found no room among the clients.", func(c *bonding.ClientsStatus) float64 { return float64(c.Refused) })
	clients(prometheus.CounterValue, "clients_evicted_total", "Idle clients that made room.", func(c *bonding.ClientsStatus) float64 { return float64(c.Evicted) })
}
