package bonding_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

var arpAB = bonding.Options{Mode: bonding.ActiveBackup, ARPValidate: bonding.ValidateAll}

// The first pass is at once, then there is one each interval; only the active
// slave is probed, every target by it.
func TestARPProbes(t *testing.T) {
	o := arpAB
	o.ARPIPTargets = []netip.Addr{target1, target2}
	o.NSIP6Targets = []netip.Addr{target6}
	s := newSegment(t, o, 2)
	s.wantProbes("at once", "0 eth0 who-has 10.1.0.11 tell 10.1.0.2", "0 eth0 who-has 10.1.0.12 tell 10.1.0.2", "0 eth0 who-has fd00:1::11 tell fd00:1::2")
	s.run(250)
	s.wantProbes("later", "100 eth0 who-has 10.1.0.11 tell 10.1.0.2", "100 eth0 who-has 10.1.0.12 tell 10.1.0.2", "100 eth0 who-has fd00:1::11 tell fd00:1::2",
		"200 eth0 who-has 10.1.0.11 tell 10.1.0.2", "200 eth0 who-has 10.1.0.12 tell 10.1.0.2", "200 eth0 who-has fd00:1::11 tell fd00:1::2")
	s.run(3000)
	s.wantMII("in health", "up,up")
	s.wantActive("in health", "eth0")
	s.wantFailures("eth0", 0)
	s.wantFailures("eth1", 0)
}

// A cut in either direction is found between M*d + d/2 and (M+1)*d + d/2 after
// the last evidence, which is the active slave's exact answer to a probe; with
// frames that come at other times too, whenever they come (A59, line 6 of the
// peers' wishes).
func TestARPFailureTime(t *testing.T) {
	for _, missed := range []int{1, 2, 5} {
		for _, direction := range []string{"in", "out", "both"} {
			t.Run(fmt.Sprintf("missed=%d/%s", missed, direction), func(t *testing.T) {
				o := arpAB
				o.ARPMissedMax = missed
				s := newSegment(t, o, 2)
				s.run(1000)
				s.cut["eth0"] = direction
				took := s.runUntil(func() bool { return s.Status().ActiveSlave == "eth1" })
				if want := (missed + 1) * 100; took != want {
					t.Errorf("found %d ms after the last answer, want %d", took, want)
				}
				s.wantMII("after the failover", "down,up")
				s.wantFailures("eth0", 1)
				s.run(1000)
				s.wantActive("later", "eth1")
				s.wantFailures("eth1", 0)
				s.wantFailures("eth0", 1)
			})
		}
	}
}

// Without validation any frame is evidence, at whatever moment it comes: what
// Linux decides by a frame's exact time is decided here too.
func TestARPFailureTimeOfTraffic(t *testing.T) {
	for last := 1; last < 100; last += 7 { // after the last pass, in ms
		o := arpAB
		o.ARPValidate = bonding.ValidateNone
		s := newSegment(t, o, 2)
		s.alive[target1] = false
		for range 5 {
			s.run(last)
			s.receive("eth0", noise("ip"))
			s.receive("eth1", noise("ip"))
			s.run(100 - last)
		}
		s.wantMII("in traffic", "up,up")
		s.run(last)
		s.receive("eth0", noise("ip"))
		took := s.runUntil(func() bool { return s.slave("eth0").MIIStatus == "down" })
		// Linux: the first pass that is later than 250 ms after the frame.
		want := 300 - last
		if want <= 250 {
			want += 100
		}
		if took != want {
			t.Errorf("last frame %d ms after a pass: found after %d ms, want %d", last, took, want)
		}
	}
}

// A backup that no longer hears the active slave's probes is found one interval
// later than the active one would be, and comes back with the first evidence.
func TestARPBackupFailure(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(1000)
	s.cut["eth1"] = "in"
	if took := s.runUntil(func() bool { return s.slave("eth1").MIIStatus == "down" }); took != 400 {
		t.Errorf("found after %d ms, want 400", took)
	}
	s.wantActive("with a dead backup", "eth0")
	s.cut["eth1"] = ""
	if took := s.runUntil(func() bool { return s.slave("eth1").MIIStatus == "up" }); took != 200 {
		t.Errorf("back after %d ms, want 200: heard at the next pass, seen at the one after", took)
	}
	s.wantActive("after", "eth0")
	s.wantFailures("eth1", 1)
}

