package main

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/probe"
	"bondstack/link/linktest"
	"bondstack/link/netnstest"
	"bondstack/link/packet"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// twoLinks is a bond with two links that do not meet: at their other ends p0
// and p1 a kernel answers on each for 10.9.0.1 and fd00:9::1, and a stranger
// may broadcast.
type twoLinks struct {
	*lan
	bond      *bonding.Bond
	strangers [2]*packet.Endpoint
}

func newTwoLinks(t *testing.T, o bonding.Options) *twoLinks {
	t.Helper()
	l := &twoLinks{lan: &lan{t: t, near: netnstest.New(t), far: netnstest.New(t)}}
	l.near.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	// Who asks on a link is answered on it.
	l.far.Sysctl("net.ipv4.conf.all.rp_filter", "0")
	l.far.Sysctl("net.ipv4.conf.default.rp_filter", "0")
	for i := range l.strangers {
		p := fmt.Sprintf("p%d", i)
		netnstest.Veth(t, l.near, fmt.Sprintf("s%d", i), l.far, p)
		l.addAddresses(p)
		l.strangers[i] = openIn(t, l.far, p)
	}
	l.bond, _ = l.host(o, slaveSpec{name: "s0", kind: "packet"}, slaveSpec{name: "s1", kind: "packet"})
	l.awaitVerdict("the start", "up")
	return l
}

// addAddresses gives an interface what it loses with its link: the IPv6 address,
// and the way by which it takes an IPv4 request for one of its own network.
func (l *twoLinks) addAddresses(p string) {
	l.far.Run("ip", "addr", "replace", "10.9.0.1/24", "dev", p)
	l.far.Run("ip", "addr", "replace", "fd00:9::1/64", "dev", p, "nodad")
}

func openIn(t *testing.T, ns *netnstest.Namespace, name string) (ep *packet.Endpoint) {
	t.Helper()
	var err error
	ns.Do(func() { ep, err = packet.New(name, packet.Options{}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ep.Close)
	return ep
}

// awaitVerdict waits until slave s0 is up, by the word of each monitor, or down,
// and s1 up.
func (l *twoLinks) awaitVerdict(what, want string) {
	l.t.Helper()
	eventually(l.t, fmt.Sprintf("%s: s0 is %s, s1 up", what, want), func() bool {
		s := l.bond.Status().Slaves
		for _, verdict := range s[0].Monitors {
			if want == "up" && verdict != "up" && verdict != "unknown" {
				return false
			}
		}
		return s[0].MIIStatus == want && s[1].MIIStatus == "up"
	})
}

// broadcasts sends 1,000 frames a second from a stranger until it is stopped.
func broadcasts(stranger netstack.LinkEndpoint) (stop func()) {
	frames := make([][]byte, 10)
	for i := range frames {
		frames[i] = probe.ARPRequest(probe.MAC{2, 0, 0, 0, 9, 9}, netip.MustParseAddr("10.9.0.99"), netip.AddrFrom4([4]byte{10, 9, 0, byte(100 + i)}), nil)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				linktest.Write(stranger, frames...)
			case <-end:
				return
			}
		}
	}()
	return func() { close(end); <-ended }
}

// linkFailure is something that happens to the link of s0, in a noise of strangers.
type linkFailure struct {
	name       string
	fail, mend func(l *twoLinks)
}

var (
	outwardCut = linkFailure{"cut outward", func(l *twoLinks) { block(l.near, "s0") }, func(l *twoLinks) { unblock(l.near, "s0") }}
	// The stranger's noise is cut as well: it comes by the same queue.
	inwardCut  = linkFailure{"cut inward", func(l *twoLinks) { block(l.far, "p0") }, func(l *twoLinks) { unblock(l.far, "p0") }}
	deadTarget = linkFailure{"dead target", func(l *twoLinks) {
		l.far.Sysctl("net.ipv4.conf.p0.arp_ignore", "8") // answer for no address
		l.far.Run("ip", "addr", "del", "fd00:9::1/64", "dev", "p0")
	}, func(l *twoLinks) {
		l.far.Sysctl("net.ipv4.conf.p0.arp_ignore", "0")
		l.addAddresses("p0")
	}}
	lostCarrier = linkFailure{"lost carrier", func(l *twoLinks) { l.far.Down("p0") }, func(l *twoLinks) { l.far.Up("p0"); l.addAddresses("p0") }}

	linkFailures = []linkFailure{outwardCut, inwardCut, deadTarget, lostCarrier}
)

