package lacp_test

import (
	"testing"
	"time"

	"bondstack/bonding/lacp"
)

// T170: back to back, both ends work, with all bits, well within 3 s.
func TestNegotiate(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		for _, c := range []lacp.Config{{}, {Fast: true}, {Fast: true, Independent: true}, {Strict: true}} {
			net, a, b, _ := pair(t, c, c, n)
			var ids []lacp.PortID
			for i := range n {
				ids = append(ids, lacp.PortID(i+1))
			}
			at, ok := net.Until(3*time.Second, func() bool { return working(a, ids...)() && working(b, ids...)() })
			if !ok || at != lacp.AggregateWait {
				t.Errorf("%d ports, %+v: working at %v, %v", n, c, at, ok)
			}
			net.Run(time.Second)
			st := a.Port(1)
			want := lacp.Activity | lacp.Aggregation | lacp.Synchronization | lacp.Collecting | lacp.Distributing
			if c.Fast {
				want |= lacp.Timeout
			}
			if st.Actor.State != want || st.Partner.State != want || st.Partner.System != macB || st.Partner.Key != 15 {
				t.Errorf("%d ports, %+v: actor %v, partner %+v", n, c, st.Actor.State, st.Partner)
			}
			if agg := a.Sys.Status().Active; agg == nil || agg.Ports != n || agg.PartnerMAC != macB || agg.ID != 1 {
				t.Errorf("%d ports, %+v: active %+v", n, c, agg)
			}
		}
	}
}

// One side comes up long before the other: 2 s after the later one's first PDU
// all work (within 3 s of the links being up), whatever the offset.
func TestNegotiateLater(t *testing.T) {
	for later := time.Duration(0); later < 12*time.Second; later += 370 * ms {
		net, a, b, cables := pair(t, lacp.Config{Fast: true}, lacp.Config{Fast: true}, 2)
		for _, c := range cables {
			c.SetUp(false)
			c.Ways[1].Cut = true // b is deaf and mute until later
			c.Ways[0].Cut = true
		}
		for _, c := range cables {
			c.SetUp(true)
		}
		net.Run(later)
		for _, c := range cables {
			c.Ways[0].Cut, c.Ways[1].Cut = false, false
		}
		b.Restart(false)
		at, ok := net.Until(3*time.Second, func() bool { return working(a, 1, 2)() && working(b, 1, 2)() })
		if !ok {
			e, _ := a.Sys.Explain(net.Now(), 1)
			t.Errorf("later by %v: not working %v after it: %v", later, at-later, e)
		}
	}
}

// Case A7: independent control distributes only once the partner collects,
// coupled control at sync.
func TestPartnerNotCollecting(t *testing.T) {
	for _, independent := range []bool{false, true} {
		r := newRig(t, lacp.Config{Independent: independent}, 1)
		p := r.partners[0]
		p.Actor.State &^= lacp.Collecting | lacp.Distributing
		r.RunTo(10 * time.Second)
		if st := r.a.Sys.Status().CollectorControl; st != map[bool]string{false: "coupled", true: "independent"}[independent] {
			t.Errorf("status shows %s control", st)
		}
		if !independent {
			r.want(1, lacp.MuxMachine, "COLLECTING_DISTRIBUTING")
			data(t, r.a, 1, true, true)
			continue
		}
		r.want(1, lacp.MuxMachine, "COLLECTING")
		data(t, r.a, 1, true, false)
		if st := r.a.Port(1).Actor.State; !st.Has(lacp.Collecting) || st.Has(lacp.Distributing) {
			t.Errorf("state %v", st)
		}
		p.Actor.State |= lacp.Collecting
		p.Say()
		r.Run(0)
		r.want(1, lacp.MuxMachine, "DISTRIBUTING")
		data(t, r.a, 1, true, true)
		r.Run(ms)
		if !p.Last().Actor.State.Has(lacp.Distributing) {
			t.Error("the partner was not told of DISTRIBUTING")
		}
		p.Actor.State &^= lacp.Collecting
		p.Say()
		r.Run(0)
		data(t, r.a, 1, true, false)
		p.Actor.State &^= lacp.Synchronization
		p.Say()
		r.Run(0)
		r.want(1, lacp.MuxMachine, "ATTACHED")
		data(t, r.a, 1, false, false)
	}
}