// With the target dead behind links that live, one slave after the other is
// tried, the second first; who hears it becomes active.
func TestARPSearch(t *testing.T) {
	s := newSegment(t, arpAB, 3)
	s.run(1000)
	s.alive[target1] = false
	s.mark()
	took := s.runUntil(func() bool { return s.Status().ActiveSlave == "" })
	if s.Status().Carrier {
		t.Error("the bond has a carrier without any slave")
	}
	s.probes()
	s.mark()
	s.run(450)
	s.wantProbes("while searching", "100 eth2 who-has 10.1.0.11 tell 10.1.0.2", "200 eth0 who-has 10.1.0.11 tell 10.1.0.2",
		"300 eth1 who-has 10.1.0.11 tell 10.1.0.2", "400 eth2 who-has 10.1.0.11 tell 10.1.0.2")
	s.wantMII("while searching", "going down,going down,going back")
	s.alive[target1] = true
	s.run(149)
	s.wantActive("asked, not yet looked at", "")
	s.run(1)
	s.wantActive("heard", "eth0")
	s.run(1000)
	s.wantMII("heard", "up,up,up")
	_ = took
}

// A slave that is being tried has the role of the active one, and only it.
func TestARPSearchRoles(t *testing.T) {
	s := newSegment(t, arpAB, 3)
	s.run(500)
	s.alive[target1] = false
	s.runUntil(func() bool { return s.Status().ActiveSlave == "" })
	for range 30 {
		s.run(10)
		roles := ""
		for _, sl := range s.Status().Slaves {
			if sl.State == "active" {
				roles += sl.Name + "(" + sl.MIIStatus + ")"
			}
		}
		if strings.Count(roles, "(") != 1 || !strings.Contains(roles, "going back") {
			t.Errorf("active by role: %s", roles)
		}
	}
	// A new slave that is up ends the search.
	s.alive[target1] = true
	s.enslave("eth3", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	s.wantActive("with a new slave", "eth3")
	for _, sl := range s.Status().Slaves {
		if (sl.State == "active") != (sl.Name == "eth3") {
			t.Errorf("slave %s is %s", sl.Name, sl.State)
		}
	}
	s.run(1000)
	s.wantMII("with a new slave", "up,up,up,up")
}

// The slave that is being tried may leave.
func TestARPReleaseWhileSearching(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(500)
	s.alive[target1] = false
	s.runUntil(func() bool { return s.slave("eth0").State == "active" && s.slave("eth0").MIIStatus == "going back" })
	if err := s.Release("eth0"); err != nil {
		t.Fatal(err)
	}
	delete(s.links, "eth0")
	s.alive[target1] = true
	s.run(500)
	s.wantActive("left alone", "eth1")
	s.Attach(nil)
	s.mark()
	s.run(500)
	s.wantProbes("without a NIC")
}

// What is evidence with each value of arp_validate: a frame of kind arrives each
// 10 ms on a slave, and the target never answers (A38, T15, T16).
func TestARPValidate(t *testing.T) {
	// By role: what keeps the slave up.
	any, arp, valid := "ip arp nd reply probe", "arp nd reply probe", map[string]string{"active": "reply", "backup": "probe"}
	for v, rule := range map[bonding.ARPValidate]map[string]string{
		bonding.ValidateNone:         {"active": any, "backup": any},
		bonding.ValidateActive:       {"active": valid["active"], "backup": any},
		bonding.ValidateBackup:       {"active": any, "backup": valid["backup"]},
		bonding.ValidateAll:          {"active": valid["active"], "backup": valid["backup"]},
		bonding.ValidateFilter:       {"active": arp, "backup": arp},
		bonding.ValidateFilterActive: {"active": valid["active"], "backup": arp},
		bonding.ValidateFilterBackup: {"active": arp, "backup": valid["backup"]},
	} {
		for _, role := range []string{"active", "backup"} {
			for _, kind := range strings.Fields(any) {
				for _, family := range []string{"IPv4", "IPv6"} {
					o := arpAB
					o.ARPValidate = v
					target := target1
					if family == "IPv6" {
						o.NSIP6Targets = []netip.Addr{target6}
						target = target6
					}
					s := newSegment(t, o, 2)
					s.run(300)
					s.alone = true                                                          // from here each slave hears what is injected alone
					s.alive[target1], s.alive[target6] = role == "backup", role == "backup" // the active one is well
					for range 60 {
						if role == "backup" {
							s.receive("eth1", frameOf(s, kind, "eth1", target))
						} else {
							s.receive("eth0", frameOf(s, kind, "eth0", target))
							if v&bonding.ValidateBackup != 0 {
								s.receive("eth1", frameOf(s, "probe", "eth1", target))
							} else {
								s.receive("eth1", noise("arp"))
							}
						}
						s.run(10)
					}
					name := map[string]string{"active": "eth0", "backup": "eth1"}[role]
					up := s.slave(name).LinkFailureCount == 0
					if want := strings.Contains(rule[role], kind); up != want {
						t.Errorf("%v, %s, %s targets: %s frames keep it up: %t, want %t", v, role, family, kind, up, want)
					}
				}
			}
		}
	}
}

// frameOf is a frame as a slave may receive it.
func frameOf(s *segment, kind, name string, target netip.Addr) []byte {
	own := ownV4
	if target.Is6() {
		own = ownV6
	}
	request := probeFrame(macOf("eth0"), own, target)
	switch kind {
	case "reply":
		return reply(request, target)
	case "probe":
		return request
	}
	return noise(kind)
}

// arp_all_targets: with all, one target that is silent is enough (of either
// family); with any, one that answers.
func TestARPAllTargets(t *testing.T) {
	for _, all := range []bool{false, true} {
		for _, dead := range []netip.Addr{target1, target2, target6} {
			o := arpAB
			o.ARPIPTargets, o.NSIP6Targets = []netip.Addr{target1, target2}, []netip.Addr{target6}
			o.ARPAllTargets = all
			s := newSegment(t, o, 2)
			s.run(1000)
			s.alive[dead] = false
			s.run(1000)
			if failed := s.slave("eth0").LinkFailureCount > 0; failed != all {
				t.Errorf("all is %t, %v is dead: failed is %t", all, dead, failed)
			}
		}
	}
}

// all asks for nothing where frames are not validated, unlike in Linux: nobody
// keeps account of targets there.
func TestARPAllTargetsUnvalidated(t *testing.T) {
	o := arpAB
	o.ARPIPTargets, o.ARPAllTargets, o.ARPValidate = []netip.Addr{target1, target2}, true, bonding.ValidateNone
	s := newSegment(t, o, 2)
	s.alive[target2] = false
	s.run(2000)
	s.wantMII("without validation", "up,up")
	s.wantFailures("eth0", 0)
}

// Foreign broadcasts, a thousand a second on every link, cause no failure of
// links that work and hide none of one that does not (A38).
func TestARPNoise(t *testing.T) {
	for _, v := range []bonding.ARPValidate{bonding.ValidateActive, bonding.ValidateAll, bonding.ValidateFilterActive} {
		o := arpAB
		o.ARPValidate = v
		s := newSegment(t, o, 2)
		noisy := func(ms int) {
			for i := range ms {
				kind := []string{"arp", "ip", "nd"}[i%3]
				s.receive("eth0", noise(kind))
				s.receive("eth1", noise(kind))
				s.run(1)
			}
		}
		noisy(3000)
		s.wantMII(v.String(), "up,up")
		s.wantFailures("eth0", 0)
		s.wantFailures("eth1", 0)
		s.alive[target1] = false
		noisy(300)
		if s.slave("eth0").LinkFailureCount == 0 {
			t.Errorf("%v: the target is dead, and noise keeps the link up", v)
		}
	}
}

// Two links that hear each other, and nothing else, do not keep each other up.
func TestARPLinksHearEachOther(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(1000)
	s.alive[target1] = false // the switch lives and floods
	s.run(1000)
	s.wantMII("", "going down,going back")
	s.wantActive("", "")
}

// An answer that comes by the wrong slave, since the switch has not learned the
// new way, is evidence for that slave.
func TestARPAnswerByWrongSlave(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(500)
	s.alive[target1] = false
	s.runUntil(func() bool { return s.slave("eth1").MIIStatus == "going back" })
	request := probeFrame(macOf("eth0"), ownV4, target1)
	s.receive("eth0", request) // no reply: not evidence
	s.run(50)
	s.receive("eth0", reply(request, target1))
	s.run(50)
	s.wantActive("", "eth0")
}

// The variant of the modes that spread: every slave is probed in each interval,
// and each has to hear for itself.
func TestARPBalanced(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.BalanceXOR, bonding.Broadcast} {
		t.Run(mode.String(), func(t *testing.T) {
			s := newSegment(t, bonding.Options{Mode: mode}, 2)
			s.alone = true
			s.wantProbes("at once", "0 eth0 who-has 10.1.0.11 tell 10.1.0.2", "0 eth1 who-has 10.1.0.11 tell 10.1.0.2")
			s.run(1000)
			s.wantMII("in health", "up,up")
			s.cut["eth1"] = "out"
			if took := s.runUntil(func() bool { return s.slave("eth1").MIIStatus == "down" }); took != 300 {
				t.Errorf("found after %d ms, want 300", took)
			}
			if by := s.carries(); by != "eth0" {
				t.Errorf("frames go by %s", by)
			}
			if state := s.slave("eth1").State; state != "backup" {
				t.Errorf("a slave that is down is %s", state)
			}
			s.cut["eth1"] = ""
			if took := s.runUntil(func() bool { return s.slave("eth1").MIIStatus == "up" }); took != 200 {
				t.Errorf("back after %d ms, want 200", took)
			}
			s.wantFailures("eth1", 1)
			s.wantFailures("eth0", 0)
			if state := s.slave("eth1").State; state != "active" {
				t.Errorf("a slave that is up is %s", state)
			}
			s.alive[target1] = false
			s.run(1000)
			s.wantMII("target dead", "down,down")
			if s.Status().Carrier {
				t.Error("the bond has a carrier")
			}
			s.alive[target1] = true
			s.run(300)
			s.wantMII("target back", "up,up")
			if !s.Status().Carrier {
				t.Error("the bond has no carrier")
			}
		})
	}
}

