package metrics

import (
	"strconv"
	"unicode/utf8"

	"bondstack/bonding"

	"github.com/prometheus/client_golang/prometheus"
)

// add gives a family one value, with the values of the family's own labels.
type add func(value float64, labels ...string)

// family is the metrics of one name.
type family[T any] struct {
	described
	values func(*T, add)
}

// described is what is known of a family without its values.
type described struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// families are the metrics of one kind of thing, T. All have the same first
// labels, which say whose they are.
type families[T any] struct {
	labels []string
	list   []family[T]
}

// add adds a family with labels of its own.
func (f *families[T]) add(kind prometheus.ValueType, name, help string, labels []string, values func(*T, add)) {
	desc := prometheus.NewDesc(name, help, append(append([]string(nil), f.labels...), labels...), nil)
	f.list = append(f.list, family[T]{described{desc, kind}, values})
}

func (f *families[T]) gauge(name, help string, value func(*T) float64) {
	f.add(prometheus.GaugeValue, name, help, nil, func(t *T, add add) { add(value(t)) })
}

func (f *families[T]) counter(name, help string, value func(*T) uint64) {
	f.add(prometheus.CounterValue, name, help, nil, func(t *T, add add) { add(float64(value(t))) })
}

// flag adds a gauge that is 1 where something is so, else 0.
func (f *families[T]) flag(name, help string, value func(*T) bool) {
	f.gauge(name, help, func(t *T) float64 { return number(value(t)) })
}

// states adds a gauge for each state that T may be in: 1 for the present one,
// else 0.
func (f *families[T]) states(name, help, of string, states []string, value func(*T) string) {
	f.add(prometheus.GaugeValue, name, help, []string{of}, func(t *T, add add) {
		present := value(t)
		for _, s := range states {
			add(number(s == present), label(s))
		}
	})
}

// link adds the speed and the duplex, which are absent where they are not known.
func (f *families[T]) link(prefix, whose string, value func(*T) (speedMbps *uint32, duplex string)) {
	f.add(prometheus.GaugeValue, prefix+"_speed_bytes_per_second", "Speed of "+whose+" in each direction; absent where it is not known.", nil, func(t *T, add add) {
		if speed, _ := value(t); speed != nil {
			add(float64(*speed) * 1e6 / 8)
		}
	})
	f.add(prometheus.GaugeValue, prefix+"_full_duplex", "1 where "+whose+" is full duplex, 0 where half; absent where it is not known.", nil, func(t *T, add add) {
		if _, duplex := value(t); duplex == "full" || duplex == "half" {
			add(number(duplex == "full"))
		}
	})
}

// traffic adds the counters that bonds and slaves have.
func (f *families[T]) traffic(prefix, whose string, value func(*T) *bonding.Counters) {
	for _, c := range []struct {
		name, help string
		value      func(*bonding.Counters) uint64
	}{
		{"transmit_packets", "Packets sent by " + whose + "; one with segmentation offload counts once.", func(c *bonding.Counters) uint64 { return c.TxPackets }},
		{"transmit_bytes", "Bytes sent by " + whose + ", Ethernet headers included.", func(c *bonding.Counters) uint64 { return c.TxBytes }},
		{"receive_packets", "Packets received by " + whose + ".", func(c *bonding.Counters) uint64 { return c.RxPackets }},
		{"receive_bytes", "Bytes received by " + whose + ", Ethernet headers included.", func(c *bonding.Counters) uint64 { return c.RxBytes }},
		{"receive_multicast_packets", "Multicast packets received by " + whose + ".", func(c *bonding.Counters) uint64 { return c.RxMulticast }},
		{"transmit_lost_packets", "Packets to be sent by " + whose + " that were lost.", func(c *bonding.Counters) uint64 { return c.TxDropped }},
		{"receive_lost_packets", "Packets received by " + whose + " that were lost.", func(c *bonding.Counters) uint64 { return c.RxDropped }},
	} {
		f.counter(prefix+"_"+c.name+"_total", c.help, func(t *T) uint64 { return c.value(value(t)) })
	}
	f.add(prometheus.CounterValue, prefix+"_drops_total", "Packets dropped by "+whose+", by reason: lost ones, and those that were not for the bond or not by this slave (rx_inactive, rx_own, rx_other_host, rx_copy).",
		[]string{"reason"}, func(t *T, add add) {
			for reason, n := range value(t).Drops {
				add(float64(n), reason)
			}
		})
}

// send sends all values of t, which the labels name.
func (f *families[T]) send(ch chan<- prometheus.Metric, t *T, names ...string) {
	for _, m := range f.list {
		m.values(t, func(value float64, labels ...string) {
			all := append(append(make([]string, 0, len(names)+len(labels)), names...), labels...)
			for i := range all {
				all[i] = labelOf(all[i])
			}
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, all...)
		})
	}
}

func (f *families[T]) described() []described {
	list := make([]described, len(f.list))
	for i := range f.list {
		list[i] = f.list[i].described
	}
	return list
}

// labelOf is a name as the value of a label. Linux takes names of any bytes, and
// Prometheus only those in UTF-8: of others the bytes are written out.
func labelOf(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// seconds are milliseconds in the unit that Prometheus wants.
func seconds[N int64 | uint64](ms N) float64 { return float64(ms) / 1000 }
