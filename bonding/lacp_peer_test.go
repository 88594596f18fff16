package bonding_test

import (
	"fmt"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/lacp"
	"bondstack/link/linktest"
	"bondstack/link/wire"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

// What the tests of others ask of 802.3ad: Linux's selftests (T32 to T44) and
// DPDK's (T151 to T161). T56, that members take the slow protocols' group while
// the bond is up and no longer, does not apply: our links take all multicast.

// dataBits are the bits of a port that carries data.
const dataBits = uint8(lacp.Collecting | lacp.Distributing)

// lacpSwitches is a client whose eth0 and eth1 go to one switch, and eth2 and
// eth3 to another. All are bonds on one clock.
type lacpSwitches struct {
	*bonding.Bond
	t     *testing.T
	clock *faketime.ManualClock
	wires []*wire.Endpoint
}

// newLACPSwitches makes them, all up. The ports of the first switch have the
// given priorities in the client, those of the second the default, 255.
func newLACPSwitches(t *testing.T, policy string, priorities ...uint16) *lacpSwitches {
	t.Helper()
	s := &lacpSwitches{t: t, clock: faketime.NewManualClock()}
	bonds := make([]*bonding.Bond, 3)
	for i := range bonds {
		b, err := bonding.New(bonding.Options{Mode: bonding.IEEE8023AD, Clock: s.clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		if err := b.SetOptions(map[string]string{"lacp_rate": "fast", "ad_select": policy}); err != nil {
			t.Fatal(err)
		}
		bonds[i] = b
	}
	s.Bond = bonds[0]
	for i := range 4 {
		x, y, err := wire.New(wire.Options{Synchronous: true, Clock: s.clock})
		if err != nil {
			t.Fatal(err)
		}
		s.wires = append(s.wires, x)
		name := fmt.Sprintf("eth%d", i)
		for b, ep := range map[*bonding.Bond]*wire.Endpoint{s.Bond: x, bonds[1+i/2]: y} {
			if err := b.Enslave(name, ep, bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, prio := range priorities {
		if err := s.SetActorPortPriority(fmt.Sprintf("eth%d", i), prio); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range bonds {
		b.Attach(&linktest.Counter{})
	}
	return s
}

// wantChosen checks that the bond's aggregator is that of two slaves, and that
// those which are in it are what carries data.
func (s *lacpSwitches) wantChosen(when string, first int) {
	s.t.Helper()
	st := s.Status()
	if st.LACP.Aggregator == nil {
		s.t.Fatalf("%s: no active aggregator", when)
	}
	id := st.LACP.Aggregator.ID
	for i, port := range st.Slaves {
		l, want := port.LACP, i/2 == first/2
		if (l.Aggregator == id) != want || (l.Actor.State&dataBits == dataBits) != want || (port.State == "active") != want {
			s.t.Errorf("%s: %s of aggregator %d is %s with %v, the active aggregator is %d: %s",
				when, port.Name, l.Aggregator, port.State, l.Actor.Flags, id, l.Explanation)
		}
	}
}

// The aggregator with the greater sum of priorities is chosen and stays so when
// one of its ports flaps, as long as what is left has more than the other (T32).
func TestLACPPeerPortPriority(t *testing.T) {
	s := newLACPSwitches(t, "actor_port_prio", 1000, 10)
	run(s.clock, 5*time.Second)
	s.wantChosen("1010 against 510", 0)
	s.wires[1].SetCarrier(false)
	run(s.clock, time.Second)
	st := s.Status()
	if a := st.LACP.Aggregator; a == nil || a.ID != st.Slaves[0].LACP.Aggregator || st.Slaves[0].State != "active" {
		t.Errorf("eth1 down, 1000 against 510: %+v, eth0 is of aggregator %d", a, st.Slaves[0].LACP.Aggregator)
	}
	s.wires[1].SetCarrier(true)
	run(s.clock, 5*time.Second)
	s.wantChosen("eth1 back", 0)
	for _, name := range []string{"eth2", "eth3"} {
		if err := s.SetActorPortPriority(name, 600); err != nil {
			t.Fatal(err)
		}
	}
	s.wires[1].SetCarrier(false) // and the flap does not bring the first one back
	run(s.clock, time.Second)
	s.wires[1].SetCarrier(true)
	run(s.clock, 5*time.Second)
	s.wantChosen("1010 against 1200", 2)
}

// The ports of the chosen aggregator do not churn (T34); those of the other one
// wait together, without data, and are churned when the timer of 60 s has run
// out (T35).
func TestLACPPeerChurn(t *testing.T) {
	s := newLACPSwitches(t, "actor_port_prio", 1000, 10)
	churn := func(when string, want ...string) {
		t.Helper()
		s.wantChosen(when, 0)
		slaves := s.Status().Slaves
		for i, p := range slaves {
			if p.LACP.ActorChurn != want[i/2] {
				t.Errorf("%s: %s is %s, want %s", when, p.Name, p.LACP.ActorChurn, want[i/2])
			}
		}
		if x, y := slaves[2].LACP.Aggregator, slaves[3].LACP.Aggregator; x != y || x == 0 {
			t.Errorf("%s: the other ports are of aggregators %d and %d", when, x, y)
		}
	}
	run(s.clock, 12*time.Second)
	churn("10 s after the choice", "none", "monitoring")
	run(s.clock, 55*time.Second)
	churn("55 s later", "none", "churned")
}

// A story of lost links and of a partner that falls silent, seen by one of two
// bonds: T37, T38, T40, T41, T43 and T44.
func TestLACPPeerSilence(t *testing.T) {
	_, b, clock, wires := lacpPair(t, 2, map[string]string{"lacp_rate": "fast", "min_links": "1"})
	want := func(when string, carrier bool, carries ...bool) {
		t.Helper()
		st := b.Status()
		for i, c := range carries {
			if l := st.Slaves[i].LACP; c && l.Actor.State&dataBits != dataBits || !c && l.Actor.State&dataBits != 0 {
				t.Errorf("%s: %s has %v, data is to pass: %v", when, st.Slaves[i].Name, l.Actor.Flags, c)
			}
		}
		if st.Carrier != carrier {
			t.Errorf("%s: carrier is %v", when, st.Carrier)
		}
	}
	step := func(when string, d time.Duration, carrier bool, carries ...bool) {
		t.Helper()
		run(clock, d)
		want(when, carrier, carries...)
	}
	strict := func(value string) {
		t.Helper()
		if err := b.SetOption("lacp_strict", value); err != nil {
			t.Fatal(err)
		}
	}
	step("at first", 3*time.Second, true, true, true)
	wires[0].SetCarrier(false)
	step("T37: one link down", 5*time.Second, true, false, true)
	wires[1].SetCarrier(false)
	step("T38: both links down", 5*time.Second, false, false, false)
	wires[0].SetCarrier(true)
	wires[1].SetCarrier(true)
	step("both links back", 5*time.Second, true, true, true)
	wires[0].SetCut(true) // what b is sent is lost
	step("T40: one link is silent", 5*time.Second, true, false, true)
	wires[1].SetCut(true)
	step("T41: both are silent, strict off", 5*time.Second, true, false, false)
	strict("on")
	step("both are silent, strict", time.Second, false, false, false)
	strict("off")
	step("T43: strict off again", time.Second, true, false, false)
	strict("on")
	wires[0].SetCut(false)
	step("T44: strict, one link speaks again", 60*time.Second, true, true, false)
}

// Of two aggregators stable keeps the one chosen first, even if the other gets
// more (T151); bandwidth takes the one with the greater sum of speeds, be it by
// the number of its ports or by the speed of one (T152).
func TestLACPPeerSelect(t *testing.T) {
	for _, tt := range []struct {
		policy string
		first  uint32 // speed of eth0, the others have 1000
		want   string
	}{
		{"stable", 1000, "eth0"},
		{"bandwidth", 1000, "eth1,eth2,eth3"},
		{"bandwidth", 2000, "eth1,eth2,eth3"},
		{"bandwidth", 10000, "eth0"},
	} {
		r := newLACPRig(t, 1, map[string]string{"ad_select": tt.policy, "lacp_rate": "fast"})
		speed := func(name string, mbps uint32) {
			st := r.links[name].LinkState()
			st.Speed = mbps
			r.links[name].SetState(st)
		}
		speed("eth0", tt.first)
		r.agree()
		for i := 1; i < 4; i++ {
			name := fmt.Sprintf("eth%d", i)
			p := r.add(name, linktest.RecorderOptions{})
			p.actor.System[5] = 9
			speed(name, 1000)
			p.speak(time.Second)
		}
		run(r.clock, 5*time.Second)
		r.wantDistributing(fmt.Sprintf("%s, %d against 3000", tt.policy, tt.first), tt.want)
	}
}

// Every member delivers frames for the bond's address; those for another only
// while the bond is promiscuous (T154, T155).
func TestLACPPeerReceiveFilter(t *testing.T) {
	r := newLACPRig(t, 4, map[string]string{"lacp_rate": "fast"})
	r.agree()
	for _, promiscuous := range []bool{true, false} {
		if err := r.SetPromiscuous(promiscuous); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			name := fmt.Sprintf("eth%d", i)
			foreign := linktest.Flow4(i)
			foreign.DstMAC = "\x02\x00\x00\x00\x77\x77"
			before := r.slave(name).Counters.Drops["rx_other_host"]
			r.links[name].Inject(r.toBond(i))
			r.links[name].Inject(foreign.UDP(nil))
			got, dropped := r.up.Drain(), r.slave(name).Counters.Drops["rx_other_host"]-before
			want := map[bool]int{true: 2, false: 1}[promiscuous]
			if len(got) != want || dropped != uint64(2-want) {
				t.Errorf("%s, promiscuous %v: %d of 2 frames were delivered, %d dropped", name, promiscuous, len(got), dropped)
			}
			if len(got) > 0 && string(got[0].Frame) != string(r.toBond(i)) {
				t.Errorf("%s, promiscuous %v: %x was delivered", name, promiscuous, got[0].Frame)
			}
		}
	}
}

// A member that comes back is aggregated again, after five PDUs at most, and the
// others do not notice (T157).
func TestLACPPeerComesBack(t *testing.T) {
	r := newLACPRig(t, 4, map[string]string{"lacp_rate": "fast"})
	r.agree()
	for i := range 4 {
		name := fmt.Sprintf("eth%d", i)
		p := r.partners[name]
		r.carrier(name, false)
		run(r.clock, 2*time.Second)
		if n := r.Status().LACP.Aggregator.Ports; n != 3 {
			t.Errorf("without %s: %d ports", name, n)
		}
		p.heard = nil
		r.carrier(name, true)
		for range 500 {
			if r.slave(name).State == "active" {
				break
			}
			r.ms(10)
		}
		if n := len(p.heard); n > 5 {
			t.Errorf("%s took %d PDUs to come back", name, n)
		}
		r.wantDistributing(name+" came back", "eth0,eth1,eth2,eth3")
	}
}

// 32 frames of different MACs: each member carries some, all together 32, and no
// slow-protocol frame is among them (T158).
func TestLACPPeerSpread(t *testing.T) {
	r := newLACPRig(t, 4, map[string]string{"lacp_rate": "fast"})
	r.agree()
	for _, p := range r.partners {
		p.heard, p.data = nil, 0
	}
	frames := make([][]byte, 32)
	for i := range frames {
		f := linktest.Flow4(0)
		f.SrcMAC = tcpip.LinkAddress([]byte{2, 0, 0, 0, 9, byte(i)})
		frames[i] = f.UDP(nil)
	}
	if n, err := linktest.Write(r, frames...); n != 32 || err != nil {
		t.Fatalf("WritePackets() = %d, %v", n, err)
	}
	sum := 0
	for name, p := range r.partners {
		sum += p.data
		if p.data == 0 || len(p.heard) != 0 {
			t.Errorf("%s carried %d frames and %d PDUs", name, p.data, len(p.heard))
		}
	}
	if sum != 32 {
		t.Errorf("the members carried %d frames, want 32", sum)
	}
}

// A marker has one answer, on the member that it came by, and does not reach
// those above (T160).
func TestLACPPeerMarker(t *testing.T) {
	r := newLACPRig(t, 4, map[string]string{"lacp_rate": "fast"})
	r.agree()
	for _, p := range r.partners {
		p.speak(0)
		p.link.Drain()
	}
	for i := range 4 {
		m := lacp.Marker{Version: 1, Type: lacp.MarkerInformation, Port: uint16(i + 1), System: partnerSystem, ID: uint32(100 + i)}
		r.links[fmt.Sprintf("eth%d", i)].Inject(slow(m.AppendTo(nil)))
		m.Type = lacp.MarkerResponse
		for j := range 4 {
			written := r.links[fmt.Sprintf("eth%d", j)].Drain()
			switch {
			case i != j && len(written) != 0:
				t.Errorf("eth%d sent %d frames for a marker on eth%d", j, len(written), i)
			case i == j && (len(written) != 1 || string(written[0].Frame[14:]) != string(m.AppendTo(nil))):
				t.Errorf("eth%d answered %+v", i, written)
			}
		}
	}
	if n := len(r.up.Delivered()); n != 0 {
		t.Errorf("%d frames reached those above", n)
	}
}

// One member hears nothing any more: it expires, and the others work on. DPDK
// has timers of its own for this test; ours are the standard's (T161).
func TestLACPPeerExpired(t *testing.T) {
	r := newLACPRig(t, 4, map[string]string{"lacp_rate": "fast"})
	r.agree()
	r.partners["eth2"].speak(0)
	r.told()
	run(r.clock, 3500*time.Millisecond)
	if l := r.port("eth2"); l.Receive != "EXPIRED" || l.Actor.State&uint8(lacp.Expired) == 0 || l.Actor.State&dataBits != 0 {
		t.Errorf("the silent member is %s with %v", l.Receive, l.Actor.Flags)
	}
	run(r.clock, 20*time.Second)
	r.wantDistributing("without eth2", "eth0,eth1,eth3")
	for _, name := range []string{"eth0", "eth1", "eth3"} {
		if l := r.port(name); l.Receive != "CURRENT" || l.Actor.State&dataBits != dataBits {
			t.Errorf("%s is %s with %v", name, l.Receive, l.Actor.Flags)
		}
	}
	if told := r.told(); len(told) != 1 {
		t.Errorf("events %q, want the one of eth2", told)
	}
}
