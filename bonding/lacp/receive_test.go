package lacp_test

import (
	"testing"
	"time"

	"bondstack/bonding/lacp"
)

const ms = time.Millisecond

// Case A5: the exact times of silence, with the fast rate.
func TestSilenceFast(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true}, 1)
	p := r.partners[0]
	r.RunTo(10 * time.Second)
	r.want(1, lacp.ReceiveMachine, "CURRENT")
	data(t, r.a, 1, true, true)
	p.Silent = true
	last := r.a.Port(1).LastRx

	r.RunTo(last + 3*time.Second - 1)
	r.want(1, lacp.ReceiveMachine, "CURRENT")
	data(t, r.a, 1, true, true)

	r.RunTo(last + 3*time.Second)
	r.want(1, lacp.ReceiveMachine, "EXPIRED")
	data(t, r.a, 1, false, false)
	if st := r.a.Port(1); st.Partner.State.Has(lacp.Synchronization) || st.Partner.System != macB ||
		!st.Partner.State.Has(lacp.Timeout) || !st.Actor.State.Has(lacp.Expired) {
		t.Errorf("expired: actor %v, partner %+v", st.Actor.State, st.Partner)
	}

	r.RunTo(last + 6*time.Second - 1)
	r.want(1, lacp.ReceiveMachine, "EXPIRED")
	r.RunTo(last + 6*time.Second)
	r.want(1, lacp.ReceiveMachine, "DEFAULTED")
	st := r.a.Port(1)
	if want := (lacp.Info{SystemPriority: 0xffff, Key: 1, PortPriority: 255, Port: 1}); st.Partner != want {
		t.Errorf("defaulted partner = %+v, want %+v", st.Partner, want)
	}
	if st.Actor.State.Has(lacp.Expired) || !st.Actor.State.Has(lacp.Defaulted) || st.Actor.State.Has(lacp.Distributing) {
		t.Errorf("defaulted actor = %v", st.Actor.State)
	}
}

// And with the slow one: 90 s, then 3 s.
func TestSilenceSlow(t *testing.T) {
	r := newRig(t, lacp.Config{}, 1)
	r.RunTo(10 * time.Second)
	r.partners[0].Silent = true
	last := r.a.Port(1).LastRx
	r.RunTo(last + 90*time.Second - 1)
	r.want(1, lacp.ReceiveMachine, "CURRENT")
	data(t, r.a, 1, true, true)
	r.RunTo(last + 90*time.Second)
	r.want(1, lacp.ReceiveMachine, "EXPIRED")
	data(t, r.a, 1, false, false)
	r.RunTo(last + 93*time.Second - 1)
	r.want(1, lacp.ReceiveMachine, "EXPIRED")
	r.RunTo(last + 93*time.Second)
	r.want(1, lacp.ReceiveMachine, "DEFAULTED")
}

// Case A5: a link that comes up is expired for 3 s, then defaulted.
func TestLinkUpInSilence(t *testing.T) {
	r := newRig(t, lacp.Config{}, 1)
	r.partners[0].Silent = true
	r.RunTo(3*time.Second - 1)
	r.want(1, lacp.ReceiveMachine, "EXPIRED")
	data(t, r.a, 1, false, false)
	r.RunTo(3 * time.Second)
	r.want(1, lacp.ReceiveMachine, "DEFAULTED")
	data(t, r.a, 1, true, true) // alone, as Linux without lacp_strict
}

// Case A5: a lost link clears everything at once, and the first PDU after it
// neither collects nor distributes.
func TestLinkLossClears(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true}, 2)
	r.RunTo(10 * time.Second)
	data(t, r.a, 1, true, true)
	cable := r.a.Ports[0].Cable()
	cable.SetUp(false)
	st := r.a.Port(1)
	if bad := lacp.Synchronization | lacp.Collecting | lacp.Distributing; st.Actor.State&bad != 0 || st.Partner.State.Has(lacp.Synchronization) {
		t.Errorf("link down: actor %v, partner %v", st.Actor.State, st.Partner.State)
	}
	r.want(1, lacp.ReceiveMachine, "PORT_DISABLED")
	r.want(1, lacp.MuxMachine, "DETACHED")
	data(t, r.a, 1, false, false)
	data(t, r.a, 2, true, true)
	r.Run(4 * time.Second)
	up := r.Now()
	cable.SetUp(true)
	r.Run(time.Second)
	first := r.partners[0].Since(up)[0]
	if first.At != up || first.PDU.Actor.State&(lacp.Synchronization|lacp.Collecting|lacp.Distributing) != 0 {
		t.Errorf("first PDU at %v: %v", first.At-up, first.PDU.Actor.State)
	}
	at, ok := r.Until(3*time.Second, working(r.a, 1))
	if !ok || at-up != 2*time.Second {
		t.Errorf("works again after %v, %v", at-up, ok)
	}
}

