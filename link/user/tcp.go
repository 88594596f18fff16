package user

import (
	"context"
	"io"
	"net"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"bondstack/link/relay"
)

// handleTCP carries a connection that the bond's side wants. The host is asked
// first, so that what it refuses is refused here too.
func (n *Network) handleTCP(req *tcp.ForwarderRequest) {
	id := req.ID()
	if err := n.opts.permitted(localOf(id)); err != nil {
		n.deny("tcp", id, err)
		req.Complete(true)
		return
	}
	completed := false
	_ = n.relay.Connection(func(ctx context.Context) (near, far net.Conn, err error) {
		if far, err = n.dial(ctx, "tcp", localOf(id)); err != nil {
			return nil, nil, err
		}
		completed = true
		if near, err = accept(req); err != nil {
			relay.Abort(far)
			return nil, nil, err
		}
		return near, far, nil
	}) // counted
	if !completed {
		req.Complete(true)
	}
}

// accept does the handshake with the bond's side.
func accept(req *tcp.ForwarderRequest) (net.Conn, error) {
	var queue waiter.Queue
	ep, err := req.CreateEndpoint(&queue)
	req.Complete(err != nil)
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.ECONNABORTED}
	}
	ep.SocketOptions().SetKeepAlive(true)
	return &tcpConn{TCPConn: gonet.NewTCPConn(&queue, ep), ep: ep}, nil
}

// tcpConn is a connection with the bond's side that can be reset.
type tcpConn struct {
	*gonet.TCPConn
	ep tcpip.Endpoint
}

// Read is that of gonet.TCPConn, which calls it an end in order when another call
// was told that the connection broke.
func (c *tcpConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if err == io.EOF && tcp.EndpointState(c.ep.State()) == tcp.StateError {
		err = syscall.ECONNRESET
	}
	return n, err
}

// SetLinger has Close reset the peer, with 0.
func (c *tcpConn) SetLinger(seconds int) error {
	c.ep.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: seconds == 0})
	return nil
}

// Close implements net.Conn. It ends calls that wait.
func (c *tcpConn) Close() error {
	_ = c.SetDeadline(time.Unix(1, 0)) // never fails
	return c.TCPConn.Close()
}
