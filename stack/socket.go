package stack

import (
	"bytes"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

// socket is what connections, listeners and packet connections have in common:
// a gVisor endpoint, two directions, and an end that wakes every waiting call.
type socket struct {
	host    *Host
	network string // as package net names it: "tcp", "udp"
	proto   tcpip.NetworkProtocolNumber
	ep      tcpip.Endpoint
	queue   *waiter.Queue
	rd, wr  direction

	// done is closed when the socket ends, and cause is set just before.
	done  chan struct{}
	cause atomic.Pointer[error]
}

// direction is one way through a socket. Its calls run one at a time, as those
// on a file descriptor of package net do.
type direction struct {
	deadline deadline
	// ready holds a token since gVisor last said that a call may proceed.
	ready chan struct{}
	entry waiter.Entry

	mu sync.Mutex
	// The following are guarded by mu. They are here so that a call does not
	// allocate them.
	reader bytes.Reader
	writer tcpip.SliceWriter
}

// newSocket makes a socket of an endpoint and has the host know it, so that the
// host's end is the socket's. It returns an error, and closes the endpoint,
// when the host has ended already.
func (h *Host) newSocket(network string, proto tcpip.NetworkProtocolNumber, ep tcpip.Endpoint, queue *waiter.Queue) (*socket, error) {
	s := &socket{host: h, network: network, proto: proto, ep: ep, queue: queue, done: make(chan struct{})}
	const always = waiter.EventHUp | waiter.EventErr
	s.rd.init(h.opts.Clock, queue, waiter.ReadableEvents|always)
	s.wr.init(h.opts.Clock, queue, waiter.WritableEvents|always)
	if err := h.track(s); err != nil {
		ep.Close()
		return nil, err
	}
	return s, nil
}

func (d *direction) init(clock tcpip.Clock, queue *waiter.Queue, events waiter.EventMask) {
	d.deadline.init(clock)
	d.entry, d.ready = waiter.NewChannelEntry(events)
	queue.EventRegister(&d.entry)
}

// begin is called before each attempt at something that may block: it forgets
// an old token, so that the one that wait finds is of an event after the
// attempt began, and returns the reason why there shall be no attempt.
func (s *socket) begin(d *direction) error {
	select {
	case <-d.ready:
	default:
	}
	if err := s.ended(); err != nil {
		return err
	}
	if d.deadline.hasPassed() {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wait returns when another attempt may succeed, or the reason why not.
func (s *socket) wait(d *direction, cancel <-chan struct{}) error {
	select {
	case <-d.ready:
		return nil
	case <-s.done:
		return *s.cause.Load()
	case <-d.deadline.expired():
		return os.ErrDeadlineExceeded
	case <-cancel:
		return errCancelled
	}
}

// end has every call on the socket return cause, now and later. The first end
// stands; it returns whether this was the first.
func (s *socket) end(cause error) bool {
	if !s.cause.CompareAndSwap(nil, &cause) {
		return false
	}
	close(s.done)
	return true
}

// ended returns the cause of the end, nil before the end.
func (s *socket) ended() error {
	if cause := s.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// reason returns why a call failed: the socket's end, where that is the cause.
func (s *socket) reason(call string, err tcpip.Error) error {
	if ended := s.ended(); ended != nil {
		return ended
	}
	if !s.host.stack.HasNIC(firstNIC) {
		return errLinkGone // and the socket's end is on its way
	}
	return callError(call, err)
}

// close ends the socket by its user's wish. Only the first close does; that
// the link or the host ended it before makes no difference to the user.
func (s *socket) close() error {
	s.end(net.ErrClosed)
	if !s.host.untrack(s) {
		return net.ErrClosed
	}
	s.ep.Close()
	return nil
}

// abort ends the socket by the host's end or the link's.
func (s *socket) abort(cause error) {
	s.end(cause)
	s.ep.Abort()
}

// setDeadline moves the deadlines of the directions that are given.
func (s *socket) setDeadline(t time.Time, directions ...*direction) error {
	if s.ended() != nil {
		return net.ErrClosed
	}
	for _, d := range directions {
		d.deadline.set(t)
	}
	return nil
}
