package lacp_test

import (
	"testing"
	"time"

	"bondstack/bonding/lacp"
)

// Case A4: the period is what the partner asks for, whatever our own rate is.
func TestPeriodFollowsPartner(t *testing.T) {
	for _, fast := range []bool{false, true} {
		r := newRig(t, lacp.Config{Fast: fast}, 1)
		p := r.partners[0]
		r.RunTo(10 * time.Second)
		r.Run(120 * time.Second)
		heard := p.Since(10*time.Second + 1)
		if n := len(heard); n < 119 || n > 121 {
			t.Errorf("fast=%v: %d PDUs in 120 s for a partner with the short timeout", fast, n)
		}
		gaps(t, heard, time.Second, 0)

		p.Actor.State &^= lacp.Timeout
		r.Run(2 * time.Second) // its next PDU says so
		turned := r.Now()
		r.want(1, lacp.PeriodicMachine, "SLOW_PERIODIC")
		r.Run(300 * time.Second)
		heard = p.Since(turned)
		if n := len(heard); n != 10 {
			t.Errorf("fast=%v: %d PDUs in 300 s for a partner with the long timeout", fast, n)
		}
		gaps(t, heard, 30*time.Second, 0)

		p.Actor.State |= lacp.Timeout
		p.Say()
		now := r.Now()
		r.Run(10 * time.Second)
		heard = p.Since(now)
		if len(heard) != 11 || heard[0].At != now {
			t.Errorf("fast=%v: back to the short timeout: %d PDUs in 10 s, first after %v", fast, len(heard), heard[0].At-now)
		}
	}
}

// The receive timeout follows our own rate: see TestSilenceFast and
// TestSilenceSlow, whose partner always asks for the short one.

// What lacp-alone shows: 1 s while EXPIRED, then 30 s.
func TestPeriodAlone(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true}, 1)
	p := r.partners[0]
	p.Silent = true
	r.RunTo(95 * time.Second)
	// 0 and each second until DEFAULTED at 3 s, which is told at once as the
	// octet changes with it; the first is the port's, at 2 s it attaches.
	var at []time.Duration
	for _, h := range p.Heard {
		at = append(at, h.At)
	}
	for i, want := range []time.Duration{0, 1, 2, 3, 33, 63, 93} {
		if i >= len(at) || at[i] != want*time.Second {
			t.Fatalf("PDUs at %v", at)
		}
	}
	if first := p.Heard[0].PDU; first.Actor.State != 0xc7 || first.Partner.State != 0x02 || first.Actor.Key != 15 {
		t.Errorf("first PDU %+v", first)
	}
	if last := p.Last(); last.Actor.State != 0x4f || last.Partner.State != 0 {
		t.Errorf("last PDU %+v", last)
	}
}

// Case A8: not set is active; the first PDU goes out at once.
func TestActiveByDefault(t *testing.T) {
	r := newRig(t, lacp.Config{}, 1)
	r.RunTo(time.Second)
	if len(r.partners[0].Heard) == 0 {
		t.Fatal("no PDU")
	}
	if h := r.partners[0].Heard[0]; h.At != 0 || !h.PDU.Actor.State.Has(lacp.Activity) {
		t.Errorf("first PDU at %v with %v", h.At, h.PDU.Actor.State)
	}
}

// Case A22, T46: passive says nothing unasked, whatever happens to it.
func TestPassiveSilent(t *testing.T) {
	net, a, b, cables := pair(t, lacp.Config{Passive: true}, lacp.Config{Passive: true, Fast: true}, 2)
	net.Run(30 * time.Second)
	cables[0].SetUp(false)
	net.Run(time.Second)
	cables[0].SetUp(true)
	c := a.Config()
	c.SystemPriority = 7
	a.SetConfig(c)
	a.SetLink(a.Ports[1], oneG)
	net.Run(60 * time.Second)
	if net.PDUs != 0 {
		t.Errorf("%d PDUs between two passive ends", net.PDUs)
	}
	if st := a.Port(1); st.Actor.State.Has(lacp.Activity) {
		t.Errorf("passive port says %v", st.Actor.State) // T47
	}
	// Made active, the other end wakes this one.
	c = b.Config()
	c.Passive = false
	b.SetConfig(c)
	a.SetLink(a.Ports[1], tenG)
	woken := net.Now()
	at, ok := net.Until(3*time.Second, func() bool { return working(a, 1, 2)() && working(b, 1, 2)() })
	if !ok {
		t.Errorf("not working after %v", at-woken)
	}
	if !b.Port(1).Actor.State.Has(lacp.Activity) || b.Port(1).Partner.State.Has(lacp.Activity) {
		t.Errorf("activity: %v, partner %v", b.Port(1).Actor.State, b.Port(1).Partner.State)
	}
	// And passive again, the wire is silent: both, at once.
	c.Passive = true
	b.SetConfig(c)
	net.Run(100 * time.Second) // timeouts of what was
	n := net.PDUs
	net.Run(62 * time.Second)
	if net.PDUs != n {
		t.Errorf("%d PDUs after both are passive", net.PDUs-n)
	}
}

