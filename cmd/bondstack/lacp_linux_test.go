package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// run starts our side, with the given options of LACP.
func (l *lacpLab) run(options ...string) {
	l.t.Helper()
	args := []string{"--mode", "802.3ad", "-o", "xmit_hash_policy=layer3+4", "--address", "10.9.0.2/24", "--serve", "echo:7"}
	for i := range l.n {
		args = append(args, "--slave", l.ours(i))
	}
	for _, o := range options {
		args = append(args, "-o", o)
	}
	kinds := map[string]openFunc{}
	for kind, open := range linkKinds {
		kinds[kind] = func(name string, o linkOptions) (ep netstack.LinkEndpoint, warnings []string, err error) {
			l.near.Do(func() { ep, warnings, err = open(name, o) })
			return ep, warnings, err
		}
	}
	l.us = start(l.t, kinds, args...)
}

// views are what our side says of its ports.
func (l *lacpLab) views() []lacpView {
	l.t.Helper()
	var list []lacpView
	for _, s := range l.us.status().Slaves {
		list = append(list, lacpView{ourEnd(s.LACP.Actor), ourEnd(s.LACP.Partner), s.MIIStatus == "up", s.State == "active" && s.Receives})
	}
	return list
}

func ourEnd(e bonding.LACPEnd) lacpEnd {
	return lacpEnd{e.System, int(e.SystemPriority), int(e.Key), int(e.Port), int(e.PortPriority), stateLetters(e.State)}
}

func stateLetters(bits uint8) string {
	var letters string
	for i, letter := range "ATGSCDFE" {
		if bits&(1<<i) != 0 {
			letters += string(letter)
		}
	}
	return letters
}

// awaitPorts waits until both sides say that exactly the given ports work, and
// returns how long that took.
func (l *lacpLab) awaitPorts(p partner, what string, works ...bool) time.Duration {
	l.t.Helper()
	begin := time.Now()
	var ours, theirs []lacpView
	agreed := false
	defer func() {
		if !agreed {
			l.t.Logf("%s: ours %+v\ntheirs %+v", what, ours, theirs)
		}
	}()
	eventually(l.t, what+": both sides agree", func() bool {
		ours = l.views()
		if !working(ours, works) {
			return false
		}
		theirs = p.ports()
		agreed = working(theirs, works)
		return agreed
	})
	return time.Since(begin)
}

func working(views []lacpView, works []bool) bool {
	if len(views) != len(works) {
		return false
	}
	for i := range views {
		if views[i].works != works[i] {
			return false
		}
	}
	return true
}

// all is n times true.
func all(n int) []bool {
	works := make([]bool, n)
	for i := range works {
		works[i] = true
	}
	return works
}

// but is all with one port that does not work.
func but(n, out int) []bool {
	works := all(n)
	works[out] = false
	return works
}

// agreeOnEach waits until each side knows of the other what that says of
// itself, on every port that works.
func (l *lacpLab) agreeOnEach(p partner) {
	l.t.Helper()
	var wrong string
	defer func() {
		if wrong != "" {
			l.t.Logf("the sides disagree: %s", wrong)
		}
	}()
	eventually(l.t, "what each side knows of the other is what that says", func() bool {
		wrong = ""
		if a := l.us.status().LACP.Aggregator; a == nil || a.Ports != p.usable() {
			wrong = fmt.Sprintf("our aggregator is %+v, theirs has %d ports", a, p.usable())
			return false
		}
		ours, theirs := l.views(), p.ports()
		for i := range theirs {
			switch {
			case ours[i].own != theirs[i].other:
				wrong = fmt.Sprintf("port %d: we say %+v, they know %+v", i, ours[i].own, theirs[i].other)
				return false
			case theirs[i].own != ours[i].other:
				wrong = fmt.Sprintf("port %d: they say %+v, we know %+v", i, theirs[i].own, ours[i].other)
				return false
			}
		}
		return true
	})
}

// whileExchanging has a partner exchange data with us while something happens,
// and wants it all to arrive.
func (l *lacpLab) whileExchanging(p partner, what string, deed func()) {
	l.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.exchange() }()
	deed()
	if err := <-done; err != nil {
		l.t.Errorf("%s: exchange: %v", what, err)
	}
}

// The links are cut so that no send of the partner's fails: a user-mode guest's
// network driver does not bear that. Once its host interface is administratively
// down it refuses every frame for good, even when the interface is up again; the
// frame stays in the guest's queue, and Linux's TCP never sends a segment again
// that still is in a queue of its own host. So a connection whose first segment
// after the cut went that way, before the guest's bond knew of it, hung for ever.
// Where the host's queueing discipline refuses the frames, the driver tries again
// without end, and the guest panics some seconds later.

