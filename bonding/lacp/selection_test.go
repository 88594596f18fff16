package lacp_test

import (
	"testing"
	"time"

	"bondstack/bonding/lacp"
)

// Case A19: the key follows speed and duplex, and equal ports meet again.
func TestSpeedLearntLater(t *testing.T) {
	net, a, b, _ := pair(t, lacp.Config{}, lacp.Config{}, 0)
	for range 2 {
		net.Join(a.AddPort(lacp.LinkState{}), b.AddPort(tenG))
	}
	if _, ok := net.Until(3*time.Second, working(a, 1, 2)); !ok {
		t.Fatal("ports without a speed do not aggregate")
	}
	if k := a.Port(1).Actor.Key; k != 1 {
		t.Errorf("key of an unknown speed = %d, want 1", k)
	}
	a.SetLink(a.Ports[0], tenG)
	net.Run(5 * time.Second)
	if x, y := a.Port(1).Aggregator, a.Port(2).Aggregator; x == y {
		t.Errorf("ports of different keys are both in aggregator %d", x)
	}
	a.SetLink(a.Ports[1], tenG)
	learnt := net.Now()
	net.Run(2 * time.Second)
	if x, y := a.Port(1).Aggregator, a.Port(2).Aggregator; x != y || a.Port(1).Actor.Key != 15 || a.Port(2).Actor.Key != 15 {
		t.Errorf("after 2 s: aggregators %d and %d", x, y)
	}
	if at, ok := net.Until(time.Second, working(a, 1, 2)); !ok {
		t.Errorf("not working after %v", at-learnt)
	}
}

// Case A19: two speeds, two aggregators, one active.
func TestTwoSpeeds(t *testing.T) {
	net, a, b, _ := pair(t, lacp.Config{Select: lacp.Bandwidth}, lacp.Config{Select: lacp.Bandwidth}, 0)
	net.Join(a.AddPort(oneG), b.AddPort(oneG))
	net.Join(a.AddPort(tenG), b.AddPort(tenG))
	net.Run(10 * time.Second)
	st := a.Sys.Status()
	if len(st.Aggregators) != 2 || st.Active == nil || st.Active.ActorKey != 15 || st.Active.Bandwidth != 10000 {
		t.Errorf("aggregators %+v, active %+v", st.Aggregators, st.Active)
	}
	data(t, a, 1, false, false)
	data(t, a, 2, true, true)
	if got := a.Port(1).Selection; got != lacp.Standby {
		t.Errorf("selection of port 1 is %s", lacp.SelectionLogic.StateName(got))
	}
}

func TestKeys(t *testing.T) {
	r := newRig(t, lacp.Config{}, 0)
	for i, c := range []struct {
		user  uint16
		speed uint32
		half  bool
		want  uint16
	}{
		{0, 1000, false, 9}, {0, 10000, false, 15}, {0, 25000, false, 21}, {0, 100000, false, 29}, {0, 800000, false, 35},
		{0, 10, false, 5}, {0, 100, true, 6}, {0, 0, false, 1}, {0, lacp.UnknownSpeed, false, 1}, {0, 1234, false, 1},
		{1, 1000, false, 64 + 9}, {1023, 0, false, 1023<<6 + 1},
	} {
		id := lacp.PortID(i + 1)
		if err := r.a.Sys.AddPort(0, lacp.PortConfig{Number: id, UserKey: c.user,
			Link: lacp.LinkState{Up: true, Speed: c.speed, Half: c.half}}); err != nil {
			t.Fatal(err)
		}
		if got := r.a.Port(id).Actor.Key; got != c.want {
			t.Errorf("key of %+v = %d", c, got)
		}
	}
}

// T169: what is set is what PDUs and status show.
func TestIdentity(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true, SystemPriority: 54321}, 0)
	for i, number := range []lacp.PortID{11, 22} {
		p := r.NewPartner(macB, uint16(i+1))
		r.partners = append(r.partners, p)
		r.Join(r.a.AddPortConfig(lacp.PortConfig{Number: number, Priority: uint16(111 * (i + 1)), UserKey: 52, Link: oneG}), &p.Port)
	}
	r.RunTo(10 * time.Second)
	for i, number := range []lacp.PortID{11, 22} {
		want := lacp.Info{SystemPriority: 54321, System: macA, Key: 52<<6 + 9, PortPriority: uint16(111 * (i + 1)), Port: uint16(number), State: 0x3f}
		if got := r.a.Port(number).Actor; got != want {
			t.Errorf("status shows %+v, want %+v", got, want)
		}
		if got := r.partners[i].Last().Actor; got != want {
			t.Errorf("the partner was told %+v, want %+v", got, want)
		}
	}
	if st := r.a.Sys.Status(); st.Active.ActorKey != 52<<6+9 || st.SystemPriority != 54321 {
		t.Errorf("status %+v", st)
	}
}

