package lacp_test

import (
	"testing"
	"time"

	"bondstack/bonding/lacp"
	"bondstack/bonding/lacp/lacptest"
)

// drained drains a port of a pair, or undoes that, and tells the stages that it
// goes through until it is in the last one. At no moment may a side send what
// the other does not take.
func drained(t *testing.T, net *lacptest.Net, a, b *lacptest.Node, on bool, last lacp.DrainStage) (stages []lacp.DrainStage) {
	t.Helper()
	if err := a.Sys.SetDrain(net.Now(), 1, on); err != nil {
		t.Fatal(err)
	}
	at := net.Now()
	for {
		x, y := a.Port(1), b.Port(1)
		if x.Sends && !y.Takes || y.Sends && !x.Takes {
			t.Fatalf("at %v: one side sends what the other does not take: %+v, %+v", net.Now(), x.Actor.State, y.Actor.State)
		}
		if n := len(stages); n == 0 || stages[n-1] != x.Drain {
			stages = append(stages, x.Drain)
		}
		if x.Drain == last {
			return stages
		}
		if net.Now() > at+2*time.Minute {
			t.Fatalf("still %v, stages %v", x.Drain, stages)
		}
		net.Run(time.Millisecond)
	}
}

func wantStages(t *testing.T, got []lacp.DrainStage, want ...lacp.DrainStage) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("stages %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("stages %v, want %v", got, want)
		}
	}
}

// A port is drained and returns, against a partner of either kind of control,
// with both rates, and neither side ever sends what the other does not take.
func TestDrain(t *testing.T) {
	for _, c := range []struct{ a, b lacp.Config }{
		{lacp.Config{}, lacp.Config{}},
		{lacp.Config{Fast: true}, lacp.Config{Fast: true}},
		{lacp.Config{Independent: true}, lacp.Config{}},
		{lacp.Config{}, lacp.Config{Independent: true}},
		{lacp.Config{}, lacp.Config{Passive: true}},
	} {
		net, a, b, _ := pair(t, c.a, c.b, 2)
		if _, ok := net.Until(time.Minute, working(a, 1, 2)); !ok {
			t.Fatal("the ports do not work")
		}
		net.Run(5 * time.Second)
		wantStages(t, drained(t, net, a, b, true, lacp.Drained), lacp.Quiet, lacp.Leaving, lacp.Drained)
		data(t, a, 1, false, false)
		data(t, b, 1, false, false)
		data(t, a, 2, true, true)
		data(t, b, 2, true, true)
		net.Run(3 * time.Minute)
		if st := a.Port(1); st.Drain != lacp.Drained || st.ActorChurn == lacp.Churned {
			t.Errorf("after a while: %v, actor churn %v", st.Drain, st.ActorChurn)
		}
		wantStages(t, drained(t, net, a, b, false, lacp.InUse), lacp.Returning, lacp.InUse)
		net.Run(5 * time.Second)
		data(t, a, 1, true, true)
		data(t, b, 1, true, true)
	}
}

// A drain that is undone at any moment loses nothing either.
func TestDrainUndone(t *testing.T) {
	for after := time.Duration(0); after < 1300*time.Millisecond; after += 7 * time.Millisecond {
		net, a, b, _ := pair(t, lacp.Config{Fast: true}, lacp.Config{Fast: true}, 1)
		if _, ok := net.Until(time.Minute, working(a, 1)); !ok {
			t.Fatal("the port does not work")
		}
		net.Run(5 * time.Second)
		a.Sys.SetDrain(net.Now(), 1, true)
		for end := net.Now() + after; net.Now() < end; net.Run(time.Millisecond) {
			if x, y := a.Port(1), b.Port(1); x.Sends && !y.Takes || y.Sends && !x.Takes {
				t.Fatalf("undone after %v, at %v: one side sends what the other does not take", after, net.Now())
			}
		}
		drained(t, net, a, b, false, lacp.InUse)
		net.Run(5 * time.Second)
		data(t, a, 1, true, true)
		data(t, b, 1, true, true)
	}
}

// A drained port stays so when its link is lost and comes back.
func TestDrainLinkFlap(t *testing.T) {
	net, a, b, cables := pair(t, lacp.Config{}, lacp.Config{}, 2)
	if _, ok := net.Until(time.Minute, working(a, 1, 2)); !ok {
		t.Fatal("the ports do not work")
	}
	drained(t, net, a, b, true, lacp.Drained)
	cables[0].SetUp(false)
	net.Run(time.Second)
	cables[0].SetUp(true)
	for range 200 {
		net.Run(100 * time.Millisecond)
		if st := a.Port(1); st.Takes || st.Sends || st.Drain != lacp.Drained {
			t.Fatalf("the port is used: %+v", st)
		}
	}
	if e, _ := a.Sys.Explain(net.Now(), 1); e.Sends || e.State != "does not distribute: it is drained (drained)" {
		t.Errorf("explained as %q", e.State)
	}
	drained(t, net, a, b, false, lacp.InUse)
	net.Run(5 * time.Second)
	data(t, a, 1, true, true)
	if err := a.Sys.SetDrain(net.Now(), 9, true); err == nil {
		t.Error("a port that is not there was drained")
	}
}