// cut takes the carrier of a link away from the partner. The interface that goes
// down is ours.
func (l *lacpLab) cut(i int) { l.near.Down(l.ours(i)) }

// cutOneWay loses what an interface sends, and leaves its carrier: the frames go
// to the loopback device, which nobody reads.
func (l *lacpLab) cutOneWay(name string) (restore func()) {
	l.t.Helper()
	l.near.Run("tc", "qdisc", "add", "dev", name, "clsact")
	l.near.Run("tc", "filter", "add", "dev", name, "egress", "u32", "match", "u32", "0", "0",
		"action", "mirred", "egress", "redirect", "dev", "lo")
	return func() { l.near.Run("tc", "qdisc", "del", "dev", name, "clsact") }
}

// linksDown takes all links down and waits until both sides have noticed.
func (l *lacpLab) linksDown(p partner) {
	l.t.Helper()
	for i := range l.n {
		l.cut(i)
	}
	l.awaitPorts(p, "all links down", make([]bool, l.n)...)
}

func (l *lacpLab) linksUp() {
	l.t.Helper()
	for i := range l.n {
		l.near.Up(l.ours(i))
	}
}

// awaitLinks waits until both sides say that all links are up: a guest is told
// of each by a script.
func (l *lacpLab) awaitLinks(p partner) {
	l.t.Helper()
	eventually(l.t, "all links up", func() bool {
		down := func(v lacpView) bool { return !v.up }
		return !slices.ContainsFunc(l.views(), down) && !slices.ContainsFunc(p.ports(), down)
	})
}

// converge takes all links down and up, and prints how long it takes from then to
// all ports working, by both sides' word: under 3 s where the machine is idle. The
// bound itself is tested on a manual clock, in package bonding.
func (l *lacpLab) converge(p partner) {
	l.t.Helper()
	l.linksDown(p)
	l.linksUp()
	l.awaitLinks(p)
	l.t.Logf("all %d ports work on both sides %v after the links were up", l.n, l.awaitPorts(p, "links up", all(l.n)...))
}

// exercise is what every partner has to bear: links up together, data both
// ways, a port cut and restored, with agreement each time. More is: a port
// cut one way, each way, and the partner restarted.
func (l *lacpLab) exercise(p partner, rate string, more bool) {
	l.t.Helper()
	p.start()
	l.t.Cleanup(p.stop)
	l.run("lacp_rate=" + rate)
	l.t.Logf("first agreement %v after our start", l.awaitPorts(p, "start", all(l.n)...))
	l.converge(p)
	l.agreeOnEach(p)
	last := l.n - 1
	l.whileExchanging(p, "port cut", func() {
		l.cut(last)
		l.t.Logf("cut: agreed after %v", l.awaitPorts(p, "port cut", but(l.n, last)...))
	})
	l.near.Up(l.ours(last))
	l.t.Logf("restored: agreed after %v", l.awaitPorts(p, "port restored", all(l.n)...))
	l.agreeOnEach(p)
	if more {
		l.exerciseMore(p)
	}
	l.whileExchanging(p, "at the end", func() {})
}

func (l *lacpLab) exerciseMore(p partner) {
	l.t.Helper()
	for _, way := range []string{l.ours(0), l.theirs(0)} {
		l.whileExchanging(p, way+" cut one way", func() {
			restore := l.cutOneWay(way)
			l.t.Logf("%s cut one way: agreed after %v", way, l.awaitPorts(p, way+" cut one way", but(l.n, 0)...))
			// Now, before both sides have given up and speak every 30 s.
			restore()
			l.t.Logf("%s restored: agreed after %v", way, l.awaitPorts(p, way+" restored", all(l.n)...))
		})
	}
	p.stop()
	p.start()
	l.t.Logf("partner restarted: agreed after %v", l.awaitPorts(p, "partner restarted", all(l.n)...))
	l.agreeOnEach(p)
}

// Real partners: Linux's own driver and Open vSwitch.
func TestLACPPartners(t *testing.T) {
	for _, rate := range []string{"fast", "slow"} {
		for _, n := range []int{2, 4} {
			t.Run(fmt.Sprintf("Linux, %s, %d ports", rate, n), func(t *testing.T) {
				t.Parallel()
				l := newLACPLab(t, n, "linux.uml")
				l.exercise(&linuxPartner{l, rate, stateFolder(t)}, rate, rate == "fast" && n == 2)
			})
		}
		t.Run("Open vSwitch, "+rate, func(t *testing.T) {
			t.Parallel()
			l := newLACPLab(t, 2, "ovs-vswitchd")
			l.exercise(&ovsPartner{l, rate, stateFolder(t)}, rate, rate == "fast")
		})
	}
}