// A link without carrier is not probed in the modes that spread.
func TestARPBalancedWithoutCarrier(t *testing.T) {
	s := newSegment(t, bonding.Options{Mode: bonding.BalanceRR}, 2)
	s.run(500)
	s.carrier("eth1", false)
	s.mark()
	s.run(100)
	s.wantProbes("without carrier", "100 eth0 who-has 10.1.0.11 tell 10.1.0.2")
}

// A write that finds the link gone is a failover at once, and what was heard
// before does not bring the slave back.
func TestARPLinkGone(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(1050)
	s.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
	s.send(1)
	s.clock.RunImmediatelyScheduledJobs()
	s.wantActive("at once", "eth1")
	s.wantMII("at once", "down,up")
	s.wantFailures("eth0", 1)
	s.cut["eth0"] = "both"
	s.run(2000)
	s.wantMII("later", "down,up")
	s.wantFailures("eth0", 1)
	s.links["eth0"].Fail(nil)
	s.cut["eth0"] = ""
	s.run(300)
	s.wantMII("back", "up,up")
	if f := s.Status().Failovers; len(f) != 1 || f[0].Cause != bonding.CauseTransmit {
		t.Errorf("failovers are %+v", f)
	}
}

// With one slave whose writes fail there is nothing to fail over to; it is tried
// again, and counts as one failure.
func TestARPLinkGoneAlone(t *testing.T) {
	s := newSegment(t, arpAB, 1)
	s.run(1050)
	s.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
	s.run(2000)
	s.wantFailures("eth0", 1)
	s.wantActive("gone", "")
	s.links["eth0"].Fail(nil)
	s.run(500)
	s.wantActive("back", "eth0")
}

