package packet

import (
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
)

// viewSizes are the sizes of the views that a frame is received into, in order.
// A short frame (an ACK) takes the first only, one of the usual MTU the first
// two; together they hold 64 KiB and its headers. Each is the size of one of
// gVisor's pools, so that a full view leaves no room behind it.
var viewSizes = [...]int{128, 2048, 16384, 16384, 16384, 16384}

// headroom is kept free at the front of the first view, for a VLAN tag.
const headroom = vlanTagSize

// slot is the place of one received frame.
type slot struct {
	virtio  [virtioSize]byte
	control controlBuffer
	views   [len(viewSizes)]*buffer.View
	// vectors are the virtio header and the views, without the headroom.
	vectors [1 + len(viewSizes)]unix.Iovec
	// parts are the bytes of the frame in the views, while it is looked at.
	parts [len(viewSizes)][]byte
	// skip is how much of the headroom the frame leaves free.
	skip int
}

// prepare fills the slot with views where it has none, and points the message
// at it.
func (s *slot) prepare(m *message) {
	vectors := appendVector(s.vectors[:0], s.virtio[:])
	for i, v := range s.views {
		if v == nil {
			v = buffer.NewViewSize(viewSizes[i])
			s.views[i] = v
		}
		b := v.AsSlice()
		if i == 0 {
			b = b[headroom:]
		}
		vectors = appendVector(vectors, b)
	}
	m.header = unix.Msghdr{Iov: &vectors[0]}
	m.header.SetIovlen(len(vectors))
	control := s.control.bytes()
	m.header.Control = &control[0]
	m.header.SetControllen(len(control))
}

// frame returns the bytes of a received frame of a size, in parts. A tag that
// the kernel took out is back in its place.
func (s *slot) frame(size int, m *message) [][]byte {
	s.skip = headroom
	control := s.control.bytes()[:m.header.Controllen]
	if tag, ok := auxiliaryTag(control); ok && size >= tagOffset {
		restoreTag(s.views[0].AsSlice(), tag)
		s.skip, size = 0, size+vlanTagSize
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

// take moves the frame of parts out of the slot, which prepare then fills
// again.
func (s *slot) take(parts [][]byte) buffer.Buffer {
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

// release gives the views back.
func (s *slot) release() {
	for i, v := range s.views {
		if v != nil {
			v.Release()
			s.views[i] = nil
		}
	}
}
