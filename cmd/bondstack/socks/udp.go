package socks

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// association is a client's UDP ASSOCIATE, and the far side of the connection by
// which the client keeps it: it ends when that does, and ends that when it cannot
// go on.
type association struct {
	server *Server
	// here is the host's socket, with which the client speaks.
	here net.PacketConn
	// client is who speaks: its address is that of the connection, its port
	// the one it named, or that of its first datagram.
	client atomic.Pointer[netip.AddrPort]
	// passed holds a token when a datagram has passed, which keeps the
	// connection from being idle.
	passed chan struct{}
	done   chan struct{}
	end    sync.Once
}

var _ net.Conn = (*association)(nil)

// associate makes an association. to is where the client says that it will send
// from, or zeros.
func (s *Server) associate(client net.Conn, to address) (net.Conn, error) {
	host, ok := client.LocalAddr().(*net.TCPAddr)
	peer, ok2 := client.RemoteAddr().(*net.TCPAddr)
	if !ok || !ok2 {
		return nil, fmt.Errorf("the client is connected by %s, not by TCP", client.LocalAddr().Network())
	}
	here, err := net.ListenPacket("udp", net.JoinHostPort(host.AddrPort().Addr().String(), "0"))
	if err != nil {
		return nil, err
	}
	a := &association{server: s, here: here, passed: make(chan struct{}, 1), done: make(chan struct{})}
	from := netip.AddrPortFrom(peer.AddrPort().Addr().Unmap(), to.port)
	a.client.Store(&from)
	go a.receive()
	return a, nil
}

// receive passes the client's datagrams on.
func (a *association) receive() {
	defer a.server.flows.End(a)
	defer a.Close()
	b := make([]byte, 64<<10)
	for {
		n, from, err := a.here.ReadFrom(b)
		if err != nil {
			return
		}
		udp, ok := from.(*net.UDPAddr)
		if !ok || !a.isClient(udp.AddrPort()) {
			a.server.bad.Add(1)
			continue
		}
		if _, _, err := parseDatagram(b[:n]); err != nil {
			a.server.bad.Add(1)
			continue
		}
		a.touch()
		_ = a.server.flows.Send(a, b[:n]) // counted
	}
}

// isClient reports whether a datagram is the client's, whose port the first one
// tells.
func (a *association) isClient(from netip.AddrPort) bool {
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	client := a.client.Load()
	if client.Port() == 0 && client.Addr().WithZone("") == from.Addr().WithZone("") {
		a.client.Store(&from)
		return true
	}
	return *client == from
}

func (a *association) touch() {
	select {
	case a.passed <- struct{}{}:
	default:
	}
}

// Read tells, with no bytes, that datagrams pass, until the association ends.
func (a *association) Read([]byte) (int, error) {
	select {
	case <-a.passed:
		return 0, nil
	case <-a.done:
		return 0, net.ErrClosed
	}
}

// Write takes what the client has no reason to send.
func (a *association) Write(b []byte) (int, error) { return len(b), nil }

// CloseWrite is called when the client has ended its connection, and the
// association with it.
func (a *association) CloseWrite() error { return a.Close() }

// Close ends the association.
func (a *association) Close() error {
	a.end.Do(func() {
		close(a.done)
		a.here.Close()
	})
	return nil
}

// LocalAddr returns where the client shall send to.
func (a *association) LocalAddr() net.Addr { return a.here.LocalAddr() }

// RemoteAddr returns nil: a client may speak with many.
func (*association) RemoteAddr() net.Addr { return nil }

// SetDeadline does nothing: the relay sets none.
func (*association) SetDeadline(time.Time) error      { return nil }
func (*association) SetReadDeadline(time.Time) error  { return nil }
func (*association) SetWriteDeadline(time.Time) error { return nil }

// openFlow makes the socket on the stack for a client.
func (s *Server) openFlow(_ context.Context, a *association) (net.Conn, error) {
	pc, err := s.opts.Stack.ListenPacket("udp", ":0")
	if err != nil {
		return nil, err
	}
	return &flow{PacketConn: pc, a: a}, nil
}

// replyFlow sends an answer to the client.
func replyFlow(a *association, datagram []byte) error {
	a.touch()
	_, err := a.here.WriteTo(datagram, net.UDPAddrFromAddrPort(*a.client.Load()))
	return err
}

// flow is the stack's side of an association. What is written to it and read from
// it has the header of RFC 1928, section 7.
type flow struct {
	net.PacketConn
	a *association

	// name is the last name that was resolved, and ip what it gave.
	name string
	ip   netip.Addr
}

var _ net.Conn = (*flow)(nil)

// Write sends a client's datagram. The relay calls it for one at a time.
func (f *flow) Write(b []byte) (int, error) {
	to, payload, err := parseDatagram(b)
	if err != nil {
		return 0, err
	}
	ip, err := f.resolve(to)
	if err != nil {
		return 0, err
	}
	if _, err := f.WriteTo(payload, net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, to.port))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// resolve returns the first address of a datagram's destination.
func (f *flow) resolve(to address) (netip.Addr, error) {
	if to.name == "" {
		return to.ip, nil
	}
	if to.name == f.name {
		return f.ip, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
	defer cancel()
	addrs, err := f.a.server.resolve(ctx, to)
	if err != nil {
		return netip.Addr{}, err
	}
	f.name, f.ip = to.name, addrs[0]
	return f.ip, nil
}

// Read receives a datagram for the client.
func (f *flow) Read(b []byte) (int, error) {
	n, from, err := f.ReadFrom(b[maxHeader:])
	if err != nil {
		return 0, err
	}
	udp, ok := from.(*net.UDPAddr)
	if !ok {
		return 0, fmt.Errorf("a datagram from %v, not from a UDP address", from)
	}
	return len(appendDatagram(b[:0], udp.AddrPort(), b[maxHeader:maxHeader+n])), nil
}

// RemoteAddr returns nil: a client may speak with many.
func (*flow) RemoteAddr() net.Addr { return nil }
