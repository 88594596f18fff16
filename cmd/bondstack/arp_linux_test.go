package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/probe"
	"bondstack/link/linktest"
	"bondstack/link/netnstest"
	"bondstack/link/packet"
)

// arpLAN is a lan with a bond in active-backup whose ARP monitor asks the
// kernel, and a stranger at the same bridge.
type arpLAN struct {
	*lan
	bond     *bonding.Bond
	stranger *packet.Endpoint
}

func newARPLAN(t *testing.T, o bonding.Options) *arpLAN {
	t.Helper()
	l := newLAN(t)
	stranger := netnstest.New(t)
	netnstest.Veth(t, stranger, "x0", l.far, "x1")
	l.far.Run("ip", "link", "set", "x1", "master", "br0")
	a := &arpLAN{lan: l}
	var err error
	stranger.Do(func() { a.stranger, err = packet.New("x0", packet.Options{}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.stranger.Close)
	// Five: on a busy machine an answer may be two intervals late.
	o.Mode, o.ARPInterval, o.ARPMissedMax = bonding.ActiveBackup, 100*time.Millisecond, 5
	a.bond, _ = l.host(o, slaveSpec{name: "s0", kind: "packet"}, slaveSpec{name: "s1", kind: "packet"})
	a.await("both slaves to be up", func(s bonding.Status) bool { return up(s, 0) && up(s, 1) && s.ActiveSlave != "" })
	return a
}

func up(s bonding.Status, slave int) bool { return s.Slaves[slave].MIIStatus == "up" }

// await waits for the status to be as it has to become.
func (a *arpLAN) await(what string, ok func(bonding.Status) bool) {
	a.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		s := a.bond.Status()
		if ok(s) {
			return
		}
		if time.Now().After(end) {
			a.t.Fatalf("waited for %s; active is %q, slaves are %+v", what, s.ActiveSlave, s.Slaves)
		}
	}
}

// noise has the stranger broadcast 1,000 frames a second for a time. It returns by
// how much it was late at most.
func (a *arpLAN) noise(d time.Duration) (late time.Duration) {
	a.t.Helper()
	frames := make([][]byte, 10)
	for i := range frames {
		frames[i] = probe.ARPRequest(probe.MAC{2, 0, 0, 0, 9, 9}, netip.MustParseAddr("10.9.0.99"), netip.AddrFrom4([4]byte{10, 9, 0, byte(100 + i)}), nil)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	for last := begin; last.Sub(begin) < d; {
		linktest.Write(a.stranger, frames...)
		<-tick.C
		now := time.Now()
		late = max(late, now.Sub(last))
		last = now
	}
	return late
}

// bears checks that noise makes no slave fail. What fails while the machine stands
// still for two intervals says nothing, and is tried again.
func (a *arpLAN) bears() {
	a.t.Helper()
	const attempts = 5
	for range attempts {
		before := a.bond.Status()
		late := a.noise(2 * time.Second)
		after := a.bond.Status()
		failed := slices.ContainsFunc([]int{0, 1}, func(i int) bool {
			return after.Slaves[i].LinkFailureCount != before.Slaves[i].LinkFailureCount || !up(after, i)
		})
		switch {
		case !failed:
			return
		case late < 200*time.Millisecond:
			a.t.Errorf("in noise slaves failed: %+v, before %+v", after.Slaves, before.Slaves)
			return
		}
		a.t.Logf("the machine stood still for %v", late)
		a.await("both slaves to be up", func(s bonding.Status) bool { return up(s, 0) && up(s, 1) })
	}
	a.t.Errorf("the machine stood still in all of %d attempts", attempts)
}

// block loses every frame that an interface sends, while its carrier stays: its
// queue has no room for any frame.
func block(ns *netnstest.Namespace, name string) {
	ns.Run("tc", "qdisc", "add", "dev", name, "root", "handle", "1:", "tbf", "rate", "8bit", "burst", "10", "latency", "1ms")
}

func unblock(ns *netnstest.Namespace, name string) {
	ns.Run("tc", "qdisc", "del", "dev", name, "root")
}

// The ARP monitor with a kernel as the peer: foreign broadcasts at 1,000 frames a
// second cause no failure, and hide none; a link that is cut one way, either
// way, with its carrier, is found, and so is its return; with the target dead
// behind links that live no slave is active until it is back.
func TestARPMonitorWithKernel(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    bonding.Options
		// target takes the target away, or gives it back.
		away, back []string
	}{
		{"IPv4", bonding.Options{ARPIPTargets: []netip.Addr{netip.MustParseAddr("10.9.0.1")}, ARPValidate: bonding.ValidateAll},
			[]string{"addr", "del", "10.9.0.1/24", "dev", "br0"}, []string{"addr", "add", "10.9.0.1/24", "dev", "br0"}},
		{"IPv4, any of it and miimon", bonding.Options{ARPIPTargets: []netip.Addr{netip.MustParseAddr("10.9.0.1")}, ARPValidate: bonding.ValidateAll, MIIMon: 100 * time.Millisecond, MonitorRule: bonding.MonitorAny},
			[]string{"addr", "del", "10.9.0.1/24", "dev", "br0"}, []string{"addr", "add", "10.9.0.1/24", "dev", "br0"}},
		{"IPv6", bonding.Options{NSIP6Targets: []netip.Addr{netip.MustParseAddr("fd00:9::1")}, ARPValidate: bonding.ValidateAll},
			[]string{"addr", "del", "fd00:9::1/64", "dev", "br0"}, []string{"addr", "add", "fd00:9::1/64", "dev", "br0", "nodad"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("needs root: makes network namespaces")
			}
			t.Parallel()
			a := newARPLAN(t, tt.o)
			a.bears()
			for _, outward := range []bool{true, false} {
				s := a.bond.Status()
				active := 0
				if s.ActiveSlave == "s1" {
					active = 1
				}
				ns, name := a.far, fmt.Sprintf("p%d", active)
				if outward {
					ns, name = a.near, s.ActiveSlave
				}
				block(ns, name)
				start := time.Now()
				go a.noise(2 * time.Second)
				other := fmt.Sprintf("s%d", 1-active)
				a.await("the failover", func(s bonding.Status) bool { return s.ActiveSlave == other })
				t.Logf("cut outward %t: failover after %v", outward, time.Since(start).Round(time.Millisecond))
				if u := a.bond.Status().Slaves[active].Usable; !u {
					t.Errorf("the cut took the carrier")
				}
				unblock(ns, name)
				a.await("the slave's return", func(s bonding.Status) bool { return up(s, active) })
			}
			a.far.Run("ip", tt.away...)
			a.await("the loss of the target", func(s bonding.Status) bool { return s.ActiveSlave == "" && !s.Carrier })
			a.noise(500 * time.Millisecond)
			if s := a.bond.Status(); s.ActiveSlave != "" {
				t.Errorf("noise makes %s active", s.ActiveSlave)
			}
			a.far.Run("ip", tt.back...)
			a.await("the return of the target", func(s bonding.Status) bool { return s.ActiveSlave != "" && up(s, 0) && up(s, 1) })
		})
	}
}
