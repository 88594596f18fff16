package bonding

import (
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// firstFrames finds the first frames after a failover. It is in the snapshot
// that the failover published, and in those after it until both are found: the
// sender's side stands in place of the mode's write function, so that it costs
// nothing at other times, and the receiver's is one look at a field of the
// snapshot. The clock is read once for each.
type firstFrames struct {
	tx, rx atomic.Int64  // instants; 0 while there is none
	lost   atomic.Uint64 // one more than Bond.lostFrames at the first frame sent
}

// mark has a snapshot look for the first frames of the last failover, if there
// are any left to find. It is called before the snapshot is published.
func (s *snapshot) mark(l *failoverLog) {
	f := l.first
	if f == nil {
		return
	}
	if f.tx.Load() == 0 {
		s.first, s.unmarked, s.write = f, s.write, writeFirst
	}
	if f.rx.Load() == 0 {
		s.first = f
	}
	if s.first == nil {
		l.first = nil
	}
}

// writeFirst writes by the mode, and looks whether a frame went out.
func writeFirst(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	n, err := s.unmarked(s, pkts, stripe)
	if n > 0 && s.first.tx.Load() == 0 {
		s.first.sent(s)
	}
	return n, err
}

func (f *firstFrames) sent(s *snapshot) {
	f.lost.CompareAndSwap(0, s.bond.lostFrames(s.all)+1)
	f.found(&f.tx, s.bond)
}

// received is told of a frame that the bond takes.
func (f *firstFrames) received(s *snapshot, from *slave) {
	if f.rx.Load() == 0 && contains(s.serving, from) {
		f.found(&f.rx, s.bond)
	}
}

// found keeps the moment, and has a snapshot made that no longer looks: on
// another goroutine, since the data path may hold locks of the stack.
func (f *firstFrames) found(at *atomic.Int64, b *Bond) {
	if at.CompareAndSwap(0, int64(b.now())) {
		b.clock.AfterFunc(0, func() { b.control(func(instant) { b.dirty = true }) })
	}
}