// Each monitor, with a kernel as the peer on links that do not meet, finds the
// failures of a link that it can, and no others: nor does noise at 1,000 frames a
// second make one or hide one, nor does the other slave ever fail.
func TestMonitorsWithKernel(t *testing.T) {
	v4, v6 := []netip.Addr{netip.MustParseAddr("10.9.0.1")}, []netip.Addr{netip.MustParseAddr("fd00:9::1")}
	const interval = 100 * time.Millisecond
	silence, carrier := "cut outward, cut inward, dead target, lost carrier", "lost carrier"
	for _, tt := range []struct {
		name  string
		o     bonding.Options
		finds string
	}{
		{"events", bonding.Options{Mode: bonding.ActiveBackup, MIIMon: time.Minute}, carrier},
		{"miimon", bonding.Options{Mode: bonding.BalanceXOR, MIIMon: interval}, carrier},
		{"hellos that nobody answers", bonding.Options{Mode: bonding.BalanceXOR, ProbeInterval: 10 * time.Millisecond}, carrier},
		{"ARP", bonding.Options{Mode: bonding.BalanceXOR, ARPInterval: interval, ARPIPTargets: v4, ARPValidate: bonding.ValidateAll}, silence},
		{"NS", bonding.Options{Mode: bonding.BalanceXOR, ARPInterval: interval, NSIP6Targets: v6, ARPValidate: bonding.ValidateAll}, silence},
		// Any frame counts, and noise hides what the targets do not say.
		{"ARP without validation", bonding.Options{Mode: bonding.BalanceXOR, ARPInterval: interval, ARPIPTargets: v4}, "cut inward, lost carrier"},
		{"any of ARP and miimon", bonding.Options{Mode: bonding.BalanceRR, MonitorRule: bonding.MonitorAny, MIIMon: interval,
			ARPInterval: interval, ARPIPTargets: v4, ARPValidate: bonding.ValidateAll}, silence},
		{"all of ARP and miimon", bonding.Options{Mode: bonding.Broadcast, MonitorRule: bonding.MonitorAll, MIIMon: interval,
			ARPInterval: interval, ARPIPTargets: v4, ARPValidate: bonding.ValidateAll}, carrier},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("needs root: makes network namespaces")
			}
			t.Parallel()
			tt.o.ARPMissedMax = 10 // a busy machine may be late
			l := newTwoLinks(t, tt.o)
			for _, s := range l.strangers {
				t.Cleanup(broadcasts(s))
			}
			before := l.bond.Status().Slaves
			for _, f := range linkFailures {
				l.suffer(f, strings.Contains(tt.finds, f.name))
			}
			after := l.bond.Status().Slaves
			for i, want := range []int{len(strings.Split(tt.finds, ", ")), 0} {
				if got := after[i].LinkFailureCount - before[i].LinkFailureCount; got != uint32(want) {
					t.Errorf("slave %s failed %d times, want %d", after[i].Name, got, want)
				}
			}
		})
	}
}

// suffer has a failure come and go, and checks whether it is found.
func (l *twoLinks) suffer(f linkFailure, found bool) {
	l.t.Helper()
	f.fail(l)
	start := time.Now()
	if found {
		l.awaitVerdict(f.name, "down")
		l.t.Logf("%s: found after %v", f.name, time.Since(start).Round(time.Millisecond))
	} else {
		time.Sleep(1300 * time.Millisecond) // in which it would be found
		if got := l.bond.Status().Slaves[0].MIIStatus; got != "up" {
			l.t.Errorf("%s, which cannot be found: s0 is %s", f.name, got)
		}
	}
	f.mend(l)
	l.awaitVerdict(f.name+" mended", "up")
}

// Fast probes of two bonds on the kernel's links: a cut either way is found by
// both ends, on that link alone, in noise; where nothing is heard any more, one
// slave stays up all the same.
func TestFastProbesOverKernelLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	t.Parallel()
	near, far := netnstest.New(t), netnstest.New(t)
	for i := range 2 {
		netnstest.Veth(t, near, fmt.Sprintf("s%d", i), far, fmt.Sprintf("p%d", i))
	}
	var bonds [2]*bonding.Bond
	for i, ns := range []*netnstest.Namespace{near, far} {
		b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup, ProbeInterval: 150 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		bonds[i] = b
		for k := range 2 {
			if err := b.Enslave(fmt.Sprintf("e%d", k), openIn(t, ns, fmt.Sprintf("%c%d", "sp"[i], k)), bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		b.Attach(&linktest.Counter{})
	}
	await := func(what, s0 string) {
		t.Helper()
		eventually(t, what, func() bool {
			for _, b := range bonds {
				s := b.Status().Slaves
				if s[0].MIIStatus != s0 || s[1].MIIStatus != "up" || s[1].Probe.Verdict != "alive" {
					return false
				}
			}
			return true
		})
	}
	await("all to be well", "up")
	eventually(t, "all to be heard", func() bool {
		return bonds[0].Status().Slaves[0].Probe.Verdict == "alive" && bonds[1].Status().Slaves[0].Probe.Verdict == "alive"
	})
	t.Cleanup(broadcasts(openIn(t, far, "p0")))
	t.Cleanup(broadcasts(openIn(t, near, "s0")))
	for _, cut := range []struct {
		ns   *netnstest.Namespace
		name string
	}{{near, "s0"}, {far, "p0"}} {
		block(cut.ns, cut.name)
		start := time.Now()
		await(cut.name+" cut: both ends find it", "down")
		t.Logf("%s cut: both ends have found it after %v", cut.name, time.Since(start).Round(time.Millisecond))
		unblock(cut.ns, cut.name)
		await(cut.name+" mended", "up")
	}
	for _, b := range bonds {
		if n := b.Status().Slaves[1].LinkFailureCount; n != 0 {
			t.Errorf("slave e1 failed %d times", n)
		}
	}
	for k := range 2 {
		block(near, fmt.Sprintf("s%d", k))
		block(far, fmt.Sprintf("p%d", k))
	}
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for i, b := range bonds {
			if st := b.Status(); !st.Carrier || st.ActiveSlave == "" {
				t.Fatalf("in silence bond %d has carrier %t, active slave %q: %+v", i, st.Carrier, st.ActiveSlave, st.Slaves)
			}
		}
	}
}
