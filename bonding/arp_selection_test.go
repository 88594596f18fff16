package bonding_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

// The sequence of priorities and primary of Linux's selftest makes the same
// choices with the ARP monitor as with miimon, with an IPv4 target (T13) and an
// IPv6 one (T14): a slave that is down keeps its carrier here, and loses all
// frames.
func TestARPSelection(t *testing.T) {
	for family, target := range map[string]netip.Addr{"IPv4": target1, "IPv6": target6} {
		for _, v := range []bonding.ARPValidate{bonding.ValidateNone, bonding.ValidateActive, bonding.ValidateBackup, bonding.ValidateAll,
			bonding.ValidateFilter, bonding.ValidateFilterActive, bonding.ValidateFilterBackup} { // T15, T16
			t.Run(fmt.Sprintf("%s/%s", family, v), func(t *testing.T) {
				o := bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth1", ARPInterval: 100 * time.Millisecond, ARPValidate: v}
				if target.Is4() {
					o.ARPIPTargets = []netip.Addr{target}
				} else {
					o.NSIP6Targets = []netip.Addr{target}
				}
				s := newSegment(t, o, 3)
				for _, st := range []step{
					{"eth0 prio 0", "eth1"}, {"eth1 prio 10", "eth1"}, {"eth2 prio 11", "eth1"}, {"active_slave=eth1", "eth1"},
					{"eth1 down", "eth2"}, {"eth2 down", "eth0"},
					{"primary_reselect=0", "eth0"}, {"eth2 up", "eth2"}, {"eth2 down", "eth0"},
					{"primary_reselect=1", "eth0"}, {"eth2 up", "eth0"}, {"eth2 down", "eth0"},
					{"primary_reselect=2", "eth0"}, {"eth2 up", "eth0"}, {"eth1 up", "eth0"}, {"eth0 down", "eth1"},
					{"eth0 up", "eth1"}, {"eth1 down", "eth2"}, {"primary_reselect=0", "eth2"}, {"eth1 up", "eth1"},
					{"eth0 prio 1000000", "eth1"}, {"eth1 prio 0", "eth1"}, {"eth2 prio -50", "eth1"},
				} {
					switch name, verb, _ := strings.Cut(st.do, " "); verb {
					case "down":
						s.cut[name] = "both"
					case "up":
						s.cut[name] = ""
					default:
						s.do(st.do)
					}
					s.run(1000)
					s.wantActive(st.do, st.active)
				}
			})
		}
	}
}

// Announcements with the ARP monitor: num_grat_arp of them, an interval apart,
// from the failover on, and from the return of the carrier (A13).
func TestARPAnnouncements(t *testing.T) {
	o := arpAB
	o.NumGratARP = 3
	s := newSegment(t, o, 2)
	var at []int
	t.Cleanup(s.SubscribeNotifyPeers(func() { at = append(at, int((s.now() - s.start).Milliseconds())) }))
	s.run(2000)
	s.cut["eth0"] = "both"
	s.mark()
	at = nil
	s.run(1000)
	if got := fmt.Sprint(at); got != "[300 400 500]" {
		t.Errorf("after the failover: %s", got)
	}
	s.alive[target1] = false
	s.cut["eth0"] = ""
	s.runUntil(func() bool { return s.Status().ActiveSlave == "" })
	s.alive[target1] = true
	s.mark()
	at = nil
	took := s.runUntil(func() bool { return s.Status().ActiveSlave != "" })
	s.run(1000)
	if got, want := fmt.Sprint(at), fmt.Sprint([]int{took, took + 100, took + 200}); got != want {
		t.Errorf("after the return: %s, want %s", got, want)
	}
}

// A slave that cannot be written to is down at once in the modes that spread,
// and disturbs no other.
func TestARPBalancedLinkGone(t *testing.T) {
	s := newSegment(t, bonding.Options{Mode: bonding.BalanceRR}, 1)
	s.alone = true
	s.run(500)
	l := s.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	s.run(500)
	l.Fail(goneErrors[0])
	s.run(300)
	s.wantMII("eth1 cannot be written to", "up,down")
	s.wantFailures("eth0", 0)
	l.Fail(nil)
	s.run(500)
	s.wantMII("eth1 can again", "up,up")
}
