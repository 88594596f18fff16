package xdp

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ring is a queue of entries of a power of two that this process shares with
// the kernel: one side produces, the other consumes. Both indices only grow, and
// wrap around at 2^32. Whoever is on our side has a place of its own in the code
// that keeps others away: a receiver, or a lock of senders.
type ring[T uint64 | unix.XDPDesc] struct {
	producer, consumer, flags *uint32
	entries                   []T
	mapped                    []byte
}

// at returns the entry of an index.
func (r *ring[T]) at(index uint32) *T { return &r.entries[index&uint32(len(r.entries)-1)] }

// room returns how many entries may be written from produced() on.
func (r *ring[T]) room() int { return len(r.entries) - r.filled() }

// filled returns how many entries the consumer has not taken yet. A kernel that
// said nonsense would be taken to have filled the ring.
func (r *ring[T]) filled() int {
	n := atomic.LoadUint32(r.producer) - atomic.LoadUint32(r.consumer)
	return int(min(n, uint32(len(r.entries))))
}

// produced is the index of the next entry to be written.
func (r *ring[T]) produced() uint32 { return atomic.LoadUint32(r.producer) }

// consumed is the index of the next entry to be read.
func (r *ring[T]) consumed() uint32 { return atomic.LoadUint32(r.consumer) }

// publish makes n entries that were written the consumer's.
func (r *ring[T]) publish(n int) { atomic.StoreUint32(r.producer, r.produced()+uint32(n)) }

// release makes n entries that were read the producer's.
func (r *ring[T]) release(n int) { atomic.StoreUint32(r.consumer, r.consumed()+uint32(n)) }

// needWakeup reports whether the kernel looks at the ring only when it is
// called.
func (r *ring[T]) needWakeup() bool {
	return atomic.LoadUint32(r.flags)&unix.XDP_RING_NEED_WAKEUP != 0
}
