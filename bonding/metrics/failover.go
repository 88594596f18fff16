package metrics

import (
	"strings"

	"bondstack/bonding"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	outageDesc = prometheus.NewDesc("bondstack_failover_outage_seconds",
		"From the beginning of a failure to the first packet sent by another slave; failovers after which nothing was sent yet are not in it.", []string{"master"}, nil)
	detectionDesc = prometheus.NewDesc("bondstack_failover_detection_seconds",
		"From the beginning of a failure to the failover, of slaves that were lost.", []string{"master"}, nil)
)

// failovers adds their count and the last one's time.
func failovers(f *families[bonding.Status]) {
	f.add(prometheus.CounterValue, "bondstack_failovers_total", "Changes of the active slave, and in modes that spread slaves that no longer send, by cause.", []string{"cause"}, func(st *bonding.Status, add add) {
		for cause, n := range st.FailoverTotals.Causes {
			add(float64(n), label(string(cause)))
		}
	})
	f.add(prometheus.GaugeValue, "bondstack_last_failover_timestamp_seconds", "When the last failover was; absent where there was none.", nil, func(st *bonding.Status, add add) {
		if n := len(st.Failovers); n > 0 {
			add(float64(st.Failovers[n-1].Time.UnixMicro()) / 1e6)
		}
	})
}

func sendFailovers(ch chan<- prometheus.Metric, st *bonding.Status) {
	sendDurations(ch, outageDesc, &st.FailoverTotals.Outage, st.Name)
	sendDurations(ch, detectionDesc, &st.FailoverTotals.Detection, st.Name)
}

func sendDurations(ch chan<- prometheus.Metric, desc *prometheus.Desc, d *bonding.Durations, bond string) {
	buckets := make(map[float64]uint64, len(d.Buckets))
	for _, b := range d.Buckets {
		buckets[float64(b.UpToUs)/1e6] = b.Count
	}
	ch <- prometheus.MustNewConstHistogram(desc, d.Count, float64(d.SumUs)/1e6, buckets, labelOf(bond))
}

// label is a word or several as the value of a label.
func label(words string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(words)
}