// Case A22: passive against active aggregates within 3 s.
func TestPassiveWithActive(t *testing.T) {
	net, a, b, _ := pair(t, lacp.Config{Passive: true}, lacp.Config{}, 2)
	if at, ok := net.Until(3*time.Second, func() bool { return working(a, 1, 2)() && working(b, 1, 2)() }); !ok {
		t.Errorf("not working after %v", at)
	}
}

// T49: the passive side falls silent when its partner goes: at once with the
// link, and with the partner's last word when there is one.
func TestPassiveAfterLoss(t *testing.T) {
	for _, unplug := range []bool{true, false} {
		r := newRig(t, lacp.Config{Passive: true, Fast: true}, 1)
		p := r.partners[0]
		r.RunTo(10 * time.Second)
		if unplug {
			r.a.Ports[0].Cable().SetUp(false)
			r.Run(time.Second)
			r.a.Ports[0].Cable().SetUp(true)
		}
		p.Silent = true
		lost := r.Now()
		r.Run(120 * time.Second)
		heard := p.Since(lost + 1)
		switch {
		case unplug && len(heard) != 0:
			t.Errorf("%d PDUs after the link was lost", len(heard))
		case !unplug && heard[len(heard)-1].At > lost+6*time.Second:
			t.Errorf("PDU %v after the partner fell silent", heard[len(heard)-1].At-lost)
		}
	}
}

// Case A55: 50 changes in a second, three PDUs, and the last has the last
// state.
func TestThreePerSecond(t *testing.T) {
	r := newRig(t, lacp.Config{}, 1)
	p := r.partners[0]
	p.Replies = false
	r.RunTo(10 * time.Second)
	start := r.Now()
	for i := range 50 {
		c := r.a.Config()
		c.SystemPriority = uint16(1000 + i)
		r.a.SetConfig(c)
		r.Run(20 * ms)
	}
	r.Run(3 * time.Second)
	heard := p.Since(start)
	for i := 3; i < len(heard); i++ {
		if d := heard[i].At - heard[i-3].At; d <= time.Second {
			t.Errorf("four PDUs within %v, from %v on", d, heard[i-3].At)
		}
	}
	final := false
	for _, h := range heard {
		final = final || h.PDU.Actor.SystemPriority == 1049 && h.At <= start+1020*ms+20*ms
	}
	if !final || p.Last().Actor.SystemPriority != 1049 {
		t.Errorf("the last state was not told in time: %+v", p.Last().Actor)
	}
}

// Case A11: a reflector. No storm, no data, and the status names the loop.
func TestReflector(t *testing.T) {
	for _, partnerBefore := range []bool{false, true} {
		r := newRig(t, lacp.Config{}, 2)
		if partnerBefore {
			r.RunTo(10 * time.Second)
		}
		p := r.partners[0]
		p.Silent = true
		var sent []time.Duration
		r.a.OnSend = func(now lacp.Instant, id lacp.PortID, pdu []byte) {
			if id == 1 {
				sent = append(sent, now)
				b := append([]byte(nil), pdu...)
				r.At(now+ms, func() { r.a.Sys.Receive(r.Now(), 1, b) })
			}
		}
		if partnerBefore {
			r.a.Ports[0].Cable().SetUp(false)
			r.a.Ports[0].Cable().SetUp(true)
		}
		from := r.Now()
		r.Run(time.Minute)
		data(t, r.a, 1, false, false)
		data(t, r.a, 2, true, true)
		if st := r.a.Port(1); !st.Looped || st.Counters.LoopRx == 0 || st.Selection != lacp.Unselected {
			t.Errorf("status does not name the loop: %+v", st)
		}
		if len(sent) > 8 {
			t.Errorf("%d PDUs in a minute", len(sent))
		}
		r.a.OnSend = nil // the loop is gone
		p.Silent = false
		gone := r.Now()
		at, ok := r.Until(lacp.LoopTime+3*time.Second, working(r.a, 1))
		if !ok {
			t.Errorf("from %v: not working %v after the loop is gone", from, at-gone)
		}
	}
}

