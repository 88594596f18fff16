package bonding

import (
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// gatherSize is how many of a frame's first bytes are gathered when a hash
// needs more than lie in one piece: room for 15 nested headers of some size.
// What lies deeper counts as cut off.
const gatherSize = 512

var gatherPool = sync.Pool{New: func() any { return new([gatherSize]byte) }}

// hashOf hashes a packet by the bond's policy. netstack pushes all headers into
// one piece, so that mostly that is enough.
func (s *snapshot) hashOf(pkt *stack.PacketBuffer) uint32 {
	size := pkt.Size()
	sum, complete := s.hash(firstBytes(pkt), size)
	if complete {
		return sum
	}
	buf := gatherPool.Get().(*[gatherSize]byte)
	n := gather(pkt, buf[:])
	sum, complete = s.hash(buf[:n], size)
	if !complete {
		sum, _ = s.hash(buf[:n], n)
	}
	gatherPool.Put(buf)
	return sum
}

// firstBytes returns the first piece of a packet's bytes.
func firstBytes(pkt *stack.PacketBuffer) []byte {
	views, offset := pkt.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		if offset < v.Size() {
			return v.AsSlice()[offset:]
		}
		offset -= v.Size()
	}
	return nil
}

// gather copies a packet's first bytes to buf and returns their number.
func gather(pkt *stack.PacketBuffer, buf []byte) int {
	n := 0
	views, offset := pkt.AsViewList()
	for v := views.Front(); v != nil && n < len(buf); v = v.Next() {
		if offset >= v.Size() {
			offset -= v.Size()
			continue
		}
		n += copy(buf[n:], v.AsSlice()[offset:])
		offset = 0
	}
	return n
}
