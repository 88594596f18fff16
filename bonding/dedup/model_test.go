package dedup

import (
	"math/rand/v2"
	"slices"
	"testing"

	"bondstack/link/linktest"
)

// model is the filter, slow and obvious: for each key the epochs of its
// deliveries, in order, and for each slave how many of them it has accounted
// for. entries 0 means without bound.
type model struct {
	entries int
	keys    map[uint64]*history
	recent  []uint64 // keys, the one delivered longest ago first
}

type history struct {
	deliveries []uint32
	accounted  map[int]int
}

func newModel(entries int) *model {
	return &model{entries: entries, keys: map[uint64]*history{}}
}

func (m *model) copied(slave int, key uint64, epoch uint32) bool {
	h := m.keys[key]
	if h == nil {
		if m.entries > 0 && len(m.recent) == m.entries {
			delete(m.keys, m.recent[0])
			m.recent = m.recent[1:]
		}
		h = &history{accounted: map[int]int{}}
		m.keys[key] = h
	}
	at := h.accounted[slave]
	for at < len(h.deliveries) && h.deliveries[at]+2 <= epoch {
		at++ // too long ago: lost on this slave
	}
	h.accounted[slave] = at + 1
	if at < len(h.deliveries) {
		return true
	}
	h.deliveries = append(h.deliveries, epoch)
	m.recent = append(slices.DeleteFunc(m.recent, func(k uint64) bool { return k == key }), key)
	return false
}

func (m *model) forget(slave int) {
	for _, h := range m.keys {
		delete(h.accounted, slave)
	}
}

// TestAgainstModel has random slaves, keys, epochs and releases, in tables of
// one shard that are too small at times.
func TestAgainstModel(t *testing.T) {
	r := linktest.NewRand(t)
	for range 60 {
		entries, slaves := 16+r.IntN(60), 1+r.IntN(6)
		keys := uint64(1 + r.IntN(2*entries))
		calm := 1 + r.IntN(500) // frames an epoch
		table, m := New(Options{Entries: entries, Slaves: slaves}), newModel(entries)
		epoch := r.Uint32() % 3
		for step := range 4000 {
			switch r.IntN(calm) {
			case 0:
				epoch += uint32(1 + r.IntN(3)*r.IntN(2))
			case 1:
				gone := r.IntN(slaves)
				table.Forget(gone)
				m.forget(gone)
			}
			slave, key := r.IntN(slaves), r.Uint64N(keys)
			got, want := table.Copy(slave, key, epoch), m.copied(slave, key, epoch)
			if got != want {
				t.Fatalf("step %d, %d entries, slave %d, key %d, epoch %d: copy %v, want %v",
					step, entries, slave, key, epoch, got, want)
			}
		}
	}
}

// sequence makes n frames in the order in which they are sent: now and then
// a train of equal ones, and equal ones later on.
func sequence(r *rand.Rand, n int) []uint64 {
	var frames []uint64
	for len(frames) < n {
		key := r.Uint64()
		if len(frames) > 0 && r.IntN(4) == 0 {
			key = frames[r.IntN(len(frames))]
		}
		for range 1 + r.IntN(4)*r.IntN(2) {
			frames = append(frames, key)
		}
	}
	return frames[:n]
}

// lose returns the frames that come through a link which loses some.
func lose(r *rand.Rand, frames []uint64, one int) []uint64 {
	var through []uint64
	for _, f := range frames {
		if one == 0 || r.IntN(one) != 0 {
			through = append(through, f)
		}
	}
	return through
}

func tally(frames []uint64) map[uint64]int {
	n := map[uint64]int{}
	for _, f := range frames {
		n[f]++
	}
	return n
}

// wantDelivered is how often each frame must come out: as often as on the link
// that brought it most often.
func wantDelivered(links [][]uint64) map[uint64]int {
	want := map[uint64]int{}
	for _, frames := range links {
		for key, n := range tally(frames) {
			want[key] = max(want[key], n)
		}
	}
	return want
}

func checkDelivered(t *testing.T, got, want map[uint64]int) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d distinct frames delivered, want %d", len(got), len(want))
	}
	for key, n := range want {
		if got[key] != n {
			t.Fatalf("frame %#x delivered %d times, want %d", key, got[key], n)
		}
	}
}

// TestInterleavings delivers the same sequence on several links, in every
// manner of interleaving, without and with loss.
func TestInterleavings(t *testing.T) {
	r := linktest.NewRand(t)
	for round := range 80 {
		sent := sequence(r, 1+r.IntN(1000))
		links := make([][]uint64, 1+r.IntN(4))
		loss := []int{0, 2, 10, 100}[r.IntN(4)]
		for i := range links {
			links[i] = lose(r, sent, loss)
		}
		want := wantDelivered(links)
		if loss == 0 {
			checkDelivered(t, tally(sent), want)
		}
		table := New(Options{Entries: 2048, Slaves: len(links)})
		got := map[uint64]int{}
		left := slices.Clone(links)
		burst := 1 + r.IntN(200)
		for slices.ContainsFunc(left, func(f []uint64) bool { return len(f) > 0 }) {
			slave := r.IntN(len(left))
			for range min(len(left[slave]), 1+r.IntN(burst)) {
				key := left[slave][0]
				left[slave] = left[slave][1:]
				if !table.Copy(slave, key, 5) {
					got[key]++
				}
			}
		}
		checkDelivered(t, got, want)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}
