package bonding_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/lacp"
	"bondstack/link"
	"bondstack/link/linktest"
)

// Without a partner nothing is sent until the partner is known to be silent;
// then one port works alone, unless lacp_strict is on, which may be set at any
// time.
func TestLACPFallbackAndStrict(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	data := func() int {
		before := r.partners["eth0"].data + r.partners["eth1"].data
		r.send(4)
		return r.partners["eth0"].data + r.partners["eth1"].data - before
	}
	r.ms(2900)
	if n := data(); n != 0 {
		t.Errorf("%d frames were sent before a partner could have spoken", n)
	}
	r.ms(200)
	r.wantFallback("after 3 s of silence", true)
	if n := data(); n != 4 {
		t.Errorf("%d of 4 frames were sent by the fallback", n)
	}
	r.set("lacp_strict", "on")
	r.wantFallback("strict", false)
	if n := data(); n != 0 || r.Status().Carrier {
		t.Errorf("strict: %d frames were sent, carrier is %v", n, r.Status().Carrier)
	}
	r.set("lacp_strict", "off")
	r.ms(1000)
	r.wantFallback("strict off again", true)
	if !r.Status().Carrier {
		t.Error("strict off again: no carrier within a second")
	}
	r.agree()
	for _, s := range r.Status().Slaves {
		if s.LACP.Fallback {
			t.Errorf("%s is a fallback beside a partner", s.Name)
		}
	}
	if n := data(); n != 4 {
		t.Errorf("%d of 4 frames were sent with partners", n)
	}
}

func (r *lacpRig) wantFallback(when string, want bool) {
	r.tb.Helper()
	n := 0
	for _, s := range r.Status().Slaves {
		if s.LACP.Fallback && s.State == "active" {
			n++
		}
	}
	if got := n == 1; got != want || n > 1 {
		r.tb.Errorf("%s: %d ports work as a fallback", when, n)
	}
}

// Both partners fall silent: no port distributes by LACP; the carrier stays,
// since the links do (strict off), or goes (strict on).
func TestLACPSilentPartners(t *testing.T) {
	for _, strict := range []string{"off", "on"} {
		r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast", "lacp_strict": strict})
		r.agree()
		for _, p := range r.partners {
			p.speak(0)
		}
		run(r.clock, 4*time.Second)
		for _, s := range r.Status().Slaves {
			if s.LACP.Actor.State&uint8(lacp.Collecting|lacp.Distributing) != 0 {
				t.Errorf("strict %s: %s says %v 4 s after its partner fell silent", strict, s.Name, s.LACP.Actor.Flags)
			}
		}
		if got := r.Status().Carrier; got != (strict == "off") {
			t.Errorf("strict %s: carrier is %v", strict, got)
		}
		r.partners["eth0"].speak(time.Second)
		run(r.clock, 3*time.Second)
		if st := r.Status(); st.Slaves[0].State != "active" || st.Slaves[1].LACP.Actor.State&uint8(lacp.Distributing) != 0 || !st.Carrier {
			t.Errorf("strict %s: one partner speaks again: %s, %s, carrier is %v", strict, st.Slaves[0].State, st.Slaves[1].LACP.Actor.Flags, st.Carrier)
		}
	}
}

// min_links acts at once, and says why there is no carrier.
func TestLACPMinLinksLive(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	r.agree()
	r.set("min_links", "3")
	e, err := r.ExplainLACP()
	if err != nil || r.Status().Carrier || !strings.Contains(e.Summary, "2 usable ports, and min_links is 3") {
		t.Errorf("min_links 3 of 2: carrier %v, %q, %v", r.Status().Carrier, e.Summary, err)
	}
	if p := e.Ports[0]; p.Distributes || !strings.Contains(p.State+p.Remedy, "min_links") {
		t.Errorf("below min_links a port is explained as %+v", p)
	}
	r.set("min_links", "2")
	if e, _ := r.ExplainLACP(); !e.Carrier || !e.Ports[0].Distributes {
		t.Errorf("min_links 2 of 2: %+v", e)
	}
}

