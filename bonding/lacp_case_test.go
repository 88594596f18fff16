package bonding_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/lacp"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/wire"

	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

// A port is active unless that is switched off (A8): its first PDU comes within
// a second and says so, in each form in which the bond is set up.
func TestLACPUnsetIsActive(t *testing.T) {
	for _, options := range []map[string]string{nil, {"mode": "4"}, {"mode": "802.3ad"}, {"lacp_active": "on"}, {"lacp_active": "1"}} {
		r := newLACPRig(t, 1, options)
		run(r.clock, time.Second)
		if h := r.partners["eth0"].last(t); !h.Actor.State.Has(lacp.Activity | lacp.Aggregation) {
			t.Errorf("options %v: the first PDU says %v", options, h.Actor.State)
		}
		if !r.Status().LACP.Active {
			t.Errorf("options %v: lacp_active is off in the status", options)
		}
	}
}

// Our own PDUs that come back are a loop: no data, no storm, named in the
// status (A11).
func TestLACPReflected(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	r.agree()
	p := r.partners["eth0"]
	p.speak(0)
	p.reflects = true
	run(r.clock, 10*time.Second)
	s := r.slave("eth0")
	if s.State == "active" || s.Receives || !s.LACP.Looped || !strings.Contains(s.LACP.Explanation, "loop") {
		t.Errorf("a reflected port is %s, looped is %v: %s", s.State, s.LACP.Looped, s.LACP.Explanation)
	}
	if n := p.mostInASecond(); n > 3 {
		t.Errorf("a reflected port sent %d PDUs in a second", n)
	}
	if s := r.slave("eth1"); s.State != "active" {
		t.Errorf("the other port: %s", s.LACP.Explanation)
	}
}

