package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/netnstest"
)

// arpLab is a namespace with a bond of ours and one of Linux's own driver, each
// with an ARP monitor that asks the other.
type arpLab struct {
	*arpLAN
	lab         *lacpLab
	state       string
	linux, ours [2]uint32 // failures when all was well
}

// newARPLab makes both bonds with the links sN of ours and pN of theirs, which
// are joined by bridges: bN and cN are their other ends there. With a switch
// there is one bridge for all, without one each pair of links has its own.
func newARPLab(t *testing.T, withSwitch bool, mode bonding.Mode, validate bonding.ARPValidate) *arpLab {
	t.Helper()
	l := &arpLab{lab: newLACPLab(t, 0, "linux.uml"), state: stateFolder(t)}
	near := l.lab.near
	l.arpLAN = &arpLAN{lan: &lan{t: t, near: near, far: near}}
	near.Bridge("br0")
	near.Bridge("br1")
	args := []string{"start", "peer", "--ns", l.lab.name, "--ip", "10.9.0.1/24"}
	for i := range 2 {
		s, p, b, c := l.lab.ours(i), l.lab.theirs(i), fmt.Sprintf("b%d", i), fmt.Sprintf("c%d", i)
		netnstest.Veth(t, near, s, near, b)
		netnstest.Veth(t, near, p, near, c)
		bridge := "br0"
		if i == 1 && !withSwitch {
			bridge = "br1"
		}
		for _, port := range []string{b, c} {
			near.Run("ip", "link", "set", port, "master", bridge)
		}
		near.Run("ethtool", "-K", s, "tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off")
		args = append(args, "--nic", p)
	}
	// Twelve, since a guest on a busy machine may stand still for a second.
	args = append(args, "mode="+mode.String(), "arp_interval=200", "arp_ip_target=10.9.0.2", "arp_missed_max=12", "arp_validate="+validate.String())
	if out, err := l.lab.script(l.state, "linux-bond.sh", args...); err != nil {
		t.Fatalf("start of the Linux bond: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := l.lab.script(l.state, "linux-bond.sh", "stop", "peer"); err != nil {
			t.Errorf("stop of the Linux bond: %v: %s", err, out)
		}
	})
	l.bond, _ = l.host(bonding.Options{Mode: mode, ARPInterval: 200 * time.Millisecond, ARPMissedMax: 12, ARPValidate: validate,
		ARPIPTargets: []netip.Addr{netip.MustParseAddr("10.9.0.1")}}, slaveSpec{name: "s0", kind: "packet"}, slaveSpec{name: "s1", kind: "packet"})
	events := l.bond.Subscribe(1000)
	t.Cleanup(func() {
		for t.Failed() && len(events.C) > 0 {
			t.Log(<-events.C)
		}
	})
	return l
}

// linuxBond is what Linux says of its bond.
type linuxBond struct {
	active   string // its slave, "eth0" or "eth1"
	up       [2]bool
	failures [2]uint32
}

func (l *arpLab) theirs() (b linuxBond) {
	l.t.Helper()
	bond, slaves := (&linuxPartner{lacpLab: l.lab, state: l.state}).proc()
	b.active = field(bond, "Currently Active Slave")
	for i, s := range strings.Split(slaves, "\nSlave Interface: ") {
		b.up[i] = field(s, "MII Status") == "up"
		b.failures[i] = uint32(number(field(s, "Link Failure Count")))
	}
	return b
}

// awaitEnds waits until the slaves of both ends are up, or down, as given.
func (l *arpLab) awaitEnds(what string, ours, linux [2]bool) {
	l.t.Helper()
	var theirs linuxBond
	s := l.bond.Status()
	defer func() {
		l.t.Logf("%s: ours %s, %s; theirs %+v", what, s.Slaves[0].MIIStatus, s.Slaves[1].MIIStatus, theirs)
	}()
	eventually(l.t, what, func() bool {
		s = l.bond.Status()
		theirs = l.theirs()
		return [2]bool{up(s, 0), up(s, 1)} == ours && theirs.up == linux
	})
}

