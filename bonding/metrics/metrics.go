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
	"sync"

	"bondstack/bonding"

	"github.com/prometheus/client_golang/prometheus"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// Source is what metrics are made of: a *bonding.Bond.
type Source interface {
	Status() bonding.Status
}

// TCPFunc returns what TCP has counted in the stack on a bond, such as
//
//	func() tcpip.TCPStats { return host.Stack().Stats().TCP }
type TCPFunc func() tcpip.TCPStats

// Collector collects the metrics of bonds. Its methods may be called from any
// goroutine.
type Collector struct {
	mu      sync.Mutex
	sources []source // replaced as a whole
}

type source struct {
	Source
	tcp    TCPFunc
	relays RelaysFunc
}

var (
	_ prometheus.Collector = (*Collector)(nil)
	_ Source               = (*bonding.Bond)(nil)
)

// New makes a Collector of bonds, whose names differ.
func New(bonds ...Source) *Collector {
	c := &Collector{}
	for _, b := range bonds {
		c.Add(b, nil)
	}
	return c
}

// Add adds a bond. With tcp, there is also bondstack_tcp_*, in which a bond shows
// that loses or reorders.
func (c *Collector) Add(bond Source, tcp TCPFunc) { c.AddWithRelays(bond, tcp, nil) }

// AddWithRelays is Add of a bond that flows are passed on by: with bondstack_relay_*
// too.
func (c *Collector) AddWithRelays(bond Source, tcp TCPFunc, relays RelaysFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = append(c.sources[:len(c.sources):len(c.sources)], source{bond, tcp, relays})
}

// Remove takes a bond away. A collection that has begun may still ask it.
func (c *Collector) Remove(bond Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []source
	for _, s := range c.sources {
		if s.Source != bond {
			left = append(left, s)
		}
	}
	c.sources = left
}

// Describe sends what all metrics are.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, list := range [][]described{bondMetrics.described(), slaveMetrics.described(), portMetrics.described(), arpMetrics.described(), tcpMetrics.described(), relayMetrics.described()} {
		for _, d := range list {
			ch <- d.desc
		}
	}
	ch <- outageDesc
	ch <- detectionDesc
}

// Collect sends the present values.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	sources := c.sources
	c.mu.Unlock()
	for _, s := range sources {
		st := s.Status()
		collect(&st, ch)
		if s.tcp != nil {
			stats := s.tcp()
			tcpMetrics.send(ch, &stats, st.Name)
		}
		if s.relays != nil {
			for _, r := range s.relays() {
				relayMetrics.send(ch, &r, st.Name, r.Name)
			}
		}
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
