package wire

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// impairer applies the impairments of one direction. Every frame gets the time
// at which it arrives and goes through one heap in that order, also when the
// time is now, so that frames that are due at once never overtake those that a
// timer is just delivering.
type impairer struct {
	from  *Endpoint
	dir   *direction
	clock tcpip.Clock

	// mu guards the following.
	mu       sync.Mutex
	now      Impairments
	rand     *rand.Rand
	held     heldFrames
	bytes    int                 // of the held frames
	seq      uint64              // of the next held frame
	free     tcpip.MonotonicTime // when the frames before have been sent
	last     tcpip.MonotonicTime // when the last frame in order arrives
	timer    tcpip.Timer
	draining bool      // a goroutine is in drain
	idle     sync.Cond // draining became false
	closed   bool
}

func newImpairer(from *Endpoint, d *direction) *impairer {
	im := &impairer{
		from:  from,
		dir:   d,
		clock: from.cable.clock,
		rand:  rand.New(rand.NewPCG(d.seed[0], d.seed[1])),
	}
	im.idle.L = &im.mu
	return im
}

func (im *impairer) impairments() Impairments {
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.now
}

// change changes the impairments. When there are none left, what is held is
// delivered before change returns, or by a goroutine that is already at it.
func (im *impairer) change(change func(*Impairments)) {
	im.mu.Lock()
	change(&im.now)
	off := im.now == Impairments{}
	if off {
		t := im.clock.NowMonotonic()
		im.held.dueAt(t)
		im.free, im.last = t, t
	} else {
		if im.now.Corrupt > 0 {
			im.dir.to.doubt() // before the first such frame can arrive
		}
		im.dir.impair.Store(im)
	}
	im.mu.Unlock()
	im.drain()
	if off {
		im.stepAside()
	}
}

// stepAside lets frames pass by the impairer, unless somebody has set impairments
// in the meantime.
func (im *impairer) stepAside() {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.now == (Impairments{}) {
		im.dir.impair.Store(nil)
	}
}

// send takes over frames and returns how many were taken, those that an
// impairment dropped included. It drops the references of the others.
func (im *impairer) send(frames []*stack.PacketBuffer) int {
	taken := im.admit(frames)
	for _, f := range frames[taken:] {
		f.DecRef()
	}
	im.drain()
	return taken
}

func (im *impairer) admit(frames []*stack.PacketBuffer) int {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return 0
	}
	now := im.clock.NowMonotonic()
	for i, f := range frames {
		if !im.impairLocked(now, f) {
			return i
		}
	}
	return len(frames)
}

// impairLocked decides what becomes of one frame. It returns false, and leaves
// the frame alone, when the frame would have to wait and there is no room.
func (im *impairer) impairLocked(now tcpip.MonotonicTime, f *stack.PacketBuffer) bool {
	stats := &im.from.stats
	if im.now.Cut {
		stats.cut.Add(1)
		f.DecRef()
		return true
	}
	size := f.Size()
	q := &im.dir.queue
	if n := len(im.held); n >= q.maxFrames || n > 0 && im.bytes+size > q.maxBytes {
		return false
	}
	if im.chance(im.now.Loss) {
		stats.lost.Add(1)
		f.DecRef()
		return true
	}
	if im.chance(im.now.Corrupt) {
		stats.corrupted.Add(1)
		f = im.corruptLocked(f, size)
	} else if im.dir.to.unsure.Load() {
		completeChecksum(f)
	}
	if im.chance(im.now.Duplicate) {
		stats.duplicated.Add(1)
		im.holdLocked(now, copyFrame(f, size), size)
	}
	im.holdLocked(now, f, size)
	return true
}

// chance draws, but only for an impairment that is on: so each one's draws do
// not depend on which others are off.
func (im *impairer) chance(p float64) bool { return p > 0 && im.rand.Float64() < p }

// corruptLocked returns a copy of a frame with one bit turned, in memory that is
// all its own, and drops the reference of the frame.
func (im *impairer) corruptLocked(f *stack.PacketBuffer, size int) *stack.PacketBuffer {
	completeChecksum(f)
	v := f.ToView()
	bit := im.rand.IntN(8 * size)
	v.AsSlice()[bit/8] ^= 1 << (bit % 8)
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)})
	p.GSOOptions, p.Hash = f.GSOOptions, f.Hash
	f.DecRef()
	return p
}

// holdLocked gives a frame its time of arrival.
func (im *impairer) holdLocked(now tcpip.MonotonicTime, f *stack.PacketBuffer, size int) {
	due := now
	if im.now.Rate > 0 {
		if im.free.After(due) {
			due = im.free
		}
		due = due.Add(sendTime(size, im.now.Rate))
		im.free = due
	}
	delay := im.now.Delay
	if j := im.now.Jitter; j > 0 {
		delay = max(0, delay-j+time.Duration(im.rand.Int64N(int64(2*j)+1)))
	}
	due = due.Add(delay)
	if im.last.After(due) {
		due = im.last
	}
	if im.chance(im.now.Reorder) {
		im.from.stats.reordered.Add(1)
		extra := im.now.ReorderDelay
		if extra == 0 {
			extra = DefaultReorderDelay
		}
		due = due.Add(extra)
	} else {
		im.last = due
	}
	im.held.push(heldFrame{due: due, seq: im.seq, frame: f})
	im.seq++
	im.bytes += size
}

// sendTime returns how long it takes to send size bytes at rate bits a second,
// rounded up, at most an hour.
func sendTime(size int, rate uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(size)*8, uint64(time.Second))
	if hi >= rate {
		return time.Hour
	}
	t, rest := bits.Div64(hi, lo, rate)
	if rest > 0 {
		t++
	}
	return time.Duration(min(t, uint64(time.Hour)))
}
