package bonding_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/lacp"
)

// A passive port is silent until its partner speaks, and again when that has
// gone; two passive ones stay silent (A22).
func TestLACPPassive(t *testing.T) {
	passive := map[string]string{"lacp_active": "off", "lacp_rate": "fast"}
	r := newLACPRig(t, 1, passive)
	p := r.partners["eth0"]
	run(r.clock, 62*time.Second)
	if len(p.heard) != 0 {
		t.Errorf("a passive port without partner sent %d PDUs", len(p.heard))
	}
	p.speak(time.Second)
	run(r.clock, 3*time.Second)
	if s := r.slave("eth0"); s.State != "active" || p.last(t).Actor.State.Has(lacp.Activity) {
		t.Errorf("with an active partner the port is %s, its state %v", s.State, p.last(t).Actor.State)
	}
	p.speak(0)
	run(r.clock, 6*time.Second)
	p.heard = nil
	run(r.clock, 62*time.Second)
	if len(p.heard) != 0 {
		t.Errorf("after the partner fell silent, a passive port sent %d PDUs", len(p.heard))
	}

	a, b, clock, _ := lacpPair(t, 2, passive)
	run(clock, 60*time.Second)
	for _, x := range []*bonding.Bond{a, b} {
		if n := x.Status().LACP.Counters.LACPDUTx; n != 0 {
			t.Errorf("one of two passive bonds sent %d PDUs", n)
		}
	}
}

// The period is the partner's wish (A4), and no traffic or lack of it changes
// it (A46).
func TestLACPPeriod(t *testing.T) {
	r := newLACPRig(t, 1, map[string]string{"lacp_rate": "slow"})
	p := r.partners["eth0"]
	r.agree()
	gaps := func(about string, d, want, tolerance time.Duration, busy bool) {
		p.heard = p.heard[len(p.heard)-1:]
		for ; d > 0; d -= 10 * time.Millisecond {
			if busy {
				r.send(32)
			}
			r.advance(10 * time.Millisecond)
		}
		for i := 1; i < len(p.heard); i++ {
			if gap := p.heard[i].at - p.heard[i-1].at; gap < want-tolerance || gap > want+tolerance {
				t.Errorf("%s: gap of %v, want %v", about, gap, want)
			}
		}
		if n := time.Duration(len(p.heard)); n*want < d-want {
			t.Errorf("%s: %d PDUs in %v", about, n, d)
		}
	}
	p.every = time.Second
	gaps("short, idle", 120*time.Second, time.Second, 100*time.Millisecond, false)
	gaps("short, busy", 20*time.Second, time.Second, 100*time.Millisecond, true)
	if p.data == 0 {
		t.Error("no data was sent")
	}
	p.actor.State &^= lacp.Timeout
	run(r.clock, 40*time.Second) // the first period began as a short one
	gaps("long", 300*time.Second, 30*time.Second, 100*time.Millisecond, false)
}

// Silence: current for 3 s, expired without data, defaulted 3 s later (A5); a
// link that was down comes back without the bits of data.
func TestLACPSilence(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	r.agree()
	p := r.partners["eth0"]
	p.say()
	p.speak(0)
	state := func(after time.Duration, receive string, sends bool) {
		t.Helper()
		s := r.slave("eth0")
		if s.LACP.Receive != receive || (s.State == "active") != sends || s.Receives != sends {
			t.Errorf("%v after the last PDU: %s, %s, receives is %v; want %s, data is %v", after, s.LACP.Receive, s.State, s.Receives, receive, sends)
		}
	}
	r.ms(2900)
	state(2900*time.Millisecond, "CURRENT", true)
	r.ms(200)
	state(3100*time.Millisecond, "EXPIRED", false)
	r.ms(3100)
	state(6200*time.Millisecond, "DEFAULTED", false)
	if e := r.port("eth0").Partner; e.System != "00:00:00:00:00:00" {
		t.Errorf("the defaulted partner is %+v", e)
	}
	if s := r.slave("eth1"); s.State != "active" {
		t.Errorf("eth1: %s", s.LACP.Explanation)
	}
	q := r.partners["eth1"]
	r.carrier("eth1", false)
	q.heard = nil
	r.carrier("eth1", true)
	run(r.clock, 500*time.Millisecond)
	if st := q.heard[0].Actor.State; st&(lacp.Synchronization|lacp.Collecting|lacp.Distributing) != 0 {
		t.Errorf("the first PDU of a link that came back says %v", st)
	}
}

