package echo_test

import (
	"slices"
	"testing"
	"time"

	"bondstack/bonding/echo"
)

// A link that is cut one way is found within 35 ms of the last frame received by
// the side that hears nothing, and by the other as soon as that tells it.
func TestOneWay(t *testing.T) {
	for offset := time.Duration(0); offset < 10*ms; offset += 700 * time.Microsecond {
		w, a, b, links := pair(t)
		w.run(offset, nil)
		links[0].cut[[2]*node{a, b}] = true
		var foundB, foundA echo.Instant
		w.run(60*ms, func() {
			if foundB == 0 && len(b.down()) > 0 {
				foundB = w.now
			}
			if foundA == 0 && len(a.down()) > 0 {
				foundA = w.now
			}
		})
		if d := foundB - b.heard[0]; foundB == 0 || d > 35*ms || d < 25*ms {
			t.Errorf("cut after %v: the side that hears nothing found it after %v", offset, d)
		}
		if d := foundA - foundB; foundA == 0 || d < 0 || d > ms {
			t.Errorf("cut after %v: the other side found it %v later", offset, d)
		}
		w.want("cut", a, echo.NotHeard, echo.Alive)
		w.want("cut", b, echo.NothingHeard, echo.Alive)
		delete(links[0].cut, [2]*node{a, b})
		w.run(60*ms, nil)
		w.want("mended", a, echo.Alive, echo.Alive)
		w.want("mended", b, echo.Alive, echo.Alive)
	}
}

// Nothing is found where nothing failed: with delays up to those of a long link,
// with one hello in five lost, and with two in a row.
func TestNoFalseAlarm(t *testing.T) {
	w, a, b, links := pair(t)
	alarm := func() {
		if len(a.down())+len(b.down()) > 0 {
			t.Fatalf("at %v: ports %v of a and %v of b are down", w.now, a.down(), b.down())
		}
	}
	w.latency = func() time.Duration { return 20*ms + time.Duration(w.rnd.IntN(2000))*time.Microsecond }
	w.run(2*time.Second, alarm)
	w.latency = func() time.Duration { return 100 * time.Microsecond }
	w.run(100*ms, alarm)
	for range 100 {
		links[0].cut[[2]*node{a, b}] = true // two hellos are lost, or one
		w.run(15*ms, alarm)
		delete(links[0].cut, [2]*node{a, b})
		w.run(25*ms, alarm)
	}
}

// A peer that never spoke, or that stops with a farewell, takes nothing down.
func TestSilentFromTheStart(t *testing.T) {
	w := newWorld(t)
	links := []*segment{newSegment(), newSegment()}
	a := w.node("a", 10*ms, links...)
	w.run(time.Second, nil)
	w.want("alone", a, echo.Unknown, echo.Unknown)
	b := w.node("b", 10*ms, links...)
	w.run(50*ms, nil)
	w.want("with b", a, echo.Alive, echo.Alive)
	b.m.RemovePort(w.now, 1)
	b.stopped = true
	w.run(ms, nil)
	w.want("after a farewell", a, echo.Unknown, echo.Alive)
	if n := len(a.m.Peers(1)); n != 0 {
		t.Errorf("%d peers after a farewell", n)
	}
	addArcs(w)
}

// A peer that dies is no failure of any port, and no port goes down for a moment
// even; nor does it with noise on one.
func TestDeadPeer(t *testing.T) {
	for _, noise := range []bool{false, true} {
		w, a, b, links := pair(t)
		w.run(4*ms, nil)
		b.stopped = true
		w.run(2*time.Second, func() {
			if noise && w.rnd.IntN(200) == 0 {
				links[0].carry(nil, 0, nil)
			}
			if len(a.down()) > 0 {
				t.Fatalf("noise %v: port %v is down at %v", noise, a.down(), w.now)
			}
		})
		w.want("dead", a, echo.Unknown, echo.Unknown)
		b.stopped = false
		w.run(100*ms, nil)
		w.want("alive again", a, echo.Alive, echo.Alive)
	}
}

// A peer that does not hear us and then dies, or leaves with a farewell, leaves
// nothing behind but what was true.
func TestDeafPeerDies(t *testing.T) {
	for _, farewell := range []bool{false, true} {
		w, a, b, links := pair(t)
		links[0].cut[[2]*node{a, b}] = true
		w.run(60*ms, nil)
		w.want("cut", a, echo.NotHeard, echo.Alive)
		if farewell {
			b.m.RemovePort(w.now, 1)
			w.run(ms, nil)
			w.want("after its farewell", a, echo.Unknown, echo.Alive)
			continue
		}
		links[0].cut[[2]*node{b, a}] = true
		w.run(60*ms, nil)
		w.want("cut both ways", a, echo.NothingHeard, echo.Alive)
		b.stopped = true
		w.run(60*ms, nil)
		w.want("dead", a, echo.Unknown, echo.Unknown)
	}
}

// The last port is never taken down.
func TestLastPort(t *testing.T) {
	w := newWorld(t)
	s := newSegment()
	a := w.node("a", 10*ms, s)
	b := w.node("b", 10*ms, s)
	w.run(50*ms, nil)
	w.want("at first", a, echo.Alive)
	s.cut[[2]*node{b, a}] = true
	w.run(time.Second, nil)
	w.want("cut", a, echo.Unknown)
	w.want("cut", b, echo.Unknown)
}

