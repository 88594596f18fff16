package offload

import (
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// span is a run of bytes that lie spread over the views of a packet. It reads
// them where they are. A span is a value: methods that move return a new one.
// It must not outlive the packet it was made of.
type span struct {
	view *buffer.View // the view of the first byte, nil when size is 0
	off  int          // where in view the first byte is
	size int          // bytes in the span, all of them within the views
}

// frameOf returns the whole packet, from the first header to the last byte.
func frameOf(pkt *stack.PacketBuffer) span {
	views, off := pkt.AsViewList()
	return span{view: views.Front(), size: off + pkt.Size()}.from(off)
}

// dataOf returns the packet's data, from behind the headers.
func dataOf(pkt *stack.PacketBuffer) span {
	return frameOf(pkt).from(pkt.HeaderSize())
}

// from returns the span without its first n bytes; n is at most s.size.
func (s span) from(n int) span {
	s.off += n
	s.size -= n
	for s.size > 0 && s.off >= s.view.Size() {
		s.off -= s.view.Size()
		s.view = s.view.Next()
	}
	if s.size == 0 {
		return span{}
	}
	return s
}

// read fills dst from the front of the span; len(dst) is at most s.size.
func (s span) read(dst []byte) {
	v, off := s.view, s.off
	for len(dst) > 0 {
		dst = dst[copy(dst, v.AsSlice()[off:]):]
		v, off = v.Next(), 0
	}
}

// head returns the first n bytes in one piece: in place where one view holds
// them, else copied to room. It must not be written to. n is at most s.size
// and len(room).
func (s span) head(n int, room []byte) []byte {
	if s.view != nil && s.view.Size()-s.off >= n {
		return s.view.AsSlice()[s.off : s.off+n]
	}
	s.read(room[:n])
	return room[:n]
}

// sum adds the first n bytes to a checksum whose bytes so far were even in
// number; n is at most s.size.
func (s span) sum(n int, initial uint16) uint16 {
	var c checksum.Checksumer
	v, off := s.view, s.off
	for n > 0 {
		b := v.AsSlice()[off:]
		if len(b) > n {
			b = b[:n]
		}
		c.Add(b)
		n -= len(b)
		v, off = v.Next(), 0
	}
	return checksum.Combine(initial, c.Checksum())
}

// share returns a buffer of the first n bytes that shares their memory; n is
// at most s.size.
//
// Each view is cloned by itself. Append would copy into the free end of the
// last view if that were the only one on its memory, but the packet holds the
// memory too, so nothing is ever copied.
func (s span) share(n int) buffer.Buffer {
	var b buffer.Buffer
	v, off := s.view, s.off
	for n > 0 {
		part := v.Clone()
		part.TrimFront(off)
		part.CapLength(n)
		n -= part.Size()
		// Append fails only where it has to copy.
		_ = b.Append(part)
		v, off = v.Next(), 0
	}
	return b
}
