package bonding

import (
	"context"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// captureRing is a bounded queue of frames with many writers and one reader. Writers
// take no lock and never wait: each place has a number that says whose turn it is, and
// where the next place is not read yet the frame is dropped.
type captureRing struct {
	places  []capturePlace
	tail    atomic.Uint64 // of the writers
	dropped atomic.Uint64
	head    uint64 // of the reader
	reading bool   // the place at head is in the reader's hands
	// sleeping is whether the reader waits for woken.
	sleeping atomic.Bool
	woken    chan struct{}
}

// capturePlace is room for a frame.
type capturePlace struct {
	// turn is the position of the writer that may use the place, or one more where
	// the reader may.
	turn   atomic.Uint64
	at     time.Time
	slave  *slave
	out    bool
	length int
	data   []byte // as much as is kept; its capacity is all of the room
}

// newCaptureRing sets all room aside.
func newCaptureRing(snapLen int) *captureRing {
	n := min(captureBytes/snapLen, maxCaptureFrames)
	room := make([]byte, n*snapLen)
	r := &captureRing{places: make([]capturePlace, n), woken: make(chan struct{}, 1)}
	for i := range r.places {
		r.places[i].turn.Store(uint64(i))
		r.places[i].data = room[i*snapLen : i*snapLen : (i+1)*snapLen]
	}
	return r
}

// put copies a packet, from its Ethernet header on, or drops it.
func (r *captureRing) put(now time.Time, at *slave, out bool, pkt *stack.PacketBuffer) {
	size := uint64(len(r.places))
	for {
		turn := r.tail.Load()
		p := &r.places[turn%size]
		switch have := p.turn.Load(); {
		case have < turn: // the reader is a whole round behind
			r.dropped.Add(1)
			return
		case have == turn && r.tail.CompareAndSwap(turn, turn+1):
			p.at, p.slave, p.out, p.length = now, at, out, pkt.Size()
			p.data = p.data[:gather(pkt, p.data[:cap(p.data)])]
			p.turn.Store(turn + 1)
			r.wake()
			return
		}
	}
}

// next returns the next frame, nil where there is none. It is good until the next
// call.
func (r *captureRing) next() *capturePlace {
	size := uint64(len(r.places))
	if r.reading {
		r.places[r.head%size].turn.Store(r.head + size)
		r.head++
		r.reading = false
	}
	p := &r.places[r.head%size]
	if p.turn.Load() != r.head+1 {
		return nil
	}
	r.reading = true
	return p
}

// await waits until there may be a frame. It returns false when the context has ended.
func (r *captureRing) await(ctx context.Context) bool {
	r.sleeping.Store(true)
	defer r.sleeping.Store(false)
	if p := &r.places[r.head%uint64(len(r.places))]; p.turn.Load() == r.head+1 {
		return true // it came before sleeping was seen
	}
	select {
	case <-r.woken:
		return true
	case <-ctx.Done():
		return false
	}
}

// wake wakes the reader if it sleeps.
func (r *captureRing) wake() {
	if r.sleeping.Load() && r.sleeping.CompareAndSwap(true, false) {
		r.rouse()
	}
}

// rouse wakes the reader, also one that is only about to sleep: at the end there is
// no frame in the ring that would tell it not to.
func (r *captureRing) rouse() {
	select {
	case r.woken <- struct{}{}:
	default: // woken already
	}
}
