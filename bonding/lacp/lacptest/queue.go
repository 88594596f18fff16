package lacptest

import "bondstack/bonding/lacp"

// event is a frame on its way, or something that a test does at an instant.
type event struct {
	at    lacp.Instant
	seq   uint64 // events of the same instant keep their order
	to    *Port
	cable *Cable // by which it came: lost if it is unplugged meanwhile
	frame *frame
	do    func()
}

type frame struct {
	pdu  [lacp.PDUSize]byte
	next *frame
}

// queue is a heap of events, by time.
type queue struct {
	heap []event
	seq  uint64
	free *frame // frames to be used again
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (q *queue) push(e event) {
	e.seq = q.seq
	q.seq++
	q.heap = append(q.heap, e)
	for i := len(q.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.heap[i].before(&q.heap[up]) {
			return
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

func (q *queue) pop() event {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := 2*i + 1
		if least >= last {
			break
		}
		if right := least + 1; right < last && q.heap[right].before(&q.heap[least]) {
			least = right
		}
		if !q.heap[least].before(&q.heap[i]) {
			break
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
	return top
}

func (q *queue) next() lacp.Instant {
	if len(q.heap) == 0 {
		return lacp.Never
	}
	return q.heap[0].at
}

func (q *queue) take(pdu []byte) *frame {
	f := q.free
	if f == nil {
		f = new(frame)
	} else {
		q.free = f.next
	}
	copy(f.pdu[:], pdu)
	return f
}

func (q *queue) give(f *frame) { f.next, q.free = q.free, f }