// Changing coupled_control while data flows goes by way of ATTACHED.
func TestControlChanges(t *testing.T) {
	net, a, b, _ := pair(t, lacp.Config{}, lacp.Config{}, 2)
	net.Run(10 * time.Second)
	for i, want := range []string{"DISTRIBUTING", "COLLECTING_DISTRIBUTING"} {
		c := a.Config()
		c.Independent = i == 0
		a.SetConfig(c)
		net.Run(3 * time.Second)
		if got := lacp.MuxMachine.StateName(a.Port(1).Mux); got != want {
			t.Errorf("mux is %s, want %s", got, want)
		}
		data(t, a, 1, true, true)
		data(t, b, 1, true, true)
	}
}

// Ports that come up together attach together, 2 s after the later one; a port
// that keeps changing its mind holds up nobody.
func TestAggregateWait(t *testing.T) {
	r := newRig(t, lacp.Config{}, 3)
	for _, p := range r.a.Ports {
		p.Cable().SetUp(false)
	}
	r.RunTo(10 * time.Second)
	r.a.Ports[0].Cable().SetUp(true)
	r.Run(1500 * ms)
	r.a.Ports[1].Cable().SetUp(true)
	r.Run(1999 * ms)
	r.want(1, lacp.MuxMachine, "WAITING")
	r.Run(ms)
	r.want(1, lacp.MuxMachine, "COLLECTING_DISTRIBUTING")
	r.want(2, lacp.MuxMachine, "COLLECTING_DISTRIBUTING")

	for _, p := range r.a.Ports {
		p.Cable().SetUp(false)
	}
	r.Run(10 * time.Second)
	for _, p := range r.a.Ports {
		p.Cable().SetUp(true)
	}
	up := r.Now()
	flapping := true
	var flap func()
	flap = func() {
		if flapping {
			r.a.Ports[2].Cable().SetUp(false)
			r.a.Ports[2].Cable().SetUp(true)
			r.At(r.Now()+1500*ms, flap)
		}
	}
	r.At(r.Now()+1500*ms, flap)
	at, ok := r.Until(10*time.Second, working(r.a, 1, 2))
	if !ok || at-up > 4*time.Second {
		t.Errorf("a flapping port held up the others for %v, %v", at-up, ok)
	}
	flapping = false
}

// The same with a partner on the third port that becomes another port all the
// time, by which the port leaves its aggregator and comes back within a PDU.
func TestAggregateWaitBounded(t *testing.T) {
	r := newRig(t, lacp.Config{}, 3)
	for _, p := range r.a.Ports {
		p.Cable().SetUp(false)
		p.Cable().SetUp(true)
	}
	for range 20 {
		r.Run(500 * ms)
		r.partners[2].Actor.PortPriority++
		r.partners[2].Say()
	}
	at, ok := r.Until(ms, working(r.a, 1, 2))
	if !ok {
		t.Errorf("not working at %v", at)
	}
	if working(r.a, 3)() {
		t.Error("the port with an unsteady partner works")
	}
}

// A port that is added or removed does not disturb the others (A23).
func TestOthersUndisturbed(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true}, 4)
	r.RunTo(10 * time.Second)
	before := r.a.Port(2)
	r.a.Again(r.a.Ports[0])
	for range 1000 {
		r.Run(10 * ms)
		for _, id := range []lacp.PortID{2, 3, 4} {
			data(t, r.a, id, true, true)
		}
	}
	after := r.a.Port(2)
	if after.Aggregator != before.Aggregator || after.Number != before.Number || after.Actor != before.Actor {
		t.Errorf("port 2 is %+v, was %+v", after, before)
	}
	data(t, r.a, 1, true, true)
}

// A partner whose sync flickers thousands of times a second moves the data path
// a few times a second, and always off at once.
func TestFlickeringSync(t *testing.T) {
	r := newRig(t, lacp.Config{}, 2)
	r.RunTo(10 * time.Second)
	rings := r.a.Rings
	p := r.partners[0]
	p.Replies = false
	for i := range 2000 {
		p.Actor.State ^= lacp.Synchronization
		p.Say()
		r.Run(ms / 2)
		if i%2 == 0 {
			data(t, r.a, 1, false, false)
		}
	}
	if n := r.a.Rings - rings; n > 10 {
		t.Errorf("the data path was rebuilt %d times in a second", n)
	}
	data(t, r.a, 2, true, true)
	r.Run(2 * time.Second)
	data(t, r.a, 1, true, true)
}
