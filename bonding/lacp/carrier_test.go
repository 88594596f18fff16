package lacp_test

import (
	"testing"
	"time"

	"bondstack/bonding/lacp"
)

// A half duplex port without LACP is better than none, and worse than any
// other.
func TestHalfDuplexAlone(t *testing.T) {
	r := newRig(t, lacp.Config{Select: lacp.Bandwidth}, 0)
	slow := r.NewPartner(macB, 1)
	slow.Silent = true
	r.Join(r.a.AddPort(lacp.LinkState{Speed: 100000, Half: true}), &slow.Port)
	r.RunTo(10 * time.Second)
	data(t, r.a, 1, true, true)
	r.RunTo(2 * time.Minute)
	if st := r.a.Port(1); !st.Fallback || st.ActorChurn != lacp.ChurnMonitor || st.ActorCount != 0 {
		t.Errorf("fallback %v, churn %v", st.Fallback, st.ActorChurn)
	}
	other := r.NewPartner(macB, 2)
	other.Silent = true
	r.Join(r.a.AddPort(oneG), &other.Port)
	r.Run(5 * time.Second)
	data(t, r.a, 1, false, false)
	data(t, r.a, 2, true, true)
}

// Without a partner one port works alone after 3 s, unless strict; carrier as
// T41 and T43 want it.
func TestFallback(t *testing.T) {
	r := newRig(t, lacp.Config{}, 2)
	for _, p := range r.partners {
		p.Silent = true
	}
	r.RunTo(3*time.Second - 1)
	data(t, r.a, 1, false, false)
	r.RunTo(10 * time.Second)
	data(t, r.a, 1, true, true)
	data(t, r.a, 2, false, false)
	if st := r.a.Port(1); !st.Fallback || st.Actor.State&(lacp.Collecting|lacp.Distributing) != 0 || !r.a.Sys.Carrier() {
		t.Errorf("fallback %v, %v, carrier %v", st.Fallback, st.Actor.State, r.a.Sys.Carrier())
	}
	c := r.a.Config()
	c.Strict = true
	r.a.SetConfig(c)
	data(t, r.a, 1, false, false)
	if r.a.Sys.Carrier() {
		t.Error("strict, no partner, and a carrier")
	}
	c.Strict = false
	r.a.SetConfig(c)
	data(t, r.a, 1, true, true)
	if !r.a.Sys.Carrier() {
		t.Error("not strict, and no carrier")
	}
	// A partner on the second port wins, and the first stops at once.
	r.partners[1].Silent = false
	r.partners[1].Say()
	r.Run(0)
	data(t, r.a, 1, false, false)
	if _, ok := r.Until(3*time.Second, working(r.a, 2)); !ok {
		t.Error("the port with a partner does not work")
	}
}

// T40, T37, T38, T44, and min_links.
func TestCarrier(t *testing.T) {
	for _, strict := range []bool{false, true} {
		r := newRig(t, lacp.Config{Fast: true, Strict: strict, MinLinks: 2}, 3)
		if r.a.Sys.Carrier() { // ports without a partner are not together
			t.Errorf("strict %v: a carrier at the start", strict)
		}
		carrier := func(want bool) {
			t.Helper()
			if got := r.a.Sys.Carrier(); got != want {
				t.Errorf("strict %v: at %v: carrier %v, want %v", strict, r.Now(), got, want)
			}
		}
		r.RunTo(10 * time.Second)
		carrier(true)
		r.a.Ports[0].Cable().SetUp(false)
		carrier(true)
		r.partners[1].Silent = true
		r.Run(4 * time.Second)
		carrier(!strict) // T40: one of two is silent with its link up
		data(t, r.a, 2, false, false)
		data(t, r.a, 3, true, true)
		r.a.Ports[1].Cable().SetUp(false)
		carrier(false)
		r.partners[1].Silent = false
		r.a.Ports[1].Cable().SetUp(true)
		r.Run(4 * time.Second)
		carrier(true)
		for _, p := range r.a.Ports {
			p.Cable().SetUp(false) // T38
		}
		carrier(false)
		c := r.a.Config()
		c.MinLinks = 0
		r.a.SetConfig(c)
		carrier(false) // 0 is as 1
		r.a.Ports[2].Cable().SetUp(true)
		r.Run(4 * time.Second)
		carrier(true)
	}
}
