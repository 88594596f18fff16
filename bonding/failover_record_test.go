package bonding_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// failovers returns the records as lines: cause, from, to, detection, first
// frame sent and received, outage (milliseconds, - for none) and frames lost.
func (r *rig) failovers() []string {
	r.clock.RunImmediatelyScheduledJobs()
	lines := []string{}
	ms := func(us *int64) string {
		if us == nil {
			return "-"
		}
		return fmt.Sprint(float64(*us) / 1000)
	}
	for _, f := range r.Status().Failovers {
		lines = append(lines, fmt.Sprintf("%s: %s>%s %s %s %s %s %d", f.Cause, f.From, f.To,
			ms(&f.DetectionUs), ms(f.FirstTxUs), ms(f.FirstRxUs), ms(f.OutageUs), f.FramesLost))
	}
	return lines
}

func (r *rig) wantFailovers(want ...string) {
	r.tb.Helper()
	if got := r.failovers(); !slices.Equal(got, want) {
		r.tb.Errorf("failovers\n%q, want\n%q", got, want)
	}
}

// Each way in which a slave stops being active has its cause, and the times are
// those of the manual clock.
func TestFailoverRecordCauses(t *testing.T) {
	for _, c := range []struct {
		name string
		opts bonding.Options
		do   func(*rig)
		want []string
	}{
		{"the link tells", bonding.Options{}, func(r *rig) {
			r.carrier("eth0", false)
			r.ms(3)
			r.send(1)
			r.ms(4)
			r.links["eth1"].Inject(r.toBond(0))
		}, []string{"carrier: eth0>eth1 0 3 7 3 0"}},
		{"polling finds it", bonding.Options{}, func(r *rig) {
			r.ms(100) // a pass finds the link good
			r.ms(30)
			r.silently("eth0", false)
			r.ms(70)
			r.ms(5)
			r.send(1)
		}, []string{"miimon: eth0>eth1 100 105 - 105 0"}},
		{"downdelay counts", bonding.Options{DownDelay: 200 * time.Millisecond}, func(r *rig) {
			r.carrier("eth0", false)
			r.ms(200)
			r.send(1)
		}, []string{"carrier: eth0>eth1 200 200 - 200 0"}},
		{"a write finds the link gone", bonding.Options{}, func(r *rig) {
			r.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
			r.send(1) // eth1 takes it
		}, []string{"transmit error: eth0>eth1 0 0 - 0 0"}},
		{"by hand", bonding.Options{}, func(r *rig) {
			r.set("active_slave", "eth1")
			r.ms(2)
			r.send(1)
		}, []string{"by hand: eth0>eth1 0 2 - 2 0"}},
		{"disabled", bonding.Options{}, func(r *rig) {
			r.SetSlaveEnabled("eth0", false)
		}, []string{"disabled: eth0>eth1 0 - - - 0"}},
		{"released", bonding.Options{}, func(r *rig) {
			r.Release("eth0")
		}, []string{"released: eth0>eth1 0 - - - 0"}},
		{"the primary returns", bonding.Options{Primary: "eth0"}, func(r *rig) {
			r.carrier("eth0", false)
			r.ms(10)
			r.carrier("eth0", true)
		}, []string{"carrier: eth0>eth1 0 - - - 0", "primary returned: eth1>eth0 0 - - - 0"}},
		{"a greater priority", bonding.Options{}, func(r *rig) {
			r.SetSlavePriority("eth1", 5)
		}, []string{"selection: eth0>eth1 0 - - - 0"}},
		{"all lost, one returns", bonding.Options{}, func(r *rig) {
			r.carrier("eth0", false)
			r.ms(10)
			r.carrier("eth1", false)
			r.ms(40)
			r.send(3) // nobody is there
			r.carrier("eth0", true)
			r.ms(5)
			r.send(1)
		}, []string{"carrier: eth0>eth1 0 - - - 0", "carrier: eth1> 0 - - - 3", "link returned: >eth0 40 45 - 45 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opts.Mode, c.opts.NumGratARP = bonding.ActiveBackup, -1
			r := newRig(t, c.opts, 2)
			r.wantFailovers()
			c.do(r)
			r.wantFailovers(c.want...)
		})
	}
}

// In the modes that spread, each slave that is lost has its record.
func TestFailoverRecordSpread(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.BalanceXOR, bonding.Broadcast} {
		r := newRig(t, bonding.Options{Mode: mode}, 3)
		r.carrier("eth1", false)
		r.ms(1)
		r.send(4)
		r.carrier("eth0", false)
		r.carrier("eth2", false)
		r.send(2)
		r.ms(1)
		r.carrier("eth1", true)
		r.wantFailovers("carrier: eth1>eth0,eth2 0 1 - 1 0", "carrier: eth0>eth2 0 - - - 0",
			"carrier: eth2> 0 - - - 2", "link returned: >eth1 1 - - - 2")
	}
}

// A port that LACP takes out of the aggregate is a failover too.
func TestFailoverRecordLACP(t *testing.T) {
	r := newLACPRig(t, 2, nil)
	r.agree()
	r.wantFailovers()
	r.partners["eth1"].speak(0)
	run(r.clock, 100*time.Second)
	got := r.Status().Failovers
	if len(got) != 1 || got[0].Cause != bonding.CauseLACP || got[0].From != "eth1" || got[0].To != "eth0" {
		t.Errorf("failovers %+v, want one of eth1 by lacp", got)
	}
}

// The ring keeps the last 64, and sequence numbers go on.
func TestFailoverRecordRing(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	for i := range 100 {
		r.set("active_slave", fmt.Sprintf("eth%d", 1-i%2))
	}
	list := r.Status().Failovers
	if len(list) != 64 || list[0].Seq != 37 || list[63].Seq != 100 {
		t.Errorf("%d records from %d to %d, want 64 from 37 to 100", len(list), list[0].Seq, list[len(list)-1].Seq)
	}
}

// A bond without a NIC, and the first slave of one, are no failover; the JSON
// has an empty list then.
func TestFailoverRecordNone(t *testing.T) {
	r := newDownRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.Release("eth0")
	r.attach()
	text, err := json.Marshal(r.Status().Failovers)
	if err != nil || string(text) != "[]" {
		t.Errorf("failovers %s, %v, want []", text, err)
	}
}

// Looking for the first frames ends with them: nothing is left in the way of
// later ones, and nothing is allocated on it.
func TestFailoverRecordCostsNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
	null := linktest.NewNull(linktest.NullOptions{})
	other := linktest.NewNull(linktest.NullOptions{})
	for i, ep := range []*linktest.Null{null, other} {
		if err := r.Enslave(fmt.Sprintf("eth%d", i), ep, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list := benchList(t, 4)
	r.set("active_slave", "eth1")
	r.WritePackets(list)
	for _, armed := range []bool{true, false} {
		if !armed {
			r.clock.RunImmediatelyScheduledJobs()
		}
		if n := testing.AllocsPerRun(100, func() { r.WritePackets(list) }); n != 0 {
			t.Errorf("armed %v: %v allocations a write, want 0", armed, n)
		}
	}
}
