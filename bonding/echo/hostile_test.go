package echo_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"bondstack/bonding/echo"
)

// arcsSeen counts the arcs of all tests.
var arcsSeen = map[echo.Arc]uint64{}

func addArcs(w *world) {
	for _, n := range w.nodes {
		for _, a := range echo.Arcs {
			arcsSeen[a] += n.m.ArcCount(a)
		}
		for from := echo.None; from <= echo.Silent; from++ {
			for to := echo.None; to <= echo.Silent; to++ {
				known := slices.ContainsFunc(echo.Arcs, func(a echo.Arc) bool { return a.From == from && a.To == to })
				if a := (echo.Arc{From: from, To: to}); !known && n.m.ArcCount(a) != 0 {
					w.tb.Errorf("%v -> %v is not in the table", from, to)
				}
			}
		}
	}
}

// forged is a hello of a made-up system.
func forged(w *world, change func(*echo.PDU)) []byte {
	p := echo.PDU{Interval: 10 * ms, System: w.rnd.Uint64(), Discriminator: w.rnd.Uint64(), Sequence: w.rnd.Uint32()}
	if change != nil {
		change(&p)
	}
	return p.AppendTo(nil)
}

// A flood of hellos of made-up systems, each with another discriminator and lists
// of made-up peers, takes no port down, keeps no dead one alive, has nothing sent
// beyond the usual, and does not keep a new peer from being known.
func TestFlood(t *testing.T) {
	w, a, b, links := pair(t)
	flood := func() {
		for range 3 { // 30,000 a second
			links[0].carry(nil, 0, forged(w, func(p *echo.PDU) {
				p.Count = w.rnd.IntN(echo.MaxPeers + 1)
				p.Farewell = w.rnd.IntN(4) == 0
				for i := range p.Count {
					p.Entries[i] = echo.Entry{Discriminator: w.rnd.Uint64(), Sequence: w.rnd.Uint32(), Hears: w.rnd.IntN(2) == 0}
				}
			}))
		}
	}
	before := a.sent
	w.run(time.Second, func() {
		flood()
		if len(a.down())+len(b.down()) > 0 {
			t.Fatal("a port is down")
		}
	})
	if n := a.sent - before; n > 2*102 {
		t.Errorf("%d hellos sent in a second on two ports, want 100 each", n)
	}
	if n := len(a.m.Peers(1)); n > echo.MaxPeers {
		t.Errorf("%d peers, want at most %d", n, echo.MaxPeers)
	}
	c := w.node("c", 10*ms, links[0])
	w.run(time.Second, flood)
	w.want("a new one in the flood", c, echo.Alive)
	c.stopped = true
	w.run(100*ms, flood)
	links[0].cut[[2]*node{a, b}] = true
	links[0].cut[[2]*node{a, c}] = true
	w.run(100*ms, flood)
	w.want("cut in the flood", a, echo.NotHeard, echo.Alive)
}

// A hello that was recorded and comes again, one with the peer's discriminator and
// another system, and one that says the peer is deaf without being the peer, say
// nothing.
func TestForged(t *testing.T) {
	w, a, b, links := pair(t)
	peer := a.m.Peers(1)[0]
	var recorded []byte
	w.run(12*ms, func() {
		for _, f := range w.flying {
			var p echo.PDU
			if f.payload != nil && p.Parse(f.payload) == nil && p.Discriminator == peer.Discriminator {
				recorded = f.payload
			}
		}
	})
	var p echo.PDU
	if err := p.Parse(recorded); err != nil {
		t.Fatal("nothing recorded")
	}
	lie := p
	lie.System, lie.Sequence, lie.Entries = w.rnd.Uint64(), p.Sequence+100, [echo.MaxPeers]echo.Entry{}
	lie.Count = 0
	stranger := p
	stranger.System, stranger.Discriminator = w.rnd.Uint64(), w.rnd.Uint64()
	for i := range stranger.Count {
		stranger.Entries[i].Hears = false
	}
	w.run(200*ms, func() {
		a.m.Receive(w.now, 1, lie.AppendTo(nil))
		a.m.Receive(w.now, 1, stranger.AppendTo(nil))
		if len(a.down()) > 0 {
			t.Fatal("a forged hello takes a port down")
		}
	})
	links[0].cut[[2]*node{b, a}] = true
	w.run(100*ms, func() { a.m.Receive(w.now, 1, recorded) })
	if got := a.m.Peers(1); got[0].State != echo.Silent {
		t.Errorf("a recorded hello keeps the peer %v", got[0].State)
	}
	if len(a.down()) != 1 {
		t.Errorf("ports %v are down, want 1", a.down())
	}
	addArcs(w)
}

// FuzzReceive feeds a monitor with anything; its deadlines go on, and its tables
// stay bounded.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("BE\x01\x00\x00\x0a\x01\x00AAAAAAAABBBBBBBB\x00\x00\x00\x01CCCCCCCC\x00\x00\x00\x01\x01\x00\x00\x00"), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, port uint8) {
		w := newWorld(t)
		a := w.node("a", 10*ms, newSegment(), newSegment())
		for i := range 20 {
			w.run(time.Duration(i)*ms, nil)
			a.m.Receive(w.now, echo.PortID(port%3), b)
			if len(b) > 28 {
				b[27]++
				b[16+i%8]++
			}
		}
		for id := range echo.PortID(3) {
			if n := len(a.m.Peers(id)); n > echo.MaxPeers {
				t.Fatalf("%d peers", n)
			}
		}
		addArcs(w)
	})
}

// TestZArcs is the last: the other tests have taken every arc of the table.
func TestZArcs(t *testing.T) {
	if testing.Short() || len(arcsSeen) == 0 {
		t.Skip("needs the other tests")
	}
	for _, a := range slices.Collect(maps.Keys(arcsSeen)) {
		if arcsSeen[a] == 0 {
			t.Errorf("never seen: %v -> %v: %s", a.From, a.To, a.When)
		}
	}
}
