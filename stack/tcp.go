package stack

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// The keep-alive probes of every connection, as package net sets them.
const (
	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 15 * time.Second
	keepAliveCount    = 9
)

// TCPConn is a TCP connection of a Host. As with package net, any number of
// goroutines may use it: calls of Read take turns, calls of Write too.
type TCPConn struct {
	*socket
	// The addresses outlive the endpoint, which forgets them.
	local, remote net.Addr
	// fault is the error that broke the connection. gVisor tells it once, to
	// whichever call comes first; the others would take the end for a clean
	// one.
	fault atomic.Pointer[error]
}

var (
	_ net.Conn = (*TCPConn)(nil)
	_ interface {
		CloseRead() error
		CloseWrite() error
	} = (*TCPConn)(nil)
)

func newTCPConn(s *socket) *TCPConn {
	c := &TCPConn{socket: s}
	if local, err := s.ep.GetLocalAddress(); err == nil {
		c.local = netAddr("tcp", s.host.addrPort(local))
	}
	if remote, err := s.ep.GetRemoteAddress(); err == nil {
		c.remote = netAddr("tcp", s.host.addrPort(remote))
	}
	idle := tcpip.KeepaliveIdleOption(keepAliveIdle)
	interval := tcpip.KeepaliveIntervalOption(keepAliveInterval)
	// TCP knows each of these, so they cannot fail.
	_ = s.ep.SetSockOpt(&idle)
	_ = s.ep.SetSockOpt(&interval)
	_ = s.ep.SetSockOptInt(tcpip.KeepaliveCountOption, keepAliveCount)
	s.ep.SocketOptions().SetKeepAlive(true)
	return c
}

// Read implements net.Conn. It returns io.EOF after the peer closed its side
// in order, and an error that wraps syscall.ECONNRESET, ETIMEDOUT and the like
// when the connection broke.
func (c *TCPConn) Read(b []byte) (int, error) {
	c.rd.mu.Lock()
	defer c.rd.mu.Unlock()
	for {
		if err := c.begin(&c.rd); err != nil {
			return 0, c.opError("read", err)
		}
		if len(b) == 0 {
			return 0, nil
		}
		c.rd.writer = b
		res, err := c.ep.Read(&c.rd.writer, tcpip.ReadOptions{})
		c.rd.writer = nil
		switch err.(type) {
		case nil:
			c.ep.ModerateRecvBuf(res.Count)
			return res.Count, nil
		case *tcpip.ErrWouldBlock:
			if err := c.wait(&c.rd, nil); err != nil {
				return 0, c.opError("read", err)
			}
		default:
			if err := c.broken("read", err); err != nil {
				return 0, c.opError("read", err)
			}
			return 0, io.EOF
		}
	}
}

// Write implements net.Conn.
func (c *TCPConn) Write(b []byte) (int, error) {
	c.wr.mu.Lock()
	defer c.wr.mu.Unlock()
	for done := 0; ; {
		if err := c.begin(&c.wr); err != nil {
			return done, c.opError("write", err)
		}
		if done == len(b) {
			return done, nil
		}
		c.wr.reader.Reset(b[done:])
		n, err := c.ep.Write(&c.wr.reader, tcpip.WriteOptions{})
		c.wr.reader.Reset(nil)
		done += int(n)
		switch err.(type) {
		case nil:
			if done == len(b) {
				return done, nil
			}
		case *tcpip.ErrWouldBlock:
			if err := c.wait(&c.wr, nil); err != nil {
				return done, c.opError("write", err)
			}
		default:
			if err := c.broken("write", err); err != nil {
				return done, c.opError("write", err)
			}
			return done, c.opError("write", callError("write", &tcpip.ErrClosedForSend{}))
		}
	}
}

