package reorder

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"bondstack/link/linktest"
)

// flight is a stream on its way over links that are first-in first-out, some of
// whose pieces are lost.
type flight struct {
	stream
	queues  [][]int // the pieces on each link that will arrive
	arrived []bool
	latest  []int // the last piece that each link has delivered, -1 for none
}

// launch sprays n pieces over links: in turn, in turns of several, or at random.
func launch(rnd *rand.Rand, s stream, n, links int, loss float64) *flight {
	f := &flight{stream: s, queues: make([][]int, links), arrived: make([]bool, n), latest: slices.Repeat([]int{-1}, links)}
	turn, style := 1+rnd.IntN(3), rnd.IntN(3)
	for k := range n {
		link := k / turn % links
		if style == 0 {
			link = rnd.IntN(links)
		}
		if rnd.Float64() >= loss {
			f.queues[link] = append(f.queues[link], k)
		}
	}
	return f
}

// land takes the next piece that a link delivers, if there is one.
func (f *flight) land(link int) (piece int, ok bool) {
	if len(f.queues[link]) == 0 {
		return 0, false
	}
	piece = f.queues[link][0]
	f.queues[link] = f.queues[link][1:]
	f.arrived[piece], f.latest[link] = true, piece
	return piece, true
}

// due are the pieces that must have been delivered by now, and no others: those
// that arrived, but for what is behind a gap of which some link has delivered
// nothing later. It is RFC 1990's rule, taken literally.
func (f *flight) due() []int {
	var due []int
	known := slices.Min(f.latest)
	for k, arrived := range f.arrived {
		switch {
		case arrived:
			due = append(due, k)
		case known < k:
			return due
		}
	}
	return due
}

// Random interleavings of links with random losses: after each frame, exactly
// what is due has been delivered, in order and once.
func TestModel(t *testing.T) {
	rnd := linktest.NewRand(t)
	for range 150 {
		links := 1 + rnd.IntN(5)
		loss := []float64{0, 0.01, 0.2, 0.6}[rnd.IntN(4)]
		r := newRig(t, Options{})
		s := stream4(1)
		s.origin = rnd.Uint32()
		for l := range links { // so that all are known
			r.give(l, 0, s.kind(0, "ack"))
		}
		r.give(0, 0, s.kind(0, "syn"))
		r.drain()
		f := launch(rnd, s, 1+rnd.IntN(200), links, loss)
		var got []int
		for empty := 0; empty < 50; {
			link := rnd.IntN(links)
			k, ok := f.land(link)
			if !ok {
				empty++
				continue
			}
			r.give(link, uint32(k), f.piece(k))
			for _, id := range r.drain() {
				got = append(got, int(id))
			}
			if want := f.due(); !slices.Equal(got, want) {
				t.Fatalf("%d links, loss %v, origin %d: delivered %v, want %v", links, loss, s.origin, got, want)
			}
		}
	}
}

// Whatever comes, in whatever order, with time passing, links that go, streams
// that make room for others and no memory to speak of: each frame is delivered
// once, none later than the hold time allows, and the bounds hold.
func TestChaos(t *testing.T) {
	rnd := linktest.NewRand(t)
	for range 100 {
		script := make([]byte, 50+rnd.IntN(1500))
		for i := range script {
			script[i] = byte(rnd.Uint32())
		}
		chaos(t, script)
	}
}

func FuzzChaos(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 1, 0, 3, 0})
	f.Add([]byte{0, 0, 0, 0, 2, 0, 250, 3, 0, 1, 1, 0, 251, 1, 0})
	f.Fuzz(func(t *testing.T, script []byte) { chaos(t, script[:min(len(script), 6000)]) })
}

// chaos plays a script of three bytes a step: the link, with what it delivers;
// the piece; and the stream.
func chaos(t *testing.T, script []byte) {
	const hold = 2 * time.Millisecond
	r := newRig(t, Options{Hold: hold, Flows: 8, Bytes: 1 << 15})
	var due []time.Duration // of each frame, when its time is up
	var now time.Duration
	var open []uint32
	check := func() {
		for _, id := range r.drain() {
			i := slices.Index(open, id)
			if i < 0 {
				t.Fatalf("frame %d was delivered that was not waiting", id)
			}
			open = slices.Delete(open, i, i+1)
		}
		for _, id := range open {
			if due[id] < now {
				t.Fatalf("frame %d waits %v too long", id, now-due[id])
			}
		}
		if st := r.State(); st.Bytes > 1<<15 || st.Frames != len(open) || st.Flows > 8 {
			t.Fatalf("%d frames wait, the state is %+v", len(open), st)
		}
	}
	for ; len(script) >= 3; script = script[3:] {
		what, piece, which := script[0], int(script[1]), int(script[2])
		switch {
		case what >= 248:
			d := time.Duration(piece+1) * 10 * time.Microsecond
			now += d
			r.clock.Advance(d)
		case what >= 240:
			r.Gone(uint32(piece))
		default:
			s := stream4(which % 16)
			if which >= 128 {
				s = stream6(which % 16)
			}
			s.origin = 1<<32 - 128*size + uint32(which>>4)<<30&^(1<<31-1)
			id := uint32(len(due))
			due = append(due, now+maxAge*hold)
			open = append(open, id)
			r.give(int(what%20), id, s.kind(piece, []string{"", "", "", "", "", "", "fin", "syn", "rst", "ack"}[what/24]))
		}
		check()
	}
	now += maxAge * hold
	r.clock.Advance(maxAge * hold)
	check()
	if len(open) > 0 {
		t.Fatalf("%d frames still wait", len(open))
	}
}