// Failovers by the monitor are on record with their cause, from the last
// evidence on.
func TestARPFailoverRecord(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(1000)
	s.cut["eth0"] = "both"
	s.run(400)
	f := s.Status().Failovers
	if len(f) != 1 || f[0].Cause != bonding.CauseARP || f[0].From != "eth0" || f[0].To != "eth1" || f[0].DetectionUs != 300000 {
		t.Errorf("failovers are %+v", f)
	}
}

// A slave that is disabled by hand stays so, whatever is heard on it.
func TestARPDisabled(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(500)
	if err := s.SetSlaveEnabled("eth1", false); err != nil {
		t.Fatal(err)
	}
	s.run(1000)
	s.wantMII("disabled", "up,down")
	if err := s.SetSlaveEnabled("eth1", true); err != nil {
		t.Fatal(err)
	}
	s.run(1000)
	s.wantMII("enabled", "up,up")
}

// Ways: tags from the stack, none without a way, nothing by another link (T26,
// T29).
func TestARPWays(t *testing.T) {
	o := arpAB
	o.ARPIPTargets = []netip.Addr{target1, target2}
	s := newSegment(t, o, 2)
	s.run(10)
	s.routes.away[target2] = true
	s.routes.ways[target1] = linkWay("10.1.3.2", 0x88a8, 10, 0x8100, 20)
	s.routes.owned[netip.MustParseAddr("10.1.3.2")] = true
	s.ms(90)
	w := s.links["eth0"].Drain()
	if len(w) != 1 || fmt.Sprintf("%x", w[0].Frame[12:22]) != "88a8000a810000140806" {
		t.Errorf("written %v", w)
	}
	for _, f := range w {
		s.probed("eth0", f.Frame)
	}
	s.run(2000)
	s.wantMII("behind two tags", "up,up")
	s.routes.ways[target1] = linkWay("")
	s.probes()
	s.mark()
	s.run(100)
	s.wantProbes("without a way", "100 eth0 who-has 10.1.0.11 tell 0.0.0.0")
	s.run(300)
	if told := strings.Join(s.told(), "\n"); strings.Count(told, "no route to 10.1.0.11: probes go out from no address") != 1 {
		t.Errorf("told\n%s", told)
	}
}

