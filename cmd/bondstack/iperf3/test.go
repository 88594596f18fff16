package iperf3

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// The ways a test ends before its time.
var (
	errBusy        = errors.New("the server is busy running a test, try again later")
	errServerEnded = errors.New("the server has terminated")
	errClientEnded = errors.New("the client has terminated")
)

// test is one test at one of its ends.
type test struct {
	set     *settings
	client  bool
	mss     int    // bytes
	block   []byte // what is sent
	streams []*stream
	shared  *datagrams  // of a server
	said    chan ending // the state that came while the test ran
	slaves  func() []SlaveBytes
	out     *printer
	report  *Report

	epoch   time.Time // what datagrams' times count from
	began   time.Time // of counting
	running atomic.Bool
	// quota counts down the blocks that may yet be sent, and toSend and
	// toReceive the bytes of the same until the test is over.
	quota, toSend, toReceive atomic.Int64

	reached   chan struct{} // closed when they are through
	reachOnce sync.Once
	stopped   chan struct{} // closed at the end
	failed    chan error    // a stream's fault
	workers   sync.WaitGroup
	senders   sync.WaitGroup

	cpu, peerCPU cpuUse
	cpuAt        cpuTimes     // when counting began
	slavesAt     []SlaveBytes // before the streams were there, or after what is omitted
	slavesLast   []SlaveBytes // at the last interval
}

func newTest(s *settings, client bool, o *Options, out *printer) *test {
	block := make([]byte, s.block)
	pattern(block)
	// The other end may send as soon as it has the streams: what comes before this
	// end counts is received then, but was carried now.
	carried := o.slaves()
	return &test{set: s, block: block, client: client, mss: o.mss(), slaves: o.slaves, out: out, report: &Report{},
		slavesAt: carried, slavesLast: carried, epoch: time.Now(), reached: make(chan struct{}), stopped: make(chan struct{}), failed: make(chan error, 1)}
}

// allow sets how many blocks may be sent, or as many bytes received, until the
// test is over.
func (t *test) allow(blocks int64) {
	bytes := int64(math.MaxInt64)
	if blocks <= math.MaxInt64/int64(t.set.block) {
		bytes = blocks * int64(t.set.block)
	}
	t.quota.Store(blocks)
	t.toSend.Store(bytes)
	t.toReceive.Store(bytes)
}

// takeBlock reports whether one more block is to be sent.
func (t *test) takeBlock() bool {
	select {
	case <-t.stopped:
		return false
	default:
		return t.quota.Add(-1) >= 0
	}
}

// count notes bytes that were sent or received.
func (t *test) count(left *atomic.Int64, n int) {
	if left.Add(-int64(n)) <= 0 {
		t.reachOnce.Do(func() { close(t.reached) })
	}
}

// start makes the streams run.
func (t *test) start() {
	t.running.Store(true)
	for _, s := range t.streams {
		switch {
		case s.sender:
			t.senders.Add(1)
			t.workers.Go(func() {
				defer t.senders.Done()
				t.ended(s.send(t))
			})
		case s.conn != nil:
			t.workers.Go(func() { t.ended(s.receive(t)) })
		}
	}
	if t.shared != nil {
		t.workers.Go(func() { t.shared.receive(t) })
	}
}

// ended notes the fault of a stream, the first one, while the test runs.
func (t *test) ended(err error) {
	if err == nil {
		return
	}
	select {
	case <-t.stopped:
	case t.failed <- err:
	default:
	}
}

// lastBlock is how long a client's sender may take for the block that it has begun:
// iperf3's servers hear of no end in the middle of one.
const lastBlock = time.Second

// halt ends sending.
func (t *test) halt() {
	close(t.stopped)
	deadline := time.Unix(1, 0)
	if t.client {
		deadline = time.Now().Add(lastBlock)
	}
	for _, s := range t.streams {
		if s.sender && s.conn != nil {
			s.conn.SetWriteDeadline(deadline)
		}
	}
	if t.shared != nil {
		t.shared.SetWriteDeadline(deadline)
	}
	t.senders.Wait()
	at := time.Since(t.began)
	for _, s := range t.streams {
		s.until, s.drained = at, s.bytes.Load()
	}
}

// closeSenders closes the streams by which a server has sent: iperf3's clients read
// whole blocks, and hear nothing else before that.
func (t *test) closeSenders() {
	for _, s := range t.streams {
		if s.sender && s.conn != nil {
			s.conn.Close()
		}
	}
}

// close closes the streams and waits for them.
func (t *test) close() {
	t.running.Store(false)
	for _, s := range t.streams {
		if s.conn != nil {
			s.conn.Close()
		}
	}
	if t.shared != nil {
		t.shared.Close()
	}
	t.workers.Wait()
}