// Case A11: two ports of the bond cabled together; neither carries data, also
// when there is no other.
func TestPortsCabledTogether(t *testing.T) {
	r := newRig(t, lacp.Config{}, 2)
	r.Join(&r.a.Ports[0].Port, &r.a.Ports[1].Port)
	for range 1000 {
		r.Run(100 * ms)
		data(t, r.a, 1, false, false)
		data(t, r.a, 2, false, false)
	}
	if !r.a.Port(1).Looped || !r.a.Port(2).Looped || r.a.Sys.Carrier() || r.a.Sys.Active() != 0 {
		t.Errorf("looped %v %v, carrier %v, active %d", r.a.Port(1).Looped, r.a.Port(2).Looped, r.a.Sys.Carrier(), r.a.Sys.Active())
	}
	// A lost link ends it, and plugged into the partner they work at once.
	r.a.Ports[0].Cable().SetUp(false)
	if r.a.Port(1).Looped || r.a.Port(2).Looped {
		t.Error("ports without a link are looped")
	}
	for i := range 2 {
		r.Join(&r.a.Ports[i].Port, &r.partners[i].Port).SetUp(false)
		r.a.Ports[i].Cable().SetUp(true)
	}
	if _, ok := r.Until(3*time.Second, working(r.a, 1, 2)); !ok {
		t.Error("not working after the cables are right")
	}
}

// Case A53: one last PDU, in which nothing is left to use, when a port goes and
// when the bond goes.
func TestFarewell(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true}, 3)
	r.RunTo(10 * time.Second)
	check := func(i int, id string) {
		t.Helper()
		r.Run(ms)
		last := r.partners[i].Last().Actor
		if last.State != lacp.Activity|lacp.Timeout || last.Port != uint16(i+1) {
			t.Errorf("%s: last PDU of port %d says %v", id, last.Port, last.State)
		}
	}
	if err := r.a.Sys.RemovePort(r.Now(), 1); err != nil {
		t.Fatal(err)
	}
	check(0, "removed")
	n := len(r.partners[0].Heard)
	data(t, r.a, 2, true, true)
	data(t, r.a, 3, true, true)
	r.Run(5 * time.Second)
	r.a.Sys.Close(r.Now())
	check(1, "closed")
	check(2, "closed")
	r.Run(time.Minute)
	if len(r.partners[0].Heard) != n {
		t.Error("a removed port went on sending")
	}
	if _, ok := r.a.Sys.Deadline(); ok || r.a.Sys.Carrier() || r.a.Sys.Active() != 0 {
		t.Error("an empty bond has a deadline, a carrier or an active aggregator")
	}
	if err := r.a.Sys.RemovePort(r.Now(), 1); err == nil {
		t.Error("removed twice")
	}
}

// Case A53: the partner stops within a moment.
func TestFarewellHeard(t *testing.T) {
	net, a, b, _ := pair(t, lacp.Config{}, lacp.Config{}, 2)
	net.Run(10 * time.Second)
	if err := a.Sys.RemovePort(net.Now(), 1); err != nil {
		t.Fatal(err)
	}
	net.Run(ms)
	data(t, b, 1, false, false)
	data(t, b, 2, true, true)
	data(t, a, 2, true, true)
}

// Case A20: the aggregation bit is set from the first PDU on, with one port and
// with two.
func TestAggregationBit(t *testing.T) {
	r := newRig(t, lacp.Config{}, 1)
	r.RunTo(5 * time.Second)
	second := r.NewPartner(macB, 2)
	r.Join(r.a.AddPort(tenG), &second.Port)
	joined := r.Now()
	r.RunTo(20 * time.Second)
	for _, p := range append(r.partners, second) {
		if len(p.Heard) == 0 {
			t.Error("no PDU")
		}
		for _, h := range p.Heard {
			if !h.PDU.Actor.State.Has(lacp.Aggregation) {
				t.Errorf("at %v: %v", h.At, h.PDU.Actor.State)
			}
		}
	}
	if working(r.a, 1, 2)() == false || r.Now()-joined > 15*time.Second {
		t.Error("not aggregated")
	}
}

// Case A46: ten idle minutes with the fast rate on both ends, nothing expires.
func TestIdle(t *testing.T) {
	net, a, b, _ := pair(t, lacp.Config{Fast: true}, lacp.Config{Fast: true}, 2)
	net.Run(10 * time.Second)
	rings := a.Rings + b.Rings
	net.Run(10 * time.Minute)
	if a.Rings+b.Rings != rings || !working(a, 1, 2)() || !working(b, 1, 2)() {
		t.Error("something changed while nothing happened")
	}
	for _, d := range []interface{ ArcCount(lacp.Arc) uint64 }{a.Sys, b.Sys} {
		if n := d.ArcCount(lacp.Arc{Machine: lacp.ReceiveMachine, From: lacp.Current, To: lacp.ExpiredState}); n != 0 {
			t.Errorf("%d expiries", n)
		}
	}
}
