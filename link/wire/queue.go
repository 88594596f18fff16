package wire

import (
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// queue holds the frames of one direction between the writers and the one who
// delivers them. The deliverer takes all that waits at once, so writers and
// deliverer meet for a few instructions a batch, and a writer wakes the
// deliverer only when it sleeps.
type queue struct {
	maxFrames int
	maxBytes  int
	// deliver delivers frames and drops the references.
	deliver func([]*stack.PacketBuffer)
	// inline has the frames delivered by the writer: there is no goroutine.
	inline bool

	// mu guards the following.
	mu      sync.Mutex
	wake    sync.Cond
	waiting []*stack.PacketBuffer
	spare   []*stack.PacketBuffer // the memory of the batch before
	bytes   int                   // of those waiting
	running bool                  // the goroutine was started, or a writer delivers
	asleep  bool                  // the goroutine waits for wake
	closed  bool
	done    chan struct{} // closed when the goroutine has ended
}

func (q *queue) init(maxFrames, maxBytes int, inline bool, deliver func([]*stack.PacketBuffer)) {
	q.maxFrames, q.maxBytes = maxFrames, maxBytes
	q.inline = inline
	q.deliver = deliver
	q.wake.L = &q.mu
	q.done = make(chan struct{})
}

// push takes over frames, whose references it owns, and returns how many of them
// were taken: fewer than all when the queue is full or closed. It drops the
// references of the others.
func (q *queue) push(frames []*stack.PacketBuffer) int {
	q.mu.Lock()
	n := 0
	if !q.closed {
		n = q.fitLocked(frames)
		q.waiting = append(q.waiting, frames[:n]...)
	}
	run, wake := false, false
	if n > 0 {
		run = !q.running
		q.running = true
		wake = q.asleep
		q.asleep = false
	}
	q.mu.Unlock()
	if wake {
		q.wake.Signal()
	}
	for _, f := range frames[n:] {
		f.DecRef()
	}
	if run {
		if q.inline {
			q.drain()
		} else {
			go q.run()
		}
	}
	return n
}

// fitLocked returns how many of the frames there is room for, and counts their
// bytes.
func (q *queue) fitLocked(frames []*stack.PacketBuffer) int {
	room := min(q.maxFrames-len(q.waiting), len(frames))
	for i, f := range frames[:room] {
		size := f.Size()
		if q.bytes+size > q.maxBytes && q.bytes > 0 {
			return i
		}
		q.bytes += size
	}
	return room
}

// takeLocked returns all frames that wait.
func (q *queue) takeLocked() []*stack.PacketBuffer {
	batch := q.waiting
	q.waiting, q.spare = q.spare[:0], nil
	q.bytes = 0
	return batch
}

// run delivers until the queue is closed.
func (q *queue) run() {
	defer close(q.done)
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.waiting) == 0 && !q.closed {
			q.asleep = true
			q.wake.Wait()
		}
		if q.closed {
			return
		}
		batch := q.takeLocked()
		q.mu.Unlock()
		q.deliver(batch)
		clear(batch)
		q.mu.Lock()
		q.spare = batch[:0]
	}
}

// drain delivers what waits, in the goroutine of a writer.
func (q *queue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 && !q.closed {
		batch := q.takeLocked()
		q.mu.Unlock()
		q.deliver(batch)
		clear(batch)
		q.mu.Lock()
		q.spare = batch[:0]
	}
	q.running = false
}

// close drops what waits, has later pushes take nothing, and waits until the
// goroutine has ended. It returns how many frames it dropped.
func (q *queue) close() int {
	q.mu.Lock()
	q.closed = true
	dropped := q.waiting
	q.waiting = nil
	wait := q.running && !q.inline
	q.asleep = false
	q.mu.Unlock()
	q.wake.Signal()
	for _, f := range dropped {
		f.DecRef()
	}
	if wait {
		<-q.done
	}
	return len(dropped)
}
