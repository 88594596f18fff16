package stack

import (
	"context"
	"errors"
	"net"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// errCancelled is wait's error when its caller no longer wants the result: the
// caller puts its context's error in its place.
var errCancelled = errors.New("operation was cancelled")

// Dial is DialContext without an end to its patience: TCP gives up by itself
// after some two minutes.
func (h *Host) Dial(network, address string) (net.Conn, error) {
	return h.DialContext(context.Background(), network, address)
}

// DialContext connects to an address. Networks are "tcp", "tcp4", "tcp6",
// "udp", "udp4" and "udp6"; the address is a host and a port number,
// such as "10.0.0.1:80", "[fe80::1]:80" or "example.org:80". Names are asked for as
// LookupNetIP does, and their addresses tried in turn, the next one a quarter of a
// second after the last (RFC 8305). An empty or unspecified host is this host itself. The connection is a *TCPConn or a *UDPConn.
//
// The context ends the dialling, not the connection. Errors are *net.OpError
// and wrap the context's error, or that of package syscall which a kernel would
// have given: ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT and so on.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if name, port, ok := splitName(address); ok && isTransport(network) {
		return h.dialName(ctx, network, name, port)
	}
	transport := "tcp"
	if strings.HasPrefix(network, "udp") {
		transport = "udp"
	}
	to, err := h.parse(network, address, transport)
	if err != nil {
		return nil, opError("dial", network, nil, nil, err)
	}
	if to, err = h.remote(ctx, to); err != nil {
		return nil, opError("dial", network, nil, to.netAddr(), err)
	}
	if err := ctx.Err(); err != nil {
		return nil, opError("dial", network, nil, to.netAddr(), err)
	}
	var c net.Conn
	if transport == "tcp" {
		c, err = h.dialTCP(ctx, to)
	} else {
		c, err = h.dialUDP(to)
	}
	if err != nil {
		return nil, opError("dial", network, nil, to.netAddr(), err)
	}
	return c, nil
}

// endpoint makes a gVisor endpoint and the socket around it.
func (h *Host) endpoint(transport string, proto tcpip.NetworkProtocolNumber) (*socket, error) {
	number := tcp.ProtocolNumber
	if transport == "udp" {
		number = udp.ProtocolNumber
	}
	var queue waiter.Queue
	ep, err := h.stack.NewEndpoint(number, proto, &queue)
	if err != nil {
		return nil, callError("socket", err)
	}
	return h.newSocket(transport, proto, ep, &queue)
}

func (h *Host) dialTCP(ctx context.Context, to endpointAddress) (net.Conn, error) {
	s, err := h.endpoint("tcp", protocolOf(to.at.Addr()))
	if err != nil {
		return nil, err
	}
	if err := s.connect(ctx, h.fullAddress(to.at, to.nic)); err != nil {
		s.close()
		return nil, err
	}
	return newTCPConn(s), nil
}

// connect does the handshake.
func (s *socket) connect(ctx context.Context, to tcpip.FullAddress) error {
	err := s.ep.Connect(to)
	for {
		switch err.(type) {
		case nil:
			return nil
		case *tcpip.ErrConnectStarted:
		default:
			return s.reason("connect", err)
		}
		switch waited := s.wait(&s.wr, ctx.Done()); waited {
		case nil:
		case errCancelled:
			return ctx.Err()
		default:
			return waited
		}
		err = s.ep.LastError()
		if err == nil && isConnecting(s.ep) {
			err = &tcpip.ErrConnectStarted{} // woken for nothing
		}
	}
}

func isConnecting(ep tcpip.Endpoint) bool {
	switch tcp.EndpointState(ep.State()) {
	case tcp.StateConnecting, tcp.StateSynSent, tcp.StateSynRecv:
		return true
	}
	return false
}

func (h *Host) dialUDP(to endpointAddress) (net.Conn, error) {
	s, err := h.endpoint("udp", protocolOf(to.at.Addr()))
	if err != nil {
		return nil, err
	}
	s.ep.SocketOptions().SetBroadcast(true) // as package net does
	if err := s.ep.Connect(h.fullAddress(to.at, to.nic)); err != nil {
		defer s.close()
		return nil, s.reason("connect", err)
	}
	return newUDPConn(s, to.netAddr()), nil
}
