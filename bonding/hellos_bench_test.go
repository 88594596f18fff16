package bonding_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// polled is a link that does not tell of changes.
type polled struct{ *wire.Endpoint }

var _ link.StateEndpoint = polled{}

func (polled) SubscribeLinkState(func()) (cancel func()) { return func() {} }

// BenchmarkProbeDetect measures how long it takes to find that the active slave
// of an active-backup bond failed, from the failure to the change of the active
// slave: a wire cut one way with its carrier on, which only the probes find, and
// the loss of the carrier, told by the link or found by polling. One operation is
// 40 failures.
func BenchmarkProbeDetect(b *testing.B) {
	for _, c := range []struct {
		name  string
		opts  bonding.Options
		event bool
		cut   bool
	}{
		{"one-way/probe=10x3", bonding.Options{ProbeInterval: 10 * time.Millisecond}, true, true},
		{"carrier/event", bonding.Options{}, true, false},
		{"carrier/miimon=100", bonding.Options{}, false, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.opts.Mode, c.opts.PrimaryReselect = bonding.ActiveBackup, bonding.ReselectFailure
			var bonds [2]*bonding.Bond
			for i := range bonds {
				var err error
				if bonds[i], err = bonding.New(c.opts); err != nil {
					b.Fatal(err)
				}
				b.Cleanup(bonds[i].Close)
			}
			var far [2]*wire.Endpoint
			for k := range far {
				x, y, err := wire.New(wire.Options{})
				if err != nil {
					b.Fatal(err)
				}
				far[k] = y
				if c.event {
					err = bonds[0].Enslave(fmt.Sprintf("eth%d", k), x, bonding.SlaveOptions{})
				} else {
					err = bonds[0].Enslave(fmt.Sprintf("eth%d", k), polled{x}, bonding.SlaveOptions{})
				}
				if err != nil {
					b.Fatal(err)
				}
				if err := bonds[1].Enslave(fmt.Sprintf("eth%d", k), y, bonding.SlaveOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			for _, bond := range bonds {
				bond.Attach(&linktest.Counter{})
			}
			events := bonds[0].Subscribe(10000)
			var took, since []time.Duration
			for b.Loop() {
				for i := range 40 {
					failProbed(b, bonds[0], far, events, c.cut, i, &took, &since)
				}
			}
			report := func(what string, list []time.Duration) {
				slices.Sort(list)
				b.Logf("%s: %d on %d CPUs: min %v, median %v, max %v", what, len(list), runtime.GOMAXPROCS(0), list[0], list[len(list)/2], list[len(list)-1])
			}
			report("from the failure", took)
			report("from the last sign of life", since)
			b.ReportMetric(float64(took[0])/1e6, "min-ms")
			b.ReportMetric(float64(took[len(took)/2])/1e6, "median-ms")
			b.ReportMetric(float64(took[len(took)-1])/1e6, "max-ms")
			b.ReportMetric(float64(since[len(since)-1])/1e6, "max-since-last-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// failProbed has the active slave fail, at another phase of its hellos each time,
// and waits for the failover and for all to be well again.
func failProbed(b *testing.B, bond *bonding.Bond, far [2]*wire.Endpoint, events *bonding.Subscription, cut bool, i int, took, since *[]time.Duration) {
	fail := func(k int, on bool) {
		if cut {
			far[k].SetCut(on)
		} else {
			far[k].SetCarrier(!on)
		}
	}
	healthy := func(st bonding.Status) bool {
		for _, s := range st.Slaves {
			if s.MIIStatus != "up" || s.Probe != nil && s.Probe.Verdict != "alive" {
				return false
			}
		}
		return true
	}
	st := bond.Status()
	for ; !healthy(st); st = bond.Status() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Duration(20+i*7%30) * time.Millisecond)
	for len(events.C) > 0 {
		<-events.C
	}
	k := int(st.ActiveSlave[3] - '0')
	start := time.Now()
	fail(k, true)
	for e := range events.C {
		if e.Kind == bonding.EventActive {
			break
		}
	}
	*took = append(*took, time.Since(start))
	list := bond.Status().Failovers
	*since = append(*since, time.Duration(list[len(list)-1].DetectionUs)*time.Microsecond)
	fail(k, false)
}
