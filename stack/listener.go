package stack

import (
	"net"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Listener accepts the TCP connections of an address of a Host.
type Listener struct {
	s     *socket
	local net.Addr
}

var _ net.Listener = (*Listener)(nil)

func newListener(s *socket) *Listener {
	l := &Listener{s: s}
	if local, err := s.ep.GetLocalAddress(); err == nil {
		l.local = netAddr("tcp", s.localAddr(local))
	}
	return l
}

// Accept implements net.Listener. The connections are *TCPConn.
func (l *Listener) Accept() (net.Conn, error) {
	s, err := l.accept()
	if err != nil {
		return nil, opError("accept", "tcp", nil, l.local, err)
	}
	return newTCPConn(s), nil
}

func (l *Listener) accept() (*socket, error) {
	l.s.rd.mu.Lock()
	defer l.s.rd.mu.Unlock()
	for {
		if err := l.s.begin(&l.s.rd); err != nil {
			return nil, err
		}
		ep, queue, err := l.s.ep.Accept(nil)
		switch err.(type) {
		case nil:
			return l.s.host.newSocket("tcp", l.s.proto, ep, queue)
		case *tcpip.ErrWouldBlock:
			if err := l.s.wait(&l.s.rd, nil); err != nil {
				return nil, err
			}
		default:
			return nil, l.s.reason("accept", err)
		}
	}
}

// Close implements net.Listener: no more connections are accepted, those in the
// backlog are reset, and waiting calls of Accept return net.ErrClosed.
func (l *Listener) Close() error {
	if err := l.s.close(); err != nil {
		return opError("close", "tcp", nil, l.local, err)
	}
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.local }

// SetDeadline sets the time after which Accept returns an error that wraps
// os.ErrDeadlineExceeded; the zero time means never.
func (l *Listener) SetDeadline(t time.Time) error {
	if err := l.s.setDeadline(t, &l.s.rd); err != nil {
		return opError("set", "tcp", nil, l.local, err)
	}
	return nil
}