// Case A10: what is not a PDU is counted, and nothing else happens.
func TestReceiveGarbage(t *testing.T) {
	r := newRig(t, lacp.Config{}, 1)
	r.RunTo(5 * time.Second)
	before := r.a.Port(1)
	good := firstPDU(t)
	for n := range lacp.PDUSize {
		if r.a.Sys.Receive(r.Now(), 1, good[:n]) {
			t.Errorf("%d octets were consumed", n)
		}
	}
	good[0] = 3
	if r.a.Sys.Receive(r.Now(), 1, good) {
		t.Error("subtype 3 was consumed")
	}
	if r.a.Sys.Receive(r.Now(), 99, good) {
		t.Error("a PDU for a port that is not there was consumed")
	}
	after := r.a.Port(1)
	want := before.Counters
	want.IllegalRx += lacp.PDUSize
	want.UnknownRx++
	if after.Counters != want {
		t.Errorf("counters %+v, want %+v", after.Counters, want)
	}
	if after.Counters = before.Counters; after != before {
		t.Errorf("state changed: %+v, was %+v", after, before)
	}
}

// Versions from the future are read as version 1.
func TestReceiveVersions(t *testing.T) {
	for _, version := range []uint8{2, 0xf1} {
		r := newRig(t, lacp.Config{}, 1)
		r.partners[0].Silent = true
		pdu := lacp.PDU{Version: version, Actor: r.partners[0].Actor}
		r.a.Sys.Receive(r.Now(), 1, pdu.AppendTo(nil))
		r.want(1, lacp.ReceiveMachine, "CURRENT")
	}
}

// T160: one marker request, one response, on the same port; and A55's limit
// for a flood of them.
func TestMarkerResponder(t *testing.T) {
	r := newRig(t, lacp.Config{}, 2)
	var sent [][]byte
	r.a.OnSend = func(_ lacp.Instant, id lacp.PortID, pdu []byte) {
		if pdu[0] == lacp.SubtypeMarker {
			if id != 2 {
				t.Errorf("answered on port %d", id)
			}
			sent = append(sent, append([]byte(nil), pdu...))
		}
	}
	r.RunTo(5 * time.Second)
	ask := lacp.Marker{Version: 1, Type: lacp.MarkerInformation, Port: 9, System: macB, ID: 0xabcdef}
	b := ask.AppendTo(nil)
	b[109] = 0x77 // comes back as it is
	if !r.a.Sys.Receive(r.Now(), 2, b) {
		t.Error("a marker was not consumed")
	}
	want := append([]byte(nil), b...)
	want[2] = lacp.MarkerResponse
	if len(sent) != 1 || string(sent[0]) != string(want) {
		t.Fatalf("sent % x, want % x", sent, want)
	}
	r.Run(2 * time.Second)
	sent = nil
	for range 1000 {
		r.a.Sys.Receive(r.Now(), 2, b)
		r.Run(ms)
	}
	if len(sent) > 3 {
		t.Errorf("%d responses in a second", len(sent))
	}
	if c := r.a.Port(2).Counters; c.MarkerRx != 1001 || c.MarkerRespTx+c.MarkerLimited != 1001 {
		t.Errorf("counters %+v", c)
	}
	b[2] = lacp.MarkerResponse
	r.a.Sys.Receive(r.Now(), 2, b)
	b[2] = 9
	r.a.Sys.Receive(r.Now(), 2, b)
	if c := r.a.Port(2).Counters; c.MarkerRespRx != 1 || c.MarkerUnknownRx != 1 {
		t.Errorf("counters %+v", c)
	}
}

// Case A59: all frames of one link vanish, and the link stays up.
func TestOneWay(t *testing.T) {
	net, a, b, cables := pair(t, lacp.Config{Fast: true}, lacp.Config{Fast: true}, 2)
	net.RunTo(10 * time.Second)
	cables[0].Ways[1].Cut = true // to a
	cut := net.Now()
	at, ok := net.Until(4*time.Second, func() bool { return !a.Port(1).Sends && !b.Port(1).Sends })
	if !ok || at-cut > 3*time.Second {
		t.Errorf("both ends stopped after %v, %v", at-cut, ok)
	}
	data(t, a, 2, true, true)
	data(t, b, 2, true, true)
	if !a.Sys.Carrier() {
		t.Error("no carrier")
	}
	net.Run(10 * time.Second)
	cables[0].Ways[1].Cut = false
	healed := net.Now()
	// Both were DEFAULTED, where a PDU goes out each 30 s (T44, T173).
	at, ok = net.Until(time.Minute, func() bool { return working(a, 1, 2)() && working(b, 1, 2)() })
	if !ok || at-healed > 33*time.Second {
		t.Errorf("both ends work again after %v, %v", at-healed, ok)
	}
}

// port_moved: a partner that is heard on another port is shown once.
func TestPortMoved(t *testing.T) {
	r := newRig(t, lacp.Config{}, 2)
	r.RunTo(5 * time.Second)
	first := r.partners[0]
	r.a.Ports[0].Cable().Pull()
	if got := r.a.Port(1).Partner.System; got != macB {
		t.Fatalf("partner of a port without link = %v", got)
	}
	r.Join(&r.a.Ports[1].Port, &first.Port)
	first.Say()
	r.Run(ms)
	if st := r.a.Port(1); st.Heard || st.Receive != lacp.PortDisabled {
		t.Errorf("port 1 still shows %+v in %v", st.Partner, st.Receive)
	}
	if got := r.a.Port(2).Partner.Port; got != 1 {
		t.Errorf("port 2 has partner port %d, want 1", got)
	}
}