// ad_select between two slow links to one partner, which come first, and one
// fast link to another.
func TestLACPSelect(t *testing.T) {
	other := lacp.MAC{2, 0, 0, 0, 0xff, 2}
	for policy, want := range map[string]string{"stable": "eth0,eth1", "bandwidth": "eth2", "count": "eth0,eth1"} {
		r := newLACPRig(t, 0, map[string]string{"ad_select": policy, "lacp_rate": "fast", "xmit_hash_policy": "layer3+4"})
		speed := map[string]uint32{"eth0": 1000, "eth1": 1000, "eth2": 10000}
		for i := range 3 {
			name := fmt.Sprintf("eth%d", i)
			p := r.add(name, linktest.RecorderOptions{State: link.State{Up: true, Carrier: true, Speed: speed[name], Duplex: link.DuplexFull}})
			if i == 2 {
				p.actor.System = other
			}
			p.speak(time.Second)
		}
		run(r.clock, 3*time.Second)
		r.wantDistributing(policy, want)
		for i := range 16 {
			f := linktest.Flow4(0)
			f.Src = netip.AddrPortFrom(f.Src.Addr(), uint16(2000+i))
			linktest.Write(r, f.UDP(nil))
		}
		for name, p := range r.partners {
			if carries := p.data > 0; carries != strings.Contains(want, name) {
				t.Errorf("%s: %s carried %d frames", policy, name, p.data)
			}
		}
		// The chosen one loses its links and gets them back.
		for _, name := range strings.Split(want, ",") {
			r.carrier(name, false)
		}
		run(r.clock, 3*time.Second)
		if st := r.Status(); !st.Carrier || st.LACP.Aggregator.Ports != 3-len(strings.Split(want, ",")) {
			t.Errorf("%s: the others did not take over: %+v", policy, st.LACP.Aggregator)
		}
		for _, name := range strings.Split(want, ",") {
			r.carrier(name, true)
		}
		run(r.clock, 3*time.Second)
		if policy == "stable" {
			want = "eth2" // as long as it works
		}
		r.wantDistributing(policy+", after the links came back", want)
	}
}

func (r *lacpRig) wantDistributing(when, want string) {
	r.tb.Helper()
	var names []string
	for _, s := range r.Status().Slaves {
		if s.State == "active" {
			names = append(names, s.Name)
		}
	}
	if got := strings.Join(names, ","); got != want {
		e, _ := r.ExplainLACP()
		r.tb.Errorf("%s: %s distribute, want %s: %+v", when, got, want, e.Ports)
	}
}

// ad_select actor_port_prio: the greater sum of priorities wins, as they are
// now.
func TestLACPSelectByPortPriority(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"ad_select": "actor_port_prio", "lacp_rate": "fast"})
	r.partners["eth1"].actor.System[5] = 9
	r.partners["eth0"].speak(time.Second)
	r.partners["eth1"].speak(time.Second)
	run(r.clock, 3*time.Second)
	r.wantDistributing("equal priorities", "eth0")
	if err := r.SetActorPortPriority("eth1", 1000); err != nil {
		t.Fatal(err)
	}
	run(r.clock, 3*time.Second)
	r.wantDistributing("eth1 has more", "eth1")
	if p := r.port("eth1").Actor.PortPriority; p != 1000 {
		t.Errorf("the status says port priority %d", p)
	}
	if p := r.partners["eth1"].last(t).Actor.PortPriority; p != 1000 {
		t.Errorf("the partner is told port priority %d", p)
	}
	for want, err := range map[error]error{
		bonding.ErrInvalid: r.SetActorPortPriority("eth1", 0),
		bonding.ErrNoSlave: r.SetActorPortPriority("eth9", 1),
		bonding.ErrMode:    newRig(t, bonding.Options{}, 1).SetActorPortPriority("eth0", 1),
	} {
		if !errors.Is(err, want) {
			t.Errorf("SetActorPortPriority() = %v, want %v", err, want)
		}
	}
}

// Which options of LACP may be set while the bond is up is as in Linux; all may
// be while it is down, and none in another mode.
func TestLACPOptions(t *testing.T) {
	for _, o := range []struct {
		name, value, shown string
		live               bool
	}{
		{"lacp_rate", "fast", "fast 1", false},
		{"lacp_active", "off", "off 0", false},
		{"ad_select", "count", "count 2", false},
		{"coupled_control", "off", "0", false},
		{"ad_user_port_key", "1023", "1023", false},
		{"ad_actor_sys_prio", "7", "7", true},
		{"ad_actor_system", "02:00:00:00:00:99", "02:00:00:00:00:99", true},
		{"lacp_strict", "on", "1", true},
		{"min_links", "2", "2", true},
	} {
		up := newLACPRig(t, 1, nil)
		if err := up.SetOption(o.name, o.value); (err == nil) != o.live || (err != nil && !errors.Is(err, bonding.ErrUp)) {
			t.Errorf("%s while up: %v", o.name, err)
		}
		down := newDownRig(t, bonding.Options{Mode: bonding.IEEE8023AD}, 1)
		down.set(o.name, o.value)
		if got := down.Status().Options[o.name]; got != o.shown {
			t.Errorf("%s is shown as %q, want %q", o.name, got, o.shown)
		}
		switch o.name {
		case "min_links", "ad_select": // of every mode in Linux too
			continue
		}
		if err := newDownRig(t, bonding.Options{}, 1).SetOption(o.name, o.value); !errors.Is(err, bonding.ErrMode) {
			t.Errorf("%s in balance-rr: %v", o.name, err)
		}
	}
	for name, values := range map[string][]string{
		"lacp_rate": {"2", "quick", "", "-1"}, "lacp_active": {"2", "maybe"}, "ad_select": {"4", "best"},
		"ad_actor_sys_prio": {"0", "65536", "x"}, "ad_user_port_key": {"1024", "-1"},
		"ad_actor_system": {"01:00:00:00:00:01", "ff:ff:ff:ff:ff:ff", "02:00", "x", "02:00:00:00:00:00:00:01"},
		"lacp_strict":     {"2"}, "coupled_control": {"x"}, "min_links": {"-1"},
	} {
		for _, value := range values {
			err := newDownRig(t, bonding.Options{Mode: bonding.IEEE8023AD}, 0).SetOption(name, value)
			if !errors.Is(err, bonding.ErrInvalid) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "allowed") {
				t.Errorf("SetOption(%s, %q) = %v", name, value, err)
			}
		}
	}
}

