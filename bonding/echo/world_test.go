package echo_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"bondstack/bonding/echo"
)

const ms = time.Millisecond

// world is bonds on segments, in simulated time.
type world struct {
	tb      testing.TB
	now     echo.Instant
	rnd     *rand.Rand
	nodes   []*node
	flying  []flight
	latency func() time.Duration
	keeps   bool // frames for a node that is stopped wait for it
}

// node is one bond.
type node struct {
	w        *world
	name     string
	m        *echo.Monitor
	segments []*segment // by port, from 1
	received []uint64
	heard    []echo.Instant
	stopped  bool // the process hangs, or is dead
	sent     int
}

// segment is what a port is on. cut has no frames go from one node to another.
type segment struct {
	ends []end
	cut  map[[2]*node]bool
}

type end struct {
	n  *node
	id echo.PortID
}

type flight struct {
	at      echo.Instant
	to      end
	payload []byte // nil: a frame of another kind
}

func newWorld(tb testing.TB) *world {
	return &world{tb: tb, now: time.Second, rnd: rand.New(rand.NewPCG(1, 2)), latency: func() time.Duration { return 100 * time.Microsecond }}
}

// node makes a bond with a port on each segment.
func (w *world) node(name string, interval time.Duration, segments ...*segment) *node {
	n := &node{w: w, name: name}
	m, err := echo.New(echo.Config{System: w.rnd.Uint64(), Interval: interval, Missed: 3}, n)
	if err != nil {
		w.tb.Fatal(err)
	}
	n.m = m
	w.nodes = append(w.nodes, n)
	for i, s := range segments {
		n.segments = append(n.segments, s)
		n.received, n.heard = append(n.received, 0), append(n.heard, w.now)
		s.ends = append(s.ends, end{n, echo.PortID(i + 1)})
		m.AddPort(w.now, echo.PortID(i+1), w.rnd.Uint64())
	}
	return n
}

func newSegment() *segment { return &segment{cut: map[[2]*node]bool{}} }

func (n *node) Received(id echo.PortID) uint64 { return n.received[id-1] }

func (n *node) Send(id echo.PortID, pdu []byte) {
	n.sent++
	n.segments[id-1].carry(n, id, slices.Clone(pdu))
}

func (s *segment) carry(from *node, id echo.PortID, payload []byte) {
	for _, e := range s.ends {
		if !s.cut[[2]*node{from, e.n}] && (e.n != from || e.id != id) {
			e.n.w.flying = append(e.n.w.flying, flight{e.n.w.now + e.n.w.latency(), e, payload})
		}
	}
}

// run has time pass, in steps of 100 µs, and calls look after each.
func (w *world) run(d time.Duration, look func()) {
	for end := w.now + d; w.now < end; {
		w.now += 100 * time.Microsecond
		w.step()
		if look != nil {
			look()
		}
	}
}

func (w *world) step() {
	var rest []flight
	due := w.flying
	w.flying = nil
	for _, f := range due {
		switch {
		case f.at > w.now:
			rest = append(rest, f)
		case f.to.n.stopped && w.keeps:
			rest = append(rest, f)
		case f.to.n.stopped:
		default:
			f.to.n.received[f.to.id-1]++
			f.to.n.heard[f.to.id-1] = w.now
			if f.payload != nil {
				f.to.n.m.Receive(w.now, f.to.id, f.payload)
			}
		}
	}
	w.flying = append(w.flying, rest...)
	for _, n := range w.nodes {
		if at, ok := n.m.Deadline(); ok && at <= w.now && !n.stopped {
			n.m.Advance(w.now)
			if at, _ := n.m.Deadline(); at <= w.now {
				w.tb.Fatalf("%s: after Advance(%v) the next deadline is %v", n.name, w.now, at)
			}
		}
	}
}

// down tells which ports of a node are down.
func (n *node) down() (ids []echo.PortID) {
	for i := range n.segments {
		if n.m.Verdict(echo.PortID(i + 1)).Down() {
			ids = append(ids, echo.PortID(i+1))
		}
	}
	return ids
}

func (w *world) want(when string, n *node, want ...echo.Verdict) {
	w.tb.Helper()
	for i, v := range want {
		if got := n.m.Verdict(echo.PortID(i + 1)); got != v {
			w.tb.Errorf("%s: port %d of %s is %v, want %v; peers %+v", when, i+1, n.name, got, v, n.m.Peers(echo.PortID(i+1)))
		}
	}
}

// pair is two bonds of two links between them, that know each other.
func pair(tb testing.TB) (w *world, a, b *node, links [2]*segment) {
	w = newWorld(tb)
	links = [2]*segment{newSegment(), newSegment()}
	a = w.node("a", 10*ms, links[0], links[1])
	w.run(3*ms, nil)
	b = w.node("b", 10*ms, links[0], links[1])
	w.run(50*ms, nil)
	w.want("at first", a, echo.Alive, echo.Alive)
	w.want("at first", b, echo.Alive, echo.Alive)
	tb.Cleanup(func() { addArcs(w) })
	return w, a, b, links
}
