package reorder

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// ways is how many flows a set has.
const ways = 4

// table holds the flows in sets. A flow's key chooses its set, in which it takes
// any place: the least recently used makes room.
type table struct {
	seed uint64
	sets []set
	// used has a bit for each set that has had a flow: most never have one, and
	// are not looked at when links go.
	used []atomic.Uint64
}

// set is a part of the table with a lock of its own.
type set struct {
	// waiting is whether a flow may have frames for the ticker.
	waiting atomic.Bool
	number  int // in the table

	mu sync.Mutex
	// mu guards the following.
	uses  uint64
	flows [ways]flow
}

func (t *table) init(flows int, seed uint64) {
	n := 1
	for n*ways < flows {
		n *= 2
	}
	t.seed, t.sets, t.used = seed, make([]set, n), make([]atomic.Uint64, (n+63)/64)
	for i := range t.sets {
		t.sets[i].number = i
	}
}

// use notes that a set has a flow.
func (t *table) use(number int) {
	if word, bit := &t.used[number/64], uint64(1)<<(number%64); word.Load()&bit == 0 {
		word.Or(bit)
	}
}

// eachUsed calls f for each set that has had a flow.
func (t *table) eachUsed(f func(*set)) {
	for i := range t.used {
		for word := t.used[i].Load(); word != 0; word &= word - 1 {
			f(&t.sets[64*i+bits.TrailingZeros64(word)])
		}
	}
}

func (t *table) set(k *key) *set { return &t.sets[k.hash(t.seed)&uint64(len(t.sets)-1)] }

// flowLocked returns the flow of a piece, a new one if need be. It returns nil
// where there is none and none is to be made: for a reset, after Close, and when
// every flow of the set is being delivered.
func (set *set) flowLocked(s *Stage, seg *segment) *flow {
	set.uses++
	var oldest *flow
	for i := range set.flows {
		f := &set.flows[i]
		if f.live && f.key == seg.key {
			f.used = set.uses
			return f
		}
		if !f.delivering && (oldest == nil || f.rank() < oldest.rank()) {
			oldest = f
		}
	}
	switch {
	case seg.reset, s.closed.Load():
		return nil
	case oldest == nil:
		s.counters.unknown.Add(1)
		return nil
	}
	s.table.use(set.number)
	oldest.giveUp(s.counters)
	oldest.key, oldest.live, oldest.used = seg.key, true, set.uses
	return oldest
}

// rank orders flows by which is to make room first.
func (f *flow) rank() uint64 {
	if !f.live {
		return 0
	}
	return f.used
}

// waitingLocked reports whether a flow of the set holds frames, or has some that
// nobody is delivering.
func (set *set) waitingLocked() bool {
	for i := range set.flows {
		if f := &set.flows[i]; f.held.n > 0 || f.ready.n > 0 && !f.delivering {
			return true
		}
	}
	return false
}

// key is what tells flows apart.
type key struct {
	src, dst [2]uint64
	ports    uint32
	tags     uint32 // the control words of up to two VLAN tags
}

// hash folds the key with multiplications whose halves are added up, so that all
// bits of the key touch all bits of the result.
func (k *key) hash(seed uint64) uint64 {
	const odd1, odd2 = 0xd6e8feb86659fd93, 0xa0761d6478bd642f
	fold := func(a, b uint64) uint64 {
		high, low := bits.Mul64(a^odd1, b^odd2)
		return high ^ low
	}
	h := fold(k.src[0]^seed, k.src[1])
	h = fold(k.dst[0]^h, k.dst[1])
	return fold(uint64(k.ports)<<32|uint64(k.tags), h)
}