// What is set is what is told: system, priority, user key, rate, activity.
func TestLACPOptionsOnTheWire(t *testing.T) {
	r := newLACPRig(t, 1, map[string]string{"ad_actor_sys_prio": "7", "ad_actor_system": "02:00:00:00:00:99",
		"ad_user_port_key": "3", "lacp_rate": "fast"})
	run(r.clock, time.Second)
	h := r.partners["eth0"].last(t)
	want := lacp.Info{SystemPriority: 7, System: lacp.MAC{2, 0, 0, 0, 0, 0x99}, Key: 3<<6 | 15, PortPriority: 255,
		Port: h.Actor.Port, State: h.Actor.State}
	if h.Actor != want || !h.Actor.State.Has(lacp.Activity|lacp.Timeout) {
		t.Errorf("the PDU says %+v, want %+v", h.Actor, want)
	}
	if h.source != macOf("eth0") {
		t.Errorf("the PDU comes from %v", h.source)
	}
	// Another address of the bond is another system: all is told anew.
	plain := newLACPRig(t, 1, nil)
	plain.agree()
	if err := plain.ChangeLinkAddress("\x02\x00\x00\x00\x00\x55"); err != nil {
		t.Fatal(err)
	}
	run(plain.clock, 3*time.Second)
	if h := plain.partners["eth0"].last(t); h.Actor.System != (lacp.MAC{2, 0, 0, 0, 0, 0x55}) || h.source != macOf("eth0") {
		t.Errorf("after a change of address the PDU is of %v from %v", h.Actor.System, h.source)
	}
	plain.wantDistributing("after a change of address", "eth0")
}

// Neighbours are told of the bond when it can send, not when it only has a
// carrier, and whoever watches is told of each port.
func TestLACPEvents(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	announced := 0
	defer r.SubscribeNotifyPeers(func() { announced++ })()
	changed := 0
	defer r.SubscribeLinkState(func() { changed++ })()
	r.ms(1000)
	if announced != 0 || !r.Status().Carrier {
		t.Errorf("%d announcements before a port could send, carrier is %v", announced, r.Status().Carrier)
	}
	r.told()
	r.agree()
	if announced != 1 || changed == 0 || r.LinkState().Speed != 20000 {
		t.Errorf("%d announcements, %d changes, speed %d", announced, changed, r.LinkState().Speed)
	}
	told := strings.Join(r.told(), "\n")
	for _, want := range []string{"slave eth0: port distributing, was waiting", "slave eth1: port distributing, was waiting"} {
		if strings.Count(told, want) != 1 {
			t.Errorf("events %q, want %q once", told, want)
		}
	}
	r.partners["eth0"].speak(0)
	run(r.clock, 4*time.Second)
	if told := strings.Join(r.told(), "\n"); told != "slave eth0: port waiting, was distributing" {
		t.Errorf("events after a partner fell silent: %q", told)
	}
}

// The Go fields are the options by name, checked as they are.
func TestLACPOptionsStruct(t *testing.T) {
	b, err := bonding.New(bonding.Options{Mode: bonding.IEEE8023AD, LACP: bonding.LACPOptions{Fast: true, Passive: true, Select: lacp.Count,
		SystemPriority: 7, System: "\x02\x00\x00\x00\x00\x99", UserKey: 3, Independent: true, Strict: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	got := b.Status().Options
	for name, want := range map[string]string{"lacp_rate": "fast 1", "lacp_active": "off 0", "ad_select": "count 2", "ad_actor_sys_prio": "7",
		"ad_actor_system": "02:00:00:00:00:99", "ad_user_port_key": "3", "coupled_control": "0", "lacp_strict": "1"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	_, err = bonding.New(bonding.Options{Mode: bonding.IEEE8023AD, LACP: bonding.LACPOptions{Select: 9, System: "\x01\x00\x00\x00\x00\x99", UserKey: 1024}})
	for _, name := range []string{"ad_select", "ad_actor_system", "ad_user_port_key"} {
		if !errors.Is(err, bonding.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("wrong fields: %v, want %s in it", err, name)
		}
	}
	if _, err := bonding.New(bonding.Options{LACP: bonding.LACPOptions{Fast: true}}); !errors.Is(err, bonding.ErrMode) {
		t.Errorf("lacp_rate in balance-rr: %v", err)
	}
}