// wantFailures checks how often the slaves of both ends have failed since all
// was well.
func (l *arpLab) wantFailures(ours, linux [2]uint32) {
	l.t.Helper()
	gotOurs, gotLinux := l.failures()
	for i := range 2 {
		if got := gotOurs[i] - l.ours[i]; got != ours[i] {
			l.t.Errorf("our slave %d failed %d times, want %d", i, got, ours[i])
		}
		if got := gotLinux[i] - l.linux[i]; got != linux[i] {
			l.t.Errorf("Linux's slave %d failed %d times, want %d", i, got, linux[i])
		}
	}
}

// settle waits for all to be well and to stay so: at first each end searches for
// the other, by one slave after the other.
func (l *arpLab) settle() {
	l.t.Helper()
	both := [2]bool{true, true}
	for end := time.Now().Add(patience); ; {
		l.awaitEnds("all well", both, both)
		ours, linux := l.failures()
		time.Sleep(2 * time.Second)
		if l.ours, l.linux = l.failures(); ours == l.ours && linux == l.linux {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("not at rest: ours failed %v, then %v times, Linux's %v, then %v", ours, l.ours, linux, l.linux)
		}
	}
}

func (l *arpLab) failures() (ours, linux [2]uint32) {
	l.t.Helper()
	for i, s := range l.bond.Status().Slaves {
		ours[i] = s.LinkFailureCount
	}
	return ours, l.theirs().failures
}

// ourActive and linuxActive are the active slaves' numbers.
func (l *arpLab) ourActive() int   { return number(strings.TrimPrefix(l.bond.Status().ActiveSlave, "s")) }
func (l *arpLab) linuxActive() int { return number(strings.TrimPrefix(l.theirs().active, "eth")) }

// cutActive has the active link of an end lose what comes to it, and mends it
// once that has failed over. The other end is well all the time.
func (l *arpLab) cutActive(linux bool, failed *[2]uint32) {
	l.t.Helper()
	both := [2]bool{true, true}
	k, port := l.ourActive(), "b"
	if linux {
		k, port = l.linuxActive(), "c"
	}
	port += fmt.Sprint(k)
	block(l.near, port)
	if linux {
		l.awaitEnds(port+" is cut", both, without(k))
		if got := l.linuxActive(); got != 1-k {
			l.t.Errorf("%s is cut: Linux's active slave is %d", port, got)
		}
	} else {
		l.awaitEnds(port+" is cut", without(k), both)
		if got := l.ourActive(); got != 1-k {
			l.t.Errorf("%s is cut: our active slave is %d", port, got)
		}
	}
	unblock(l.near, port)
	l.awaitEnds(port+" is mended", both, both)
	failed[k]++
}

// without is two slaves of which one is down.
func without(out int) [2]bool { return [2]bool{out != 0, out != 1} }

// Linux's bond and ours, each with an ARP monitor that asks the other. In
// active-backup at one switch both stay up, and each fails over when its own
// active link is cut inward, with its carrier, while the other end does not. (A
// link that is cut outward alone is not found: see docs/monitoring.md.)
func TestARPMonitorWithLinuxBond(t *testing.T) {
	t.Run("active-backup at a switch", func(t *testing.T) {
		t.Parallel()
		l := newARPLab(t, true, bonding.ActiveBackup, bonding.ValidateAll)
		l.settle()
		var ours, linux [2]uint32
		l.cutActive(false, &ours)
		l.cutActive(true, &linux)
		l.wantFailures(ours, linux)
	})
	// On links of their own both ends hear the other's requests on each.
	t.Run("balance-xor on two links", func(t *testing.T) {
		t.Parallel()
		l := newARPLab(t, false, bonding.BalanceXOR, bonding.ValidateNone)
		l.settle()
		both := [2]bool{true, true}
		block(l.near, "c0")
		l.awaitEnds("Linux's first link is deaf", both, without(0))
		block(l.near, "b0")
		l.awaitEnds("ours is, too", without(0), without(0))
		unblock(l.near, "b0")
		l.awaitEnds("ours is mended", both, without(0))
		unblock(l.near, "c0")
		l.awaitEnds("theirs is", both, both)
		l.wantFailures([2]uint32{1, 0}, [2]uint32{1, 0})
	})
}
