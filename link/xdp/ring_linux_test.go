package xdp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// newTestRing is a ring that both sides of are in this process.
func newTestRing[T uint64 | unix.XDPDesc](n int, start uint32) *ring[T] {
	producer, consumer, flags := start, start, uint32(0)
	return &ring[T]{producer: &producer, consumer: &consumer, flags: &flags, entries: make([]T, n)}
}

// Indices wrap around at 2^32 with entries in the ring.
func TestRingWrapsAround(t *testing.T) {
	r := newTestRing[uint64](8, 1<<32-5)
	next, last := uint64(0), uint64(0)
	for round := range 100 {
		n := 1 + round%8
		for i := range uint32(n) {
			*r.at(r.produced() + i) = next
			next++
		}
		r.publish(n)
		if r.filled() != n || r.room() != 8-n {
			t.Fatalf("filled %d, room %d, want %d, %d", r.filled(), r.room(), n, 8-n)
		}
		for i := range uint32(n) {
			if got := *r.at(r.consumed() + i); got != last {
				t.Fatalf("read %d, want %d", got, last)
			}
			last++
		}
		r.release(n)
	}
}

// A kernel that says nonsense makes nobody read or write outside.
func TestNonsenseOfTheKernel(t *testing.T) {
	r := newTestRing[uint64](8, 0)
	*r.consumer = 100
	if r.filled() != 8 || r.room() != 0 {
		t.Errorf("filled %d, room %d with a consumer ahead, want 8, 0", r.filled(), r.room())
	}
	s := &socket{memory: make([]byte, 4*minFrame), frame: minFrame}
	for _, c := range []struct {
		d  unix.XDPDesc
		ok bool
	}{
		{unix.XDPDesc{Addr: 256, Len: 100}, true},
		{unix.XDPDesc{Addr: 3*minFrame + 256, Len: minFrame - 256}, true},
		{unix.XDPDesc{Addr: 256, Len: minFrame - 255}, false},
		{unix.XDPDesc{Addr: 4 * minFrame, Len: 1}, false},
		{unix.XDPDesc{Addr: 1<<64 - 1, Len: 1<<32 - 1}, false},
	} {
		frame, begin, ok := s.bytes(c.d)
		if ok != c.ok || ok && (len(frame) != int(c.d.Len) || begin != c.d.Addr-256) {
			t.Errorf("bytes(%+v) = %d bytes, %d, %v, want %v", c.d, len(frame), begin, ok, c.ok)
		}
	}
	s.completed = *newTestRing[uint64](4, 0)
	s.free = make([]uint64, 0, 2)
	copy(s.completed.entries, []uint64{minFrame, 1 << 40, 2 * minFrame, 3 * minFrame})
	s.completed.publish(4)
	if s.reclaim(); len(s.free) != 2 || s.completed.filled() != 0 {
		t.Errorf("reclaim took %v, want the first two that are places", s.free)
	}
}