// Noise of strangers at 1,000 frames a second neither hides a failure nor makes
// one: of a peer that does not hear us, and of one that is heard on the other
// port alone.
func TestNoise(t *testing.T) {
	w, a, b, links := pair(t)
	noise := func() {
		if w.rnd.IntN(10) == 0 {
			links[0].carry(nil, 0, nil)
			links[1].carry(nil, 0, nil)
		}
	}
	w.run(time.Second, noise)
	w.want("noise", a, echo.Alive, echo.Alive)
	links[0].cut[[2]*node{a, b}] = true
	w.run(80*ms, noise)
	w.want("cut", a, echo.NotHeard, echo.Alive)
	w.want("cut", b, echo.Unreached, echo.Alive)
	delete(links[0].cut, [2]*node{a, b})
	w.run(100*ms, noise)
	w.want("mended", a, echo.Alive, echo.Alive)
	links[0].cut[[2]*node{b, a}], links[0].cut[[2]*node{a, b}] = true, true // the peer's cable at the switch
	w.run(80*ms, noise)
	w.want("cut both ways", a, echo.Unreached, echo.Alive)
}

// Both bonds on one switch hear all ports of each other. The bond's own hellos
// are no evidence.
func TestSwitch(t *testing.T) {
	w := newWorld(t)
	s := newSegment()
	a := w.node("a", 10*ms, s, s)
	b := w.node("b", 10*ms, s, s)
	w.run(60*ms, nil)
	w.want("at first", a, echo.Alive, echo.Alive)
	if n := len(a.m.Peers(1)); n != 2 {
		t.Errorf("%d peers, want both ports of b", n)
	}
	b.m.SetLink(w.now, 2, false)
	b.segments[1] = newSegment()
	s.ends = slices.DeleteFunc(s.ends, func(e end) bool { return e == end{b, 2} })
	w.run(100*ms, nil)
	w.want("one port of b is gone", a, echo.Alive, echo.Alive)
	b.stopped = true
	w.run(time.Second, nil)
	w.want("b is dead", a, echo.Unknown, echo.Unknown)
	w.run(2*time.Minute, nil)
	if n := len(a.m.Peers(1)); n != 0 {
		t.Errorf("%d peers long after they died, want none", n)
	}
	addArcs(w)
}

// A link that comes back is used once its peer is heard, or after ten seconds
// when it leads to somebody who does not speak.
func TestLinkReturns(t *testing.T) {
	w, a, b, links := pair(t)
	down := func() {
		a.m.SetLink(w.now, 1, false)
		b.m.SetLink(w.now, 1, false)
		w.run(time.Second, nil)
		w.want("link down", a, echo.NothingHeard, echo.Alive)
		a.m.SetLink(w.now, 1, true)
		w.want("link up", a, echo.NothingHeard, echo.Alive)
	}
	down()
	b.m.SetLink(w.now, 1, true)
	w.run(80*ms, nil)
	w.want("peer heard", a, echo.Alive, echo.Alive)
	down()
	links[0].ends = links[0].ends[:1] // b is no longer there
	w.run(9900*ms, nil)
	w.want("soon", a, echo.NothingHeard, echo.Alive)
	w.run(200*ms, nil)
	w.want("later", a, echo.Unknown, echo.Alive)
}

// A monitor that was stopped for a while does not blame the links.
func TestStall(t *testing.T) {
	for _, keeps := range []bool{false, true} { // what came in the meantime, among it that a is not heard
		for stall := 20 * ms; stall < 200*ms; stall += 7 * ms {
			w, a, b, _ := pair(t)
			w.keeps = keeps
			alarm := func() {
				if len(a.down())+len(b.down()) > 0 {
					t.Fatalf("stopped for %v: ports %v and %v are down at %v", stall, a.down(), b.down(), w.now)
				}
			}
			a.stopped = true
			w.run(stall, alarm)
			a.stopped = false
			w.run(100*ms, alarm)
			w.want("after a stall", a, echo.Alive, echo.Alive)
			w.want("after a stall", b, echo.Alive, echo.Alive)
		}
	}
}

// Bonds with different intervals agree on the longer one; a peer that is far
// slower is no witness.
func TestIntervals(t *testing.T) {
	w := newWorld(t)
	links := []*segment{newSegment(), newSegment()}
	fast := w.node("fast", 10*ms, links...)
	slow := w.node("slow", 100*ms, links...)
	w.run(time.Second, func() {
		if len(fast.down())+len(slow.down()) > 0 {
			t.Fatal("a port is down")
		}
	})
	w.want("ten times", fast, echo.Alive, echo.Alive)
	w.want("ten times", slow, echo.Alive, echo.Alive)
	slower := newWorld(t)
	other := []*segment{newSegment(), newSegment()}
	fast = slower.node("fast", 10*ms, other...)
	snail := slower.node("snail", 1000*ms, other...)
	slower.run(5*time.Second, nil)
	slower.want("a hundred times", fast, echo.Unknown, echo.Unknown)
	slower.want("a hundred times", snail, echo.Alive, echo.Alive)
}

func TestConfig(t *testing.T) {
	for _, c := range []echo.Config{{}, {System: 1}, {System: 1, Interval: ms}, {System: 1, Interval: ms / 2, Missed: 3},
		{System: 1, Interval: ms, Missed: 256}, {System: 1, Interval: ms + 1, Missed: 1}, {System: 1, Interval: time.Hour, Missed: 1}} {
		if _, err := echo.New(c, nil); err == nil {
			t.Errorf("New(%+v) has no error", c)
		}
	}
}
