package reorder

import "gvisor.dev/gvisor/pkg/tcpip/stack"

// node is a frame in the stage.
type node struct {
	next, prev *node
	pkt        *stack.PacketBuffer
	seq, end   uint32 // its piece of the sequence
	tick       uint32 // when it came
	size       int64  // memory, counted in Stage.bytes
}

// list is a list of frames. Those that are held are in the order of the
// sequence, equal ones in that of arrival.
type list struct {
	first, last *node
	n           int
}

// push adds a frame at the end.
func (l *list) push(n *node) { l.insertAfter(l.last, n) }

// insert puts a frame in its place. The search begins at the end, where the
// frames of the link that runs ahead belong.
func (l *list) insert(n *node) {
	at := l.last
	for at != nil && precedes(n.seq, at.seq) {
		at = at.prev
	}
	l.insertAfter(at, n)
}

// insertAfter puts a frame after another, or at the front (nil).
func (l *list) insertAfter(at, n *node) {
	next := l.first
	if at != nil {
		next = at.next
		at.next = n
	} else {
		l.first = n
	}
	n.prev, n.next = at, next
	if next != nil {
		next.prev = n
	} else {
		l.last = n
	}
	l.n++
}

// pop takes the first frame, nil if there is none.
func (l *list) pop() *node {
	n := l.first
	if n == nil {
		return nil
	}
	l.first = n.next
	if l.first != nil {
		l.first.prev = nil
	} else {
		l.last = nil
	}
	n.next = nil
	l.n--
	return n
}

// precedes reports whether a sequence number comes before another, by RFC 793's
// arithmetic modulo 2 to the 32.
func precedes(a, b uint32) bool { return int32(a-b) < 0 }