// With independent control no data is sent until the partner collects; with
// coupled control sync is enough (A7).
func TestLACPWaitsForCollecting(t *testing.T) {
	for _, coupled := range []string{"on", "off"} {
		r := newLACPRig(t, 1, map[string]string{"coupled_control": coupled, "lacp_rate": "fast"})
		p := r.partners["eth0"]
		p.actor.State = agreeing &^ (lacp.Collecting | lacp.Distributing)
		p.speak(time.Second)
		for range 400 {
			r.send(1)
			r.ms(10)
		}
		if sent := p.data > 0; sent != (coupled == "on") {
			t.Errorf("coupled_control %s: %d frames to a partner that does not collect", coupled, p.data)
		}
		s := r.slave("eth0")
		if !s.Receives || s.LACP.Actor.State&uint8(lacp.Collecting) == 0 || r.Status().LACP.Coupled != (coupled == "on") {
			t.Errorf("coupled_control %s: receives is %v, state %v", coupled, s.Receives, s.LACP.Actor.Flags)
		}
		p.actor.State = agreeing
		p.say()
		if s := r.slave("eth0"); s.State != "active" {
			t.Errorf("coupled_control %s: a PDU that says collecting did not do: %s", coupled, s.LACP.Explanation)
		}
	}
}

// Who closes the bond or removes its NIC says farewell on each slave (A53).
func TestLACPFarewellOnClose(t *testing.T) {
	for _, how := range []string{"close", "detach"} {
		r := newLACPRig(t, 3, map[string]string{"lacp_rate": "fast"})
		r.agree()
		for _, p := range r.partners {
			p.every, p.heard = 0, nil
		}
		if how == "close" {
			r.Close()
		} else {
			r.Attach(nil)
			r.clock.RunImmediatelyScheduledJobs()
		}
		for name, p := range r.partners {
			if len(p.heard) != 1 {
				t.Errorf("%s: %s heard %d PDUs, want the farewell", how, name, len(p.heard))
				continue
			}
			if s := p.heard[0].Actor.State; s&(lacp.Aggregation|lacp.Synchronization|lacp.Collecting|lacp.Distributing) != 0 {
				t.Errorf("%s: the farewell on %s says %v", how, name, s)
			}
			if p.heard[0].source != macOf(name) {
				t.Errorf("%s: the farewell on %s comes from %v, want the slave's own address", how, name, p.heard[0].source)
			}
		}
		run(r.clock, 60*time.Second)
		if n := len(r.partners["eth0"].heard); n != 1 {
			t.Errorf("%s: %d PDUs after the farewell", how, n-1)
		}
	}
}

// Whoever removes a NIC takes the bond away from it and closes it right after: the
// farewell is sent though what follows from the first is still under way.
func TestLACPFarewellOvertaken(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	r.agree()
	for _, p := range r.partners {
		p.every, p.heard = 0, nil
	}
	inside, release := make(chan struct{}), make(chan struct{})
	var told atomic.Bool
	defer r.SubscribeChanges(func() {
		if !told.Swap(true) {
			close(inside)
			<-release
		}
	})()
	r.SetMTU(1400) // is told of before the farewell
	r.Attach(nil)
	var after sync.WaitGroup
	after.Go(r.clock.RunImmediatelyScheduledJobs)
	<-inside
	soon(t, "Close", r.Close)
	for name, p := range r.partners {
		if len(p.heard) != 1 {
			t.Errorf("%s heard %d PDUs, want the farewell", name, len(p.heard))
		}
	}
	close(release)
	after.Wait()
}

// Fifty changes in a second make three PDUs in any second at most, and the last
// state is told (A55).
func TestLACPRateLimit(t *testing.T) {
	r := newLACPRig(t, 1, map[string]string{"lacp_rate": "fast"})
	r.agree()
	p := r.partners["eth0"]
	for i := range 50 {
		r.set("ad_actor_sys_prio", fmt.Sprint(1000+i))
		r.ms(20)
	}
	run(r.clock, 2*time.Second)
	if n := p.mostInASecond(); n > 3 {
		t.Errorf("%d PDUs in a second", n)
	}
	if prio := p.last(t).Actor.SystemPriority; prio != 1049 {
		t.Errorf("the last PDU has system priority %d, want 1049", prio)
	}
}

// Churn: none as soon as there is sync, churned after 60 s without, none again
// with the next PDU that has it (A58).
func TestLACPChurn(t *testing.T) {
	r := newLACPRig(t, 1, map[string]string{"lacp_rate": "fast"})
	p := r.partners["eth0"]
	r.agree()
	if l := r.port("eth0"); l.ActorChurn != "none" || l.PartnerChurn != "none" {
		t.Errorf("in sync: churn states %s and %s", l.ActorChurn, l.PartnerChurn)
	}
	p.actor.State &^= lacp.Synchronization
	run(r.clock, 62*time.Second)
	if l := r.port("eth0"); l.PartnerChurn != "churned" || l.PartnerChurnCount != 1 {
		t.Errorf("62 s without the partner's sync: %s, count %d", l.PartnerChurn, l.PartnerChurnCount)
	}
	p.actor.State |= lacp.Synchronization
	p.say()
	if l := r.port("eth0"); l.PartnerChurn != "none" {
		t.Errorf("with sync again: %s", l.PartnerChurn)
	}
}