// Two partners on one bond: two aggregators, one works, the other stands by.
func TestTwoPartners(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true}, 4)
	r.partners[2].Actor.System, r.partners[3].Actor.System = macC, macC
	r.RunTo(10 * time.Second)
	for id, on := range map[lacp.PortID]bool{1: true, 2: true, 3: false, 4: false} {
		data(t, r.a, id, on, on)
	}
	if x, y := r.a.Port(3).Aggregator, r.a.Port(4).Aggregator; x != y || x == r.a.Sys.Active() {
		t.Errorf("aggregators of the second partner: %d, %d", x, y)
	}
	// T35: those that stand by churn after a minute, the others never.
	r.RunTo(61 * time.Second)
	r.want(1, lacp.ActorChurn, "NO_ACTOR_CHURN")
	r.want(3, lacp.ActorChurn, "ACTOR_CHURN")
	r.want(4, lacp.ActorChurn, "ACTOR_CHURN")
	// The second one takes over at once when the first is gone: its ports have
	// long waited.
	r.a.Ports[0].Cable().SetUp(false)
	data(t, r.a, 2, true, true)
	r.a.Ports[1].Cable().SetUp(false)
	r.Run(ms)
	data(t, r.a, 3, true, true)
	data(t, r.a, 4, true, true)
}

// ad_select: T151, T152, T31, T32.
func TestAdSelect(t *testing.T) {
	// Partner B on ports 1 and 2, C on 3; 3 is faster than 1 and 2 together,
	// and has the greatest priority.
	build := func(p lacp.Policy) *rig {
		r := newRig(t, lacp.Config{Select: p}, 0)
		for i, mac := range []lacp.MAC{macB, macB, macC} {
			c := lacp.PortConfig{Number: lacp.PortID(i + 1), Priority: 10, Link: oneG}
			if i == 2 {
				c.Link, c.Priority = tenG, 1000
			}
			partner := r.NewPartner(mac, uint16(i+1))
			r.partners = append(r.partners, partner)
			r.Join(r.a.AddPortConfig(c), &partner.Port)
		}
		r.RunTo(10 * time.Second)
		return r
	}
	active := func(r *rig) lacp.PortID {
		st := r.a.Sys.Status()
		if st.Active == nil || len(st.Active.Members) == 0 {
			return 0
		}
		return st.Active.Members[0]
	}
	for p, want := range map[lacp.Policy]lacp.PortID{lacp.Stable: 1, lacp.Bandwidth: 3, lacp.Count: 1, lacp.PortPrio: 3} {
		r := build(p)
		if got := active(r); got != want {
			t.Errorf("%v: port %d is active, want %d", p, got, want)
		}
		r.a.Ports[2].Cable().SetUp(false)
		r.Run(5 * time.Second)
		if got := active(r); got != 1 {
			t.Errorf("%v: port %d is active without port 3", p, got)
		}
		r.a.Ports[2].Cable().SetUp(true)
		r.Run(5 * time.Second)
		if got := active(r); got != want {
			t.Errorf("%v: port %d is active with port 3 back, want %d", p, got, want)
		}
		data(t, r.a, want, true, true)
	}
	r := build(lacp.PortPrio)
	for _, id := range []lacp.PortID{1, 2} {
		if err := r.a.Sys.SetPortPriority(r.Now(), id, 2000); err != nil {
			t.Fatal(err)
		}
	}
	r.Run(5 * time.Second)
	if got := active(r); got != 1 || r.a.Port(1).Actor.PortPriority != 2000 {
		t.Errorf("after the priorities changed port %d is active", got)
	}
	r.a.Ports[0].Cable().SetUp(false) // T32: a flap changes nothing
	r.a.Ports[0].Cable().SetUp(true)
	r.Run(5 * time.Second)
	if got := active(r); got != 1 {
		t.Errorf("after a flap port %d is active", got)
	}
	if err := r.a.Sys.SetPortPriority(r.Now(), 9, 1); err == nil {
		t.Error("a port that is not there took a priority")
	}
}

// A partner that calls its port individual is used alone.
func TestIndividualPartner(t *testing.T) {
	r := newRig(t, lacp.Config{}, 2)
	for _, p := range r.partners {
		p.Actor.State &^= lacp.Aggregation
		p.Stubborn = true // and need not know us
	}
	r.RunTo(10 * time.Second)
	data(t, r.a, 1, true, true)
	data(t, r.a, 2, false, false)
	if st := r.a.Sys.Status(); len(st.Aggregators) != 2 || !st.Active.Individual {
		t.Errorf("aggregators %+v", st.Aggregators)
	}
}

// Only the same system with the same priority is one partner, and an individual
// port is alone, whichever comes first.
func TestNotTogether(t *testing.T) {
	for name, differ := range map[string]func(i *lacp.Info){
		"system priority": func(i *lacp.Info) { i.SystemPriority++ },
		"key":             func(i *lacp.Info) { i.Key++ },
		"system":          func(i *lacp.Info) { i.System = macC },
		"individual":      func(i *lacp.Info) { i.State &^= lacp.Aggregation },
	} {
		for first := range 2 {
			r := newRig(t, lacp.Config{}, 2)
			differ(&r.partners[first].Actor)
			r.RunTo(10 * time.Second)
			if x, y := r.a.Port(1).Aggregator, r.a.Port(2).Aggregator; x == y {
				t.Errorf("%s of port %d differs, and both are in aggregator %d", name, first+1, x)
			}
			data(t, r.a, 1, true, true)
			data(t, r.a, 2, false, false)
		}
	}
}

