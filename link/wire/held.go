package wire

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// heldFrame is a frame that arrives at a later time.
type heldFrame struct {
	due   tcpip.MonotonicTime
	seq   uint64 // the order among frames due at one time
	frame *stack.PacketBuffer
}

func (h *heldFrame) before(o *heldFrame) bool {
	if h.due != o.due {
		return h.due.Before(o.due)
	}
	return h.seq < o.seq
}

// heldFrames is a binary heap, the next frame first. It is written out here
// because container/heap would allocate for each frame.
type heldFrames []heldFrame

func (h *heldFrames) push(f heldFrame) {
	s := append(*h, f)
	*h = s
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].before(&s[up]) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

// pop removes the next frame. The heap must not be empty.
func (h *heldFrames) pop() *stack.PacketBuffer {
	s := *h
	first := s[0].frame
	n := len(s) - 1
	s[0], s[n] = s[n], heldFrame{}
	*h = s[:n]
	s[:n].sink(0)
	return first
}

// sink moves the frame at i down to its place.
func (s heldFrames) sink(i int) {
	for {
		next := 2*i + 1
		if next >= len(s) {
			return
		}
		if r := next + 1; r < len(s) && s[r].before(&s[next]) {
			next = r
		}
		if !s[next].before(&s[i]) {
			return
		}
		s[i], s[next] = s[next], s[i]
		i = next
	}
}

// dueAt has every frame arrive at t, in the order in which they would have
// arrived.
func (h *heldFrames) dueAt(t tcpip.MonotonicTime) {
	var sorted heldFrames
	for len(*h) > 0 {
		due := (*h)[0].due
		sorted = append(sorted, heldFrame{due: due, seq: uint64(len(sorted)), frame: h.pop()})
	}
	for i := range sorted {
		sorted[i].due = t
	}
	*h = sorted // in order, so it is a heap
}