// Half duplex ports speak no LACP, and start anew when they turn full.
func TestHalfDuplex(t *testing.T) {
	r := newRig(t, lacp.Config{}, 2)
	r.RunTo(5 * time.Second)
	data(t, r.a, 1, true, true)
	half := tenG
	half.Half = true
	for _, silent := range []time.Duration{0, 92 * time.Second, 95 * time.Second} {
		r.partners[0].Silent = silent > 0
		r.Run(silent)
		r.a.SetLink(r.a.Ports[0], half)
		r.want(1, lacp.ReceiveMachine, "LACP_DISABLED")
		data(t, r.a, 1, false, false)
		n := len(r.partners[0].Heard)
		r.Run(40 * time.Second)
		if len(r.partners[0].Heard) != n {
			t.Error("a half duplex port sent a PDU")
		}
		data(t, r.a, 2, true, true)
		r.a.SetLink(r.a.Ports[0], tenG)
		r.partners[0].Silent = false
		r.Run(10 * time.Second)
		data(t, r.a, 1, true, true)
	}
	r.a.SetLink(r.a.Ports[0], half)
	r.a.Ports[0].Cable().SetUp(false)
	r.want(1, lacp.ReceiveMachine, "PORT_DISABLED")
}

// Two partners on one link (a hub): the port never settles on data.
func TestTwoPartnersOnOneLink(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true, Strict: true}, 1)
	p := r.partners[0]
	p.Replies, p.Every = false, 0
	r.RunTo(time.Second)
	for i := range 200 {
		p.Actor.System = []lacp.MAC{macB, macC}[i%2]
		p.Say()
		r.Run(100 * ms)
		data(t, r.a, 1, false, false)
	}
}

// update_NTT: a partner that is wrong about us in anything that it has to know
// is told at once, and in nothing else.
func TestAnswersWrongView(t *testing.T) {
	r := newRig(t, lacp.Config{}, 1)
	p := r.partners[0]
	p.Replies, p.Every, p.Stubborn = false, 0, true
	p.View = r.a.Port(1).Actor
	p.Say()
	r.RunTo(10 * time.Second) // attached
	for name, c := range map[string]struct {
		differ func(i *lacp.Info)
		told   bool
	}{
		"nothing":         {func(i *lacp.Info) {}, false},
		"system":          {func(i *lacp.Info) { i.System = macC }, true},
		"system priority": {func(i *lacp.Info) { i.SystemPriority-- }, true},
		"key":             {func(i *lacp.Info) { i.Key-- }, true},
		"port":            {func(i *lacp.Info) { i.Port-- }, true},
		"port priority":   {func(i *lacp.Info) { i.PortPriority-- }, true},
		"activity":        {func(i *lacp.Info) { i.State ^= lacp.Activity }, true},
		"timeout":         {func(i *lacp.Info) { i.State ^= lacp.Timeout }, true},
		"aggregation":     {func(i *lacp.Info) { i.State ^= lacp.Aggregation }, true},
		"synchronization": {func(i *lacp.Info) { i.State ^= lacp.Synchronization }, true},
		"collecting":      {func(i *lacp.Info) { i.State ^= lacp.Collecting }, false},
		"distributing":    {func(i *lacp.Info) { i.State ^= lacp.Distributing }, false},
		"defaulted":       {func(i *lacp.Info) { i.State ^= lacp.Defaulted }, false},
		"expired":         {func(i *lacp.Info) { i.State ^= lacp.Expired }, false},
	} {
		// Out of sync on both sides, so that no machine moves.
		p.Actor.State = lacp.Activity | lacp.Aggregation
		p.View = r.a.Port(1).Actor
		p.Say()
		r.Run(3 * time.Second)
		p.View = r.a.Port(1).Actor
		c.differ(&p.View)
		n := len(p.Heard)
		p.Say()
		r.Run(ms)
		if told := len(p.Heard) > n; told != c.told {
			t.Errorf("wrong about %s: told %v, want %v", name, told, c.told)
		}
		p.View = r.a.Port(1).Actor
		p.Say()
		r.Run(3 * time.Second)
	}
}

// Time does not go back.
func TestTimeGoesBack(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true}, 1)
	r.RunTo(10 * time.Second)
	pdu := lacp.PDU{Version: 1, Actor: r.partners[0].Actor, Partner: r.a.Port(1).Actor}
	r.partners[0].Silent = true
	r.a.Sys.Receive(3*time.Second, 1, pdu.AppendTo(nil))
	if at := r.a.Port(1).LastRx; at != 10*time.Second {
		t.Errorf("received at %v", at)
	}
	r.RunTo(13*time.Second - 1)
	r.want(1, lacp.ReceiveMachine, "CURRENT")
}
