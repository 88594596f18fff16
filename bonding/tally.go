package bonding

import (
	"sync"
	"sync/atomic"
)

// tally counts packets and their bytes by one atomic operation: these are what a
// write of few packets consists of. Both are in one word, and moved to words of
// their own before either half could run over.
type tally struct {
	recent atomic.Uint64 // packets above bytes

	mu sync.Mutex
	// What follows is guarded by mu, as is the moving.
	packets, bytes uint64
}

const (
	bytesBits = 40 // 1 TiB; 16 Mi packets
	// halfFull is set once a half is half full. Each goroutine that sees it moves
	// all, or waits for one that does: there is room for the greatest lists of 128
	// of them.
	halfFull = 1<<63 | 1<<(bytesBits-1)
)

// add counts packets, fewer than 2^16, and their bytes, fewer than 2^32.
func (t *tally) add(packets, bytes int) {
	if t.recent.Add(uint64(packets)<<bytesBits+uint64(bytes))&halfFull != 0 {
		t.move()
	}
}

// move is the rare way on which a lock is taken: once in 8 Mi packets, or 512 GiB.
func (t *tally) move() {
	t.mu.Lock()
	defer t.mu.Unlock()
	recent := t.recent.Swap(0)
	t.packets += recent >> bytesBits
	t.bytes += recent & (1<<bytesBits - 1)
}

// load returns the sums. They never fall.
func (t *tally) load() (packets, bytes uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	recent := t.recent.Load()
	return t.packets + recent>>bytesBits, t.bytes + recent&(1<<bytesBits-1)
}
