package dedup

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// shard is a part of a table: a hash table of chains whose entries are also in
// a ring, in the order of their last delivery. The entry delivered longest ago
// makes room for a new key.
type shard struct {
	mu sync.Mutex
	// mu guards the following.

	// chains holds the first entry of each chain, 0 for none.
	chains []uint16
	// entries has the ring's start at 0: its newer is the oldest entry, its
	// older the newest.
	entries []entry
	// counts holds a number for each entry and slave.
	counts []uint32
	slaves int
	used   int // entries in use, from 1 on

	// A shard's own cache lines, so that shards do not slow each other down.
	_ [128 - 8 - 3*24 - 2*8]byte
}

// init makes an empty shard of n entries, at most 65535.
func (s *shard) init(n, slaves int) {
	s.chains = make([]uint16, 1<<bits.Len(uint(2*n-1)))
	s.entries = make([]entry, 1+n)
	s.counts = make([]uint32, (1+n)*slaves)
	s.slaves = slaves
}

// entryLocked returns the entry of a key, a new one if need be.
func (s *shard) entryLocked(key, mixed uint64, epoch uint32, forgets uint16) uint16 {
	i := s.findLocked(key, mixed)
	if i == 0 {
		i = s.insertLocked(key, mixed, epoch)
		s.entries[i].forgets = forgets
	}
	return i
}

// arriveLocked is Table.Copy for the key of an entry.
func (s *shard) arriveLocked(i uint16, slave int, epoch uint32) bool {
	e := &s.entries[i]
	e.age(epoch)
	if e.arrive(&s.counts[int(i)*s.slaves+slave]) {
		return true
	}
	s.unlink(i)
	s.linkNewest(i)
	return false
}

// chain returns the chain of a key. The upper bits of the mixed key chose the
// shard.
func (s *shard) chain(mixed uint64) *uint16 {
	return &s.chains[mixed&uint64(len(s.chains)-1)]
}

// findLocked returns the entry of a key, 0 if there is none.
func (s *shard) findLocked(key, mixed uint64) uint16 {
	i := *s.chain(mixed)
	for i != 0 && s.entries[i].key != key {
		i = s.entries[i].next
	}
	return i
}

// insertLocked returns a new entry for a key, a free one or the oldest.
func (s *shard) insertLocked(key, mixed uint64, epoch uint32) uint16 {
	var i uint16
	if s.used < len(s.entries)-1 {
		s.used++
		i = uint16(s.used)
	} else {
		i = s.entries[0].newer
		s.evictLocked(i)
	}
	chain := s.chain(mixed)
	s.entries[i] = entry{key: key, epoch: epoch, next: *chain}
	*chain = i
	clear(s.counts[int(i)*s.slaves:][:s.slaves])
	s.linkNewest(i)
	return i
}

// evictLocked takes an entry out of its chain and out of the ring.
func (s *shard) evictLocked(i uint16) {
	at := s.chain(mix(s.entries[i].key))
	for *at != i {
		at = &s.entries[*at].next
	}
	*at = s.entries[i].next
	s.unlink(i)
}

func (s *shard) unlink(i uint16) {
	newer, older := s.entries[i].newer, s.entries[i].older
	s.entries[newer].older = older
	s.entries[older].newer = newer
}

func (s *shard) linkNewest(i uint16) {
	newest := s.entries[0].older
	s.entries[i].newer, s.entries[i].older = 0, newest
	s.entries[newest].newer = i
	s.entries[0].older = i
}

// forgetLocked has the slaves that were forgotten since an entry last looked count
// as ones on which its key never arrived. An entry that has not looked for 2^16
// calls of Forget may miss some. That takes longer than two epochs, after which
// its counts mean nothing.
func (s *shard) forgetLocked(i uint16, forgets uint64, forgotten []atomic.Uint64) {
	e := &s.entries[i]
	known := forgets - uint64(uint16(forgets)-e.forgets)
	for slave := range forgotten {
		if forgotten[slave].Load() > known {
			s.counts[int(i)*s.slaves+slave] = e.floor
		}
	}
	e.forgets = uint16(forgets)
}
