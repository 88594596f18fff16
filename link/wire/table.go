package wire

import (
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// defaultTableSize is how many addresses a switch learns unless it is set.
const defaultTableSize = 8192

// table is what a switch has learned. The usual frame, from an address that is
// known, takes only the read lock.
type table struct {
	size   int
	ageing time.Duration // 0 is never
	clock  tcpip.Clock
	start  tcpip.MonotonicTime

	learned, moved, full, aged, flushed atomic.Uint64

	// mu guards the following.
	mu      sync.RWMutex
	entries map[uint64]*entry
}

// entry is where an address is.
type entry struct {
	port int
	seen atomic.Int64 // when the last frame came, since start; only with ageing
}

func (t *table) init(size int, ageing time.Duration, clock tcpip.Clock) {
	if size == 0 {
		size = defaultTableSize
	}
	t.size, t.ageing, t.clock = size, ageing, clock
	t.start = clock.NowMonotonic()
	t.entries = make(map[uint64]*entry)
}

// now returns the time for ageing, 0 without.
func (t *table) now() time.Duration {
	if t.ageing == 0 {
		return 0
	}
	return t.clock.NowMonotonic().Sub(t.start)
}

// expired reports whether an entry is too old at a time that now returned.
func (t *table) expired(e *entry, now time.Duration) bool {
	return t.ageing > 0 && now-time.Duration(e.seen.Load()) >= t.ageing
}

// lookup returns the port of an address.
func (t *table) lookup(addr uint64) (port int, ok bool) {
	now := t.now()
	t.mu.RLock()
	defer t.mu.RUnlock()
	e := t.entries[addr]
	if e == nil || t.expired(e, now) {
		return 0, false
	}
	return e.port, true
}

// learn notes that a frame from an address came in by a port. Group addresses are
// nobody's.
func (t *table) learn(addr uint64, port int) {
	if addr&groupBit != 0 {
		return
	}
	now := t.now()
	t.mu.RLock()
	e := t.entries[addr]
	known := e != nil && e.port == port && !t.expired(e, now)
	if known && t.ageing > 0 {
		e.seen.Store(int64(now))
	}
	t.mu.RUnlock()
	if !known {
		t.update(addr, port, now)
	}
}

// update enters an address that is new, has moved, or was too old.
func (t *table) update(addr uint64, port int, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[addr]
	if e != nil && t.expired(e, now) {
		t.aged.Add(1)
		delete(t.entries, addr)
		e = nil
	}
	switch {
	case e == nil:
		if len(t.entries) >= t.size && !t.ageLocked(now) {
			t.full.Add(1)
			return
		}
		t.learned.Add(1)
	case e.port != port:
		t.moved.Add(1)
	}
	e = &entry{port: port}
	e.seen.Store(int64(now))
	t.entries[addr] = e
}

// ageLocked removes the entries that are too old, and reports whether there were
// any.
func (t *table) ageLocked(now time.Duration) bool {
	before := len(t.entries)
	for addr, e := range t.entries {
		if t.expired(e, now) {
			delete(t.entries, addr)
		}
	}
	n := before - len(t.entries)
	t.aged.Add(uint64(n))
	return n > 0
}

// flush forgets the addresses at a port.
func (t *table) flush(port int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for addr, e := range t.entries {
		if e.port == port {
			delete(t.entries, addr)
			t.flushed.Add(1)
		}
	}
}

func (t *table) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.entries)
}