// Targets may be given to other networks only: nothing is sent then, and the
// slaves are down, as in Linux.
func TestARPNoWay(t *testing.T) {
	o := arpAB
	o.ARPValidate = bonding.ValidateNone
	s := newSegment(t, o, 1)
	s.routes.away[target1] = true
	s.run(500)
	s.probes()
	s.run(500)
	s.wantProbes("by another link")
}

// The monitor can be turned on, off and over while the bond is up.
func TestARPLive(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(1000)
	s.set("miimon", "100")
	s.probes()
	s.run(500)
	s.wantProbes("miimon")
	s.wantMII("miimon", "up,up")
	s.set("arp_validate", "all")
	s.set("arp_interval", "50")
	s.mark()
	s.run(120)
	s.wantProbes("at once, with the new interval", "1 eth0 who-has 10.1.0.11 tell 10.1.0.2", "50 eth0 who-has 10.1.0.11 tell 10.1.0.2", "100 eth0 who-has 10.1.0.11 tell 10.1.0.2")
	s.set("arp_ip_target", "+10.1.0.12")
	s.alive[target2] = true
	s.set("arp_ip_target", "-10.1.0.11")
	s.alive[target1] = false
	s.run(1000)
	s.wantMII("another target", "up,up")
	s.wantFailures("eth0", 0)
	s.set("arp_interval", "0")
	s.alive[target2] = false
	s.run(1000)
	s.wantMII("off", "up,up")
	if w := strings.Join(s.Status().Warnings, ";"); !strings.Contains(w, "links are not monitored") {
		t.Errorf("warnings are %q", w)
	}
}