// broken returns why the connection cannot go on, nil when the direction was
// closed in order.
func (c *TCPConn) broken(call string, err tcpip.Error) error {
	switch err.(type) {
	case *tcpip.ErrClosedForReceive, *tcpip.ErrClosedForSend:
		if ended := c.ended(); ended != nil {
			return ended
		}
		if tcp.EndpointState(c.ep.State()) != tcp.StateError {
			return nil
		}
		if fault := c.fault.Load(); fault != nil {
			return *fault
		}
		// The call that was told has yet to note it.
		return callError(call, &tcpip.ErrConnectionReset{})
	}
	fault := c.reason(call, err)
	c.fault.CompareAndSwap(nil, &fault)
	return fault
}

// Close implements net.Conn. What was written is still sent; what was not read
// is lost, and has the peer reset (RFC 2525, section 2.17).
func (c *TCPConn) Close() error {
	if err := c.close(); err != nil {
		return c.opError("close", err)
	}
	return nil
}

// CloseRead shuts the reading side: Read returns io.EOF.
func (c *TCPConn) CloseRead() error { return c.shutdown(tcpip.ShutdownRead) }

// CloseWrite shuts the writing side: the peer reads io.EOF after what was
// written.
func (c *TCPConn) CloseWrite() error { return c.shutdown(tcpip.ShutdownWrite) }

func (c *TCPConn) shutdown(how tcpip.ShutdownFlags) error {
	if err := c.ended(); err != nil {
		return c.opError("close", err)
	}
	if err := c.ep.Shutdown(how); err != nil {
		return c.opError("close", callError("shutdown", err))
	}
	return nil
}

// SetLinger says what Close does with what is yet to be sent: with 0 it is
// thrown away and the peer is reset, with a negative number (the default) it is
// sent. Positive numbers mean the same as negative ones: Close never waits.
func (c *TCPConn) SetLinger(seconds int) error {
	if err := c.ended(); err != nil {
		return c.opError("set", err)
	}
	c.ep.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: seconds == 0})
	return nil
}

// SetNoDelay says whether small writes are sent at once, which is the default,
// or gathered (Nagle's algorithm).
func (c *TCPConn) SetNoDelay(noDelay bool) error {
	if err := c.ended(); err != nil {
		return c.opError("set", err)
	}
	c.ep.SocketOptions().SetDelayOption(!noDelay)
	return nil
}

// SetKeepAlive says whether an idle peer is probed, by default every 15 s; the
// connection breaks after 9 probes without an answer. The default is on.
func (c *TCPConn) SetKeepAlive(on bool) error {
	if err := c.ended(); err != nil {
		return c.opError("set", err)
	}
	c.ep.SocketOptions().SetKeepAlive(on)
	return nil
}

// SetKeepAlivePeriod sets the time of silence before a probe, and from one
// probe to the next; at least 1 s.
func (c *TCPConn) SetKeepAlivePeriod(d time.Duration) error {
	if d < time.Second {
		return c.opError("set", fmt.Errorf("keep-alive period %v is too short: allowed are 1s and more: %w", d, syscall.EINVAL))
	}
	if err := c.ended(); err != nil {
		return c.opError("set", err)
	}
	idle, interval := tcpip.KeepaliveIdleOption(d), tcpip.KeepaliveIntervalOption(d)
	_ = c.ep.SetSockOpt(&idle)
	_ = c.ep.SetSockOpt(&interval)
	return nil
}

// LocalAddr implements net.Conn.
func (c *TCPConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *TCPConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *TCPConn) SetDeadline(t time.Time) error { return c.set(t, &c.rd, &c.wr) }

// SetReadDeadline implements net.Conn.
func (c *TCPConn) SetReadDeadline(t time.Time) error { return c.set(t, &c.rd) }

// SetWriteDeadline implements net.Conn.
func (c *TCPConn) SetWriteDeadline(t time.Time) error { return c.set(t, &c.wr) }

func (c *TCPConn) set(t time.Time, directions ...*direction) error {
	if err := c.setDeadline(t, directions...); err != nil {
		return c.opError("set", err)
	}
	return nil
}

func (c *TCPConn) opError(op string, err error) error {
	return opError(op, c.network, c.local, c.remote, err)
}
