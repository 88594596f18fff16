package vnet

import (
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
)

// viewSizes are the sizes of the views that a frame is received into, in order.
// A short frame (an ACK) takes the first only, one of the usual MTU the first
// two; together they hold 64 KiB and its headers. Each is the size of one of
// gVisor's pools, so that a full view leaves no room behind it.
var viewSizes = [...]int{128, 2048, 16384, 16384, 16384, 16384}

// Headroom is kept free at the front of the first view, for a VLAN tag that the
// kernel took out of the frame.
const Headroom = vlanTagSize

// MaxVectors is how many vectors Views have.
const MaxVectors = len(viewSizes)

// Views are the place of one received frame.
type Views struct {
	views [len(viewSizes)]*buffer.View
	// parts are the bytes of the frame in the views, while it is looked at.
	parts [len(viewSizes)][]byte
	// skip is how much of the headroom the frame leaves free.
	skip int
}

// Prepare fills in views where there are none, and appends what they have room
// for, without the headroom, to vectors.
func (s *Views) Prepare(vectors []unix.Iovec) []unix.Iovec {
	for i, v := range s.views {
		if v == nil {
			v = buffer.NewViewSize(viewSizes[i])
			s.views[i] = v
		}
		b := v.AsSlice()
		if i == 0 {
			b = b[Headroom:]
		}
		vectors = AppendVector(vectors, b)
	}
	return vectors
}

// First returns the first view with its headroom.
func (s *Views) First() []byte { return s.views[0].AsSlice() }

// Frame returns the bytes of a received frame of a size, in parts. The frame
// begins where the headroom ends, or, where restored is set, with the headroom,
// which then counts in size. The parts are valid until the next call.
func (s *Views) Frame(size int, restored bool) [][]byte {
	s.skip = Headroom
	if restored {
		s.skip = 0
	}
	n := 0
	for i, v := range s.views {
		b := v.AsSlice()
		if i == 0 {
			b = b[s.skip:]
		}
		s.parts[n] = b[:min(size, len(b))]
		size -= len(s.parts[n])
		n++
		if size == 0 {
			break
		}
	}
	return s.parts[:n]
}

// Take moves the frame of parts, which Frame returned, out of the views. Prepare
// then fills them in again.
func (s *Views) Take(parts [][]byte) buffer.Buffer {
	var b buffer.Buffer
	for i, p := range parts {
		v := s.views[i]
		s.views[i] = nil
		if i == 0 {
			v.TrimFront(s.skip)
		}
		v.CapLength(len(p))
		b.Append(v)
	}
	return b
}

// Fill writes a frame to the views as a kernel would have received it: for
// tests.
func (s *Views) Fill(frame []byte) {
	for i, v := range s.views {
		b := v.AsSlice()
		if i == 0 {
			b = b[Headroom:]
		}
		frame = frame[copy(b, frame):]
	}
}

// Room is how many bytes of a frame the views hold.
func Room() int {
	total := -Headroom
	for _, n := range viewSizes {
		total += n
	}
	return total
}

// Release gives the views back.
func (s *Views) Release() {
	for i, v := range s.views {
		if v != nil {
			v.Release()
			s.views[i] = nil
		}
	}
}