// sleepyClock is a clock whose timers may be late: sleep has time pass in which
// none fires.
type sleepyClock struct {
	*faketime.ManualClock
	slept time.Duration
}

func (c *sleepyClock) NowMonotonic() tcpip.MonotonicTime {
	return c.ManualClock.NowMonotonic().Add(c.slept)
}

// A timer that fires late blames nobody: the process was asleep, and nothing was
// asked. A little late is what timers are.
func TestARPLateTimer(t *testing.T) {
	for _, late := range []time.Duration{20 * time.Millisecond, 49 * time.Millisecond, 120 * time.Millisecond, 10 * time.Second} {
		s := newSegment(t, arpAB, 2)
		clock := &sleepyClock{ManualClock: s.clock}
		o := arpAB
		o.Clock, o.ARPInterval, o.ARPIPTargets = clock, 100*time.Millisecond, []netip.Addr{target1}
		b, err := bonding.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		s.Bond = b
		s.links = map[string]*linktest.Recorder{}
		for _, name := range []string{"eth0", "eth1"} {
			s.enslave(name, bonding.SlaveOptions{}, linktest.RecorderOptions{})
		}
		s.UseRoutes(s.routes)
		s.attach()
		s.run(1000)
		for i := range 10 {
			clock.slept += late
			if i%2 == 1 { // who receives was awake before the timer was
				request := probeFrame(macOf("eth0"), ownV4, target1)
				s.receive("eth0", reply(request, target1))
				s.receive("eth1", request)
			}
			s.run(130)
		}
		s.run(1000)
		s.wantMII(late.String(), "up,up")
		s.wantFailures("eth0", 0)
		s.wantFailures("eth1", 0)
		s.cut["eth0"] = "both"
		took := s.runUntil(func() bool { return s.Status().ActiveSlave == "eth1" })
		if took > 350 {
			t.Errorf("late by %v: then a failure is found after %d ms", late, took)
		}
	}
}

// An option that asks for targets, without any: the status says so.
func TestARPWithoutTargets(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, ARPInterval: time.Second}, 1)
	if w := strings.Join(r.Status().Warnings, ";"); !strings.Contains(w, "neither arp_ip_target nor ns_ip6_target") {
		t.Errorf("warnings are %q", w)
	}
}

// Questions to the stack are bounded, whatever comes in.
func TestARPFloodAsksLittle(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(1000)
	s.routes.asked = 0
	for i := range 100000 { // of the target, to addresses that are not ours
		s.links["eth0"].Inject(probeFrame(tcpip.LinkAddress(targetMAC[:]), target1, netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)})))
	}
	if s.routes.asked > 32 {
		t.Errorf("the stack was asked %d times between two looks", s.routes.asked)
	}
	s.run(1000)
	s.wantMII("after a flood", "up,up")
	s.wantFailures("eth0", 0)
}

// The status says when a slave was asked and heard, and which targets were.
func TestARPStatus(t *testing.T) {
	o := arpAB
	o.ARPIPTargets, o.NSIP6Targets, o.ARPValidate = []netip.Addr{target1, target2}, []netip.Addr{target6}, bonding.ValidateActive
	s := newSegment(t, o, 2)
	s.run(1000)
	s.alive[target2] = false
	s.run(170)
	want := `{"heard_ms_ago":70,"asked_ms_ago":70,"targets":{"10.1.0.11":70,"10.1.0.12":170,"fd00:1::11":70}}`
	if got, err := json.Marshal(s.slave("eth0").ARP); string(got) != want || err != nil {
		t.Errorf("the active slave: %s, %v, want %s", got, err, want)
	}
	// A backup hears our probes, is asked nothing, and keeps no account of targets.
	if a := s.slave("eth1").ARP; a == nil || a.HeardMsAgo == nil || *a.HeardMsAgo > 100 || a.AskedMsAgo != nil || a.Targets != nil {
		t.Errorf("a backup: %s", text(a))
	}
	s.set("arp_interval", "0")
	if a := s.slave("eth0").ARP; a != nil {
		t.Errorf("without the monitor: %s", text(a))
	}
}
