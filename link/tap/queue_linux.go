package tap

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// queue is one queue of a device with what it takes to end its receiver.
type queue struct {
	fd int
	// wakeup is an eventfd: readable when the receiver is to end.
	wakeup int
	// ending is set before wakeup is written, for a receiver too busy to wait.
	ending atomic.Bool
}

// end has the queue's receiver end.
func (q *queue) end() {
	q.ending.Store(true)
	// Eight bytes to an eventfd that is written once cannot fail.
	unix.Write(q.wakeup, []byte{1, 1, 1, 1, 1, 1, 1, 1})
}

// close closes the descriptors.
func (q *queue) close() {
	unix.Close(q.fd)
	if q.wakeup >= 0 {
		unix.Close(q.wakeup)
	}
}

// closeQueues closes queues whose receivers have ended.
func closeQueues(queues []*queue) {
	for _, q := range queues {
		q.close()
	}
}
