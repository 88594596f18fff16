package vnet

import (
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
)

// headSize is the size of the view that a frame begins in: a short frame (an
// ACK) and the headers of any other fit.
const headSize = 128

// copyLimit is the length of frames up to which one that does not fit the head is
// copied into a view of its own, so that a socket with many of them in its queue
// does not hold 64 KiB for each.
const copyLimit = 8 << 10

// Headroom is kept free at the front of the first view, for a VLAN tag that the
// kernel took out of the frame.
const Headroom = vlanTagSize

// MaxVectors is how many vectors Views have.
const MaxVectors = 2

// Views are the place of one received frame.
type Views struct {
	// Reserve is where the memory of long frames comes from; nil for gVisor's
	// pools.
	Reserve    *Reserve
	head, body *buffer.View
	// parts are the bytes of the frame in the views, while it is looked at.
	parts [2][]byte
	// skip is how much of the headroom the frame leaves free.
	skip int
}

// Prepare fills in views where there are none, and appends what they have room
// for, without the headroom, to vectors.
func (s *Views) Prepare(vectors []unix.Iovec) []unix.Iovec {
	if s.head == nil {
		s.head = buffer.NewViewSize(headSize)
	}
	if s.body == nil {
		s.body = s.Reserve.take()
	}
	vectors = AppendVector(vectors, s.head.AsSlice()[Headroom:])
	return AppendVector(vectors, s.body.AsSlice())
}

// First returns the first view with its headroom.
func (s *Views) First() []byte { return s.head.AsSlice() }

// Frame returns the bytes of a received frame of a size, in parts. The frame
// begins where the headroom ends, or, where restored is set, with the headroom,
// which then counts in size. The parts are valid until the next call.
func (s *Views) Frame(size int, restored bool) [][]byte {
	s.skip = Headroom
	if restored {
		s.skip = 0
	}
	b := s.head.AsSlice()[s.skip:]
	s.parts[0] = b[:min(size, len(b))]
	if size <= len(b) {
		return s.parts[:1]
	}
	s.parts[1] = s.body.AsSlice()[:size-len(b)]
	return s.parts[:2]
}

// Take moves the frame of parts, which Frame returned, out of the views. Prepare
// then fills them in again.
func (s *Views) Take(parts [][]byte) buffer.Buffer {
	if len(parts) > 1 && len(parts[0])+len(parts[1]) <= copyLimit {
		v := buffer.NewView(len(parts[0]) + len(parts[1]))
		v.Write(parts[0])
		v.Write(parts[1])
		return buffer.MakeWithView(v)
	}
	head := s.head
	s.head = nil
	head.TrimFront(s.skip)
	head.CapLength(len(parts[0]))
	b := buffer.MakeWithView(head)
	if len(parts) > 1 {
		s.body.CapLength(len(parts[1]))
		b.Append(s.body)
		s.body = nil
	}
	return b
}

// Fill writes a frame to the views as a kernel would have received it: for
// tests.
func (s *Views) Fill(frame []byte) {
	n := copy(s.head.AsSlice()[Headroom:], frame)
	copy(s.body.AsSlice(), frame[n:])
}

// Room is how many bytes of a frame the views hold.
func Room() int { return headSize - Headroom + bodySize }

// Release gives the views back.
func (s *Views) Release() {
	for _, v := range []*buffer.View{s.head, s.body} {
		if v != nil {
			v.Release()
		}
	}
	s.head, s.body = nil, nil
}