// Case A23: what a port number must not be.
func TestAddPortErrors(t *testing.T) {
	r := newRig(t, lacp.Config{}, 1)
	for name, c := range map[string]lacp.PortConfig{
		"zero": {Number: 0}, "twice": {Number: 1}, "user key": {Number: 2, UserKey: 1024},
	} {
		if err := r.a.Sys.AddPort(0, c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := len(r.a.Sys.Status().Ports); n != 1 {
		t.Errorf("%d ports", n)
	}
	if r.a.Sys.LinkChanged(0, 9, lacp.LinkState{}) == nil {
		t.Error("a port that is not there took a link")
	}
	for _, c := range []lacp.Config{{}, {System: lacp.MAC{1}}, {System: macA, Select: 4}} {
		if _, err := lacp.New(c, nil); err == nil {
			t.Errorf("%+v is valid", c)
		}
		if err := r.a.Sys.SetConfig(0, c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// Aggregator ids: as Linux's in order of adding, and kept when ports go.
func TestAggregatorIDs(t *testing.T) {
	r := newRig(t, lacp.Config{}, 3)
	r.RunTo(10 * time.Second)
	if r.a.Port(3).Aggregator != 1 {
		t.Errorf("port 3 is in aggregator %d", r.a.Port(3).Aggregator)
	}
	if err := r.a.Sys.RemovePort(r.Now(), 1); err != nil {
		t.Fatal(err)
	}
	if r.a.Port(2).Aggregator != 1 || r.a.Sys.Active() != 1 {
		t.Errorf("after the first port went: aggregator %d, active %d", r.a.Port(2).Aggregator, r.a.Sys.Active())
	}
	data(t, r.a, 2, true, true)
	sent := r.a.Sys.Status().Counters.LACPDUTx
	if live := r.a.Port(2).Counters.LACPDUTx + r.a.Port(3).Counters.LACPDUTx; sent <= live {
		t.Errorf("%d PDUs in all, %d of ports that are there", sent, live)
	}
	for range 5 { // as many aggregators as ports, so the ids stay small
		r.a.Again(r.a.Ports[1])
	}
	r.a.Ports[1].Cable().SetUp(false)
	r.a.Ports[2].Cable().SetUp(false)
	r.a.Ports[1].Cable().SetUp(true)
	if id := r.a.Port(2).Aggregator; id != 2 {
		t.Errorf("the port came back to aggregator %d", id)
	}
	for _, id := range []lacp.PortID{2, 3} {
		if err := r.a.Sys.RemovePort(r.Now(), id); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.a.Sys.AddPort(r.Now(), lacp.PortConfig{Number: 5, Link: lacp.LinkState{Up: true}}); err != nil {
		t.Fatal(err)
	}
	if r.a.Port(5).Aggregator != 1 {
		t.Errorf("a new first port is in aggregator %d", r.a.Port(5).Aggregator)
	}
}

// Equal aggregators: the active one stays, whatever ad_select says.
func TestAdSelectTies(t *testing.T) {
	for p := range lacp.PortPrio + 1 {
		r := newRig(t, lacp.Config{Select: p}, 2)
		r.partners[1].Actor.System = macC
		r.RunTo(10 * time.Second)
		first := r.a.Sys.Active()
		r.a.Ports[0].Cable().SetUp(false)
		r.Run(3 * time.Second)
		data(t, r.a, 2, true, true)
		r.a.Ports[0].Cable().SetUp(true)
		for range 100 {
			r.Run(100 * ms)
			data(t, r.a, 2, true, true)
		}
		if r.a.Sys.Active() == first {
			t.Errorf("%v: aggregator %d is active again", p, first)
		}
	}
}

// A port that says it is another one carries no data until the partner has
// heard it.
func TestOwnIdentityChanges(t *testing.T) {
	for name, change := range map[string]func(r *rig){
		"system": func(r *rig) {
			c := r.a.Config()
			c.System = macC
			r.a.SetConfig(c)
		},
		"port priority": func(r *rig) { _ = r.a.Sys.SetPortPriority(r.Now(), 1, 7) },
		"key":           func(r *rig) { r.a.SetLink(r.a.Ports[0], oneG) },
	} {
		r := newRig(t, lacp.Config{}, 1)
		p := r.partners[0]
		r.RunTo(10 * time.Second)
		p.Replies, p.Every = false, 0
		change(r)
		r.Run(20 * time.Second)
		data(t, r.a, 1, false, false)
		if p.Last().Actor != r.a.Port(1).Actor {
			t.Errorf("%s: the partner was told %+v", name, p.Last().Actor)
		}
		p.Say()
		r.Run(ms)
		data(t, r.a, 1, true, true)
	}
}
