// Package dedup is the receive filter of a bond in broadcast mode. There the
// sender puts every frame on all links, so the receiver gets as many copies as
// it has working links, and all but one have to go before TCP sees them.
//
// The rule: of the frames that are byte for byte the same, the k-th on a slave
// is a copy if any other slave has had its k-th already. Since each slave
// delivers in order, a frame that was sent twice on purpose (a train of equal
// TCP acknowledgements) comes out exactly twice, whichever way the slaves
// interleave; and a frame that one slave lost comes from another.
//
// A Table holds the counts. Each slave's receiving goroutine asks it:
//
//	key := t.Key(link, pkt)
//	if t.Copy(slave, key, epoch) {
//		// count it, drop it
//	}
//
// Only frames found good may be asked about (see package offload's Verify): a
// frame damaged in its TCP payload has the key of the undamaged one, and would
// take its place.
//
// Time is a coarse epoch, a number that the bond's control side counts up, say
// twice a second. What a slave has not delivered by the end of the epoch after
// the one in which another slave delivered it counts as lost there. Until then
// the filter cannot tell a loss on one slave from delay: a frame that is equal
// to the lost one, and that all slaves but that one lose, passes for the late
// copy. So an epoch must be longer than the slaves' delays can differ, and need
// not be much longer.
//
// Memory is bounded: the table keeps the frames that were delivered last, and a
// frame whose entry is gone counts as new. No copy gets through while fewer
// than half of Options.Entries distinct frames lie between the fastest slave
// and the slowest.
//
// Limits: the frames must be the same on all slaves. A sender that cuts a TCP
// frame into segments for one link and not for another (GSO) defeats the
// filter, and so does one that tags frames on one link only. A frame's
// Ethernet padding and the TCP checksum do not matter, which links complete at
// different places.
package dedup

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// The defaults and limits of Options.
const (
	defaultEntries = 16384
	minEntries     = 16
	maxEntries     = 1 << 20
	defaultSlaves  = 16
	maxSlaves      = 256
)

// Options sets the size of a Table.
type Options struct {
	// Entries is how many distinct frames are remembered. 0 means 16384;
	// other values are brought to 16 to 1048576. Each takes 36 bytes, and 4
	// more for each slave.
	Entries int
	// Slaves is how many slaves are tracked. 0 means 16; other values are
	// brought to 1 to 256.
	Slaves int
	// Seed keeps strangers from making frames with equal keys. The zero
	// value means a random one.
	Seed maphash.Seed
}

// Table tells the first of several copies from the others. All its methods may
// be called at the same time, except that each slave's frames must come in
// order, from one goroutine at a time.
type Table struct {
	seed   maphash.Seed
	slaves int
	shift  uint // of the mixed key, which leaves the number of the shard
	shards []shard

	// forgets counts the calls of Forget; forgotten has, of each slave, the number
	// of the last one that was for it. An entry catches up when its key arrives.
	forgets   atomic.Uint64
	forgotten []atomic.Uint64
	mu        sync.Mutex // one Forget at a time
}

// New returns an empty Table.
func New(o Options) *Table {
	if o.Entries == 0 {
		o.Entries = defaultEntries
	}
	if o.Slaves == 0 {
		o.Slaves = defaultSlaves
	}
	if o.Seed == (maphash.Seed{}) {
		o.Seed = maphash.MakeSeed()
	}
	entries := min(max(o.Entries, minEntries), maxEntries)
	n := shardsFor(entries)
	t := &Table{
		seed:   o.Seed,
		slaves: min(max(o.Slaves, 1), maxSlaves),
		shift:  uint(64 - bits.TrailingZeros(uint(n))),
		shards: make([]shard, n),

		forgotten: make([]atomic.Uint64, min(max(o.Slaves, 1), maxSlaves)),
	}
	for i := range t.shards {
		t.shards[i].init((entries+n-1)/n, t.slaves)
	}
	return t
}

// shardsFor returns the number of shards for a table, a power of two.
//
// The keys spread at random, so a shard gets more than its share now and then.
// With at least 256 entries a shard, half of the table's entries would have to
// put twice the mean, 128, into one shard, which is 11 standard deviations. A
// table of fewer than 512 entries is one shard, where nothing is left to
// chance.
func shardsFor(entries int) int {
	n := 1
	for n < 64 && entries/(2*n) >= 256 {
		n *= 2
	}
	return n
}

// Key returns the key of a received frame under the table's seed; see the
// function Key.
func (t *Table) Key(link []byte, pkt *stack.PacketBuffer) uint64 {
	return Key(t.seed, link, pkt)
}

// Copy notes that the frame with the given key came on a slave, and reports
// whether it is a copy of one that another slave delivered, to be dropped.
// slave is an index from 0 to Options.Slaves-1; frames of any other slave are
// not noted and are never copies. epoch is the control side's count; goroutines
// may see it change at different times.
//
// Copy allocates nothing. It holds the lock of one shard for some ten
// nanoseconds, in which it calls nothing else. Two slaves wait for each other
// only when both have a frame of the same shard, one of up to 64, at the same
// moment. A lock rather than atomic words, since an entry's key, counts and
// place in the order of eviction have to change together: any way to do so
// without one needs as many atomic operations as the lock does, and cannot
// reuse an entry while another goroutine may look at it.
func (t *Table) Copy(slave int, key uint64, epoch uint32) bool {
	if uint(slave) >= uint(t.slaves) {
		return false
	}
	mixed := mix(key)
	s := &t.shards[mixed>>t.shift]
	s.mu.Lock()
	forgets := t.forgets.Load() // with the lock, so that no entry is ahead of it
	i := s.entryLocked(key, mixed, epoch, uint16(forgets))
	if s.entries[i].forgets != uint16(forgets) {
		s.forgetLocked(i, forgets, t.forgotten)
	}
	copied := s.arriveLocked(i, slave, epoch)
	s.mu.Unlock()
	return copied
}

// Forget drops what the table knows of a slave, so that another can take its
// index. It must not be called while a Copy for that slave can be under way.
// It takes no time: entries learn of it one by one, as their keys arrive.
func (t *Table) Forget(slave int) {
	if uint(slave) >= uint(t.slaves) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.forgets.Load() + 1
	t.forgotten[slave].Store(n) // before forgets: who reads that finds this
	t.forgets.Store(n)
}

// mix spreads keys over shards and chains even if they are a mere count: all
// bits of the key touch all bits of the result (a multiplication folded in
// two).
func mix(key uint64) uint64 {
	const odd1, odd2 = 0xd6e8feb86659fd93, 0xa0761d6478bd642f
	high, low := bits.Mul64(key^odd1, odd2)
	return high ^ low
}
