// Package metrics gives Prometheus the state and the counters of bonds.
//
//	r := prometheus.NewRegistry()
//	r.MustRegister(metrics.New(bond))
//	http.Handle("/metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
//
// There are node_bonding_slaves and node_bonding_active, with the names, labels
// and meaning that node_exporter gives them, so that dashboards and alerts for
// Linux's bonds work, and bondstack_*: docs/metrics.md lists them.
//
// Each collection asks each bond once for its Status, so the values of one bond
// are of one moment. That takes the lock of the control side, which the data path
// never takes. Labels are names of slaves, and words of fixed lists: reasons,
// causes, states; and the targets of the ARP monitor, of which there are 32 at
// most.
//
// # Limits
//
// What a slave has counted is gone when it leaves; the bond's own counters keep
// it. Bonds of one Collector need different names.
package metrics

import (
	"bondstack/bonding"

	"github.com/prometheus/client_golang/prometheus"
)

// Source is what metrics are made of: a *bonding.Bond.
type Source interface {
	Status() bonding.Status
}

// Collector collects the metrics of bonds. Its methods may be called from any
// goroutine.
type Collector struct{ sources []Source }

var (
	_ prometheus.Collector = (*Collector)(nil)
	_ Source               = (*bonding.Bond)(nil)
)

// New makes a Collector of bonds, whose names differ.
func New(bonds ...Source) *Collector { return &Collector{bonds} }

// Describe sends what all metrics are.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, list := range [][]described{bondMetrics.described(), slaveMetrics.described(), portMetrics.described(), arpMetrics.described()} {
		for _, d := range list {
			ch <- d.desc
		}
	}
	ch <- outageDesc
	ch <- detectionDesc
}

// Collect sends the present values.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.sources {
		st := s.Status()
		collect(&st, ch)
	}
}

// collect sends all metrics of a bond.
func collect(st *bonding.Status, ch chan<- prometheus.Metric) {
	bondMetrics.send(ch, st, st.Name)
	sendFailovers(ch, st)
	for i := range st.Slaves {
		s := &st.Slaves[i]
		slaveMetrics.send(ch, s, st.Name, s.Name)
		if s.LACP != nil {
			portMetrics.send(ch, s.LACP, st.Name, s.Name)
		}
		if s.ARP != nil {
			arpMetrics.send(ch, s.ARP, st.Name, s.Name)
		}
	}
}