// Two ports of one bond that are cabled together carry no data (A11).
func TestLACPCabledToItself(t *testing.T) {
	clock := faketime.NewManualClock()
	b, err := bonding.New(bonding.Options{Mode: bonding.IEEE8023AD, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	x, y, err := wire.New(wire.Options{Synchronous: true, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	for i, ep := range []*wire.Endpoint{x, y} {
		if err := b.Enslave(fmt.Sprintf("eth%d", i), ep, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.Attach(&linktest.Counter{})
	run(clock, 20*time.Second)
	for _, s := range b.Status().Slaves {
		if s.State == "active" || !s.LACP.Looped {
			t.Errorf("%s is %s, looped is %v", s.Name, s.State, s.LACP.Looped)
		}
	}
	if st := b.Status(); st.Carrier || st.LACP.Counters.LACPDUTx > 3*2*21 {
		t.Errorf("carrier is %v after %d PDUs", st.Carrier, st.LACP.Counters.LACPDUTx)
	}
}

// A speed that becomes known late gives the port another key, and it finds its
// aggregator without being enslaved again; ports of different speeds do not
// share one (A19).
func TestLACPSpeedChange(t *testing.T) {
	a, b, clock, wires := lacpPair(t, 2, map[string]string{"lacp_rate": "fast"})
	aggregators := func() [2]uint16 {
		s := a.Status().Slaves
		return [2]uint16{s[0].LACP.Aggregator, s[1].LACP.Aggregator}
	}
	setSpeed := func(i int, speed uint32) {
		if err := wires[i].SetSpeed(speed, link.DuplexFull); err != nil {
			t.Fatal(err)
		}
	}
	for i := range wires {
		setSpeed(i, link.SpeedUnknown)
	}
	// The change comes with the start, so there may be more to say than the three
	// LACPDUs that may be sent in a second: one more than the usual 3 s.
	run(clock, 4*time.Second)
	wantPorts(t, "unknown speeds are equal", a, true, true, true)
	setSpeed(0, 10000)
	run(clock, time.Second)
	setSpeed(1, 10000)
	run(clock, 2*time.Second)
	if g := aggregators(); g[0] != g[1] {
		t.Errorf("2 s after both had one speed the aggregators are %v", g)
	}
	run(clock, time.Second)
	wantPorts(t, "both 10G", a, true, true, true)
	wantPorts(t, "both 10G", b, true, true, true)
	if agg := a.Status().LACP.Aggregator; agg.ActorKey != 15 || agg.Ports != 2 {
		t.Errorf("active aggregator %+v, want key 15 and 2 ports", agg)
	}
	setSpeed(0, 1000)
	run(clock, 3*time.Second)
	wantPorts(t, "1G and 10G", a, true, false, true)
	if g := aggregators(); g[0] == g[1] {
		t.Errorf("1G and 10G share aggregator %d", g[0])
	}
}

// The aggregation bit is set from the first port on (A20).
func TestLACPAggregationBit(t *testing.T) {
	r := newLACPRig(t, 1, nil)
	run(r.clock, time.Second)
	first := r.partners["eth0"]
	if !first.last(t).Actor.State.Has(lacp.Aggregation) {
		t.Errorf("a port alone says %v", first.last(t).Actor.State)
	}
	second := r.add("eth1", linktest.RecorderOptions{})
	first.heard = nil
	r.agree()
	for _, p := range []*scripted{first, second} {
		if !p.last(t).Actor.State.Has(lacp.Aggregation) {
			t.Errorf("with two ports, one says %v", p.last(t).Actor.State)
		}
	}
}

// Port numbers are from 1 and unique in the process, and stay (A23).
func TestLACPPortNumbers(t *testing.T) {
	var rigs []*lacpRig
	numbers := func() map[string]uint16 {
		m := map[string]uint16{}
		for i, r := range rigs {
			for _, s := range r.Status().Slaves {
				m[fmt.Sprint(i, s.Name)] = s.LACP.Actor.Port
			}
		}
		return m
	}
	for range 2 {
		rigs = append(rigs, newLACPRig(t, 2, nil))
	}
	before, seen := numbers(), map[uint16]bool{0: true}
	for _, n := range before {
		if seen[n] {
			t.Errorf("number %d is zero or there twice: %v", n, before)
		}
		seen[n] = true
	}
	if err := rigs[0].Release("eth0"); err != nil {
		t.Fatal(err)
	}
	rigs[0].add("eth2", linktest.RecorderOptions{})
	for name, n := range numbers() {
		if old, ok := before[name]; ok && old != n {
			t.Errorf("%s had number %d and has %d", name, old, n)
		}
	}
}

// A slave more, or one less, leaves the others as they are (A37).
func TestLACPHotAdd(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast", "xmit_hash_policy": "layer3+4"})
	r.agree()
	names := []string{"eth0", "eth1"}
	aggregator := r.Status().LACP.Aggregator.ID
	var before [][]bonding.LACPChange
	for _, name := range names {
		before = append(before, r.changesOf(name))
	}
	offered := 0
	carry := func(d time.Duration) {
		for ; d > 0; d -= 10 * time.Millisecond {
			if n, err := r.send(8); n != 8 || err != nil {
				t.Fatalf("WritePackets() = %d, %v in a hot add", n, err)
			}
			offered += 8
			r.ms(10)
		}
	}
	dropped := r.drops("tx_no_slave")
	third := r.add("eth2", linktest.RecorderOptions{})
	third.speak(time.Second)
	carry(4 * time.Second)
	if s := r.slave("eth2"); s.State != "active" || third.data == 0 {
		t.Errorf("the third slave carried %d frames: %s", third.data, s.LACP.Explanation)
	}
	if err := r.Release("eth2"); err != nil {
		t.Fatal(err)
	}
	carry(2 * time.Second)
	for i, name := range names {
		if after := r.changesOf(name); !reflect.DeepEqual(times(before[i]), times(after)) {
			t.Errorf("%s changed: %+v", name, after[len(before[i]):])
		}
	}
	got := third.data
	for _, name := range names {
		got += r.partners[name].data
	}
	if got != offered || r.drops("tx_no_slave") != dropped {
		t.Errorf("%d of %d frames arrived", got, offered)
	}
	if now := r.Status().LACP.Aggregator.ID; now != aggregator {
		t.Errorf("the active aggregator is %d, was %d", now, aggregator)
	}
}

// times takes out the instants, which are computed back from the present.
func times(list []bonding.LACPChange) []bonding.LACPChange {
	for i := range list {
		list[i].Time = time.Time{}
	}
	return list
}

// A slave that was disabled by hand stays so whatever its link does (A56).
func TestLACPDisabledSlave(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	r.agree()
	if err := r.SetSlaveEnabled("eth0", false); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r.carrier("eth0", false)
		run(r.clock, time.Second)
		r.carrier("eth0", true)
		run(r.clock, 3*time.Second)
		s := r.slave("eth0")
		if s.State == "active" || s.Receives || !strings.Contains(s.LACP.Explanation, "disabled by hand") {
			t.Errorf("a disabled slave is %s: %s", s.State, s.LACP.Explanation)
		}
	}
	if err := r.SetSlaveEnabled("eth0", true); err != nil {
		t.Fatal(err)
	}
	run(r.clock, 3*time.Second)
	if s := r.slave("eth0"); s.State != "active" {
		t.Errorf("enabled again: %s", s.LACP.Explanation)
	}
}
