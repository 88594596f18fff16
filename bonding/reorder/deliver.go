package reorder

import (
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var nodes = sync.Pool{New: func() any { return new(node) }}

// keep takes a reference of a packet, and counts its memory.
func (s *Stage) keep(pkt *stack.PacketBuffer, size int64) *node {
	n := nodes.Get().(*node)
	n.pkt, n.size = pkt.IncRef(), size
	s.bytes.Add(size)
	return n
}

// passLocked delivers a frame whose turn it is, and what follows it, or leaves
// both to the goroutine that delivers the flow. In a flow that is in order the
// frame is delivered at once, without a reference or a node.
func (s *Stage) passLocked(set *set, f *flow, pkt *stack.PacketBuffer) {
	if !f.delivering && f.ready.first == nil {
		f.settle(filled, s.ticker.now.Load(), s.counters)
		f.delivering = true
		set.mu.Unlock()
		s.deliver(pkt)
		set.mu.Lock()
		s.drainLocked(set, f)
		return
	}
	size := int64(pkt.MemSize())
	if f.delivering && s.bytes.Load()+size > s.maxBytes {
		// Whoever delivers the flow is held up, and there is no room to leave
		// the frame with it. So this goroutine is held up too.
		s.counters.overflow.Add(1)
		f.settle(filled, s.ticker.now.Load(), s.counters)
		set.mu.Unlock()
		s.deliver(pkt)
		set.mu.Lock()
		return
	}
	f.ready.push(s.keep(pkt, size))
	s.settleLocked(set, f, filled)
}

// settleLocked delivers what of a flow no longer has to wait.
func (s *Stage) settleLocked(set *set, f *flow, why reason) {
	f.settle(why, s.ticker.now.Load(), s.counters)
	if !f.delivering {
		s.drainLocked(set, f)
	}
}

// turn is how many frames a goroutine delivers, about, before it leaves the rest
// to the next that comes by. Else the goroutine of one link might be kept busy
// with what another's leaves it, and would not come to its own frames.
const turn = 64

// drainLocked delivers what is ready of a flow, and what becomes so in the
// meantime, with the lock free in between. The caller is the one who delivers
// the flow. What is left after its turn goes to whoever has the flow's next
// frame, or to the ticker.
func (s *Stage) drainLocked(set *set, f *flow) {
	for done := 0; f.ready.first != nil; {
		if done >= turn && !s.closed.Load() {
			set.waiting.Store(true)
			s.ticker.start()
			break
		}
		f.delivering = true
		batch := f.ready
		done += batch.n
		f.ready = list{}
		set.mu.Unlock()
		s.deliverAll(batch)
		set.mu.Lock()
	}
	f.delivering = false
}

func (s *Stage) deliverAll(batch list) {
	for n := batch.pop(); n != nil; n = batch.pop() {
		s.deliver(n.pkt)
		s.bytes.Add(-n.size)
		n.pkt.DecRef()
		*n = node{}
		nodes.Put(n)
	}
}
