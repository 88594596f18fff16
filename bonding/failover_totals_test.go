package bonding_test

import (
	"testing"
	"time"

	"bondstack/bonding"
)

// The totals have all failovers, those too that the records no longer have, and
// the last one before another follows.
func TestFailoverTotals(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, MIIMon: 100 * time.Millisecond}, 2)
	names := []string{"eth1", "eth0"}
	for i := range 100 {
		r.set("active_slave", names[i%2])
		r.ms(2)
		r.send(1) // 2 ms without a frame
	}
	r.carrier("eth0", false)
	r.ms(20)
	check := func(when string, byHand, carrier, outages, upTo3ms uint64) {
		t.Helper()
		sums := r.Status().FailoverTotals
		if sums.Causes[bonding.CauseByHand] != byHand || sums.Causes[bonding.CauseCarrier] != carrier {
			t.Errorf("%s: causes %v, want %d by hand and %d of the carrier", when, sums.Causes, byHand, carrier)
		}
		if n := len(bonding.FailoverCauses); len(sums.Causes) != n {
			t.Errorf("%s: %d causes, want all %d", when, len(sums.Causes), n)
		}
		for _, b := range sums.Outage.Buckets {
			want, checked := map[int64]uint64{1000: 0, 3000: upTo3ms, 30_000_000: outages}[b.UpToUs]
			if checked && b.Count != want {
				t.Errorf("%s: %d outages of up to %d µs, want %d", when, b.Count, b.UpToUs, want)
			}
		}
		if sums.Outage.Count != outages || sums.Detection.Count != carrier {
			t.Errorf("%s: %d outages and %d detections, want %d and %d", when, sums.Outage.Count, sums.Detection.Count, outages, carrier)
		}
	}
	check("before a frame", 100, 1, 100, 100)
	r.send(1)
	check("after it", 100, 1, 101, 100)
	r.carrier("eth0", true)
	r.set("active_slave", "eth0")
	check("when another follows", 101, 1, 101, 100)
	if got := r.Status().FailoverTotals.Outage.SumUs; got != 100*2000+20_000 {
		t.Errorf("the outages sum up to %d µs, want %d", got, 100*2000+20_000)
	}
}
