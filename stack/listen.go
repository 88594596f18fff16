package stack

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Listen accepts TCP connections at an address. Networks are "tcp", "tcp4" and
// "tcp6"; the address is a literal IP address of the host's, or an empty or
// unspecified one for all of them, and a port number, 0 for any free one. On
// "tcp", all means those of both IP versions. The listener is a *Listener.
//
// Errors are *net.OpError; they wrap syscall.EADDRINUSE when the port is taken,
// and syscall.EADDRNOTAVAIL when the address is not the host's.
func (h *Host) Listen(network, address string) (net.Listener, error) {
	at, err := h.parse(network, address, "tcp")
	if err != nil {
		return nil, opError("listen", network, nil, nil, err)
	}
	s, err := h.bind(at)
	if err != nil {
		return nil, opError("listen", network, nil, at.netAddr(), err)
	}
	if err := s.ep.Listen(h.opts.Backlog); err != nil {
		s.close()
		return nil, opError("listen", network, nil, at.netAddr(), callError("listen", err))
	}
	return newListener(s), nil
}

// ListenPacket receives and sends UDP datagrams at an address. Networks are
// "udp", "udp4" and "udp6"; addresses and errors are those of Listen. The
// connection is a *UDPConn.
func (h *Host) ListenPacket(network, address string) (net.PacketConn, error) {
	at, err := h.parse(network, address, "udp")
	if err != nil {
		return nil, opError("listen", network, nil, nil, err)
	}
	s, err := h.bind(at)
	if err != nil {
		return nil, opError("listen", network, nil, at.netAddr(), err)
	}
	return newUDPConn(s, nil), nil
}

// bind makes a socket at one of the host's addresses.
func (h *Host) bind(at endpointAddress) (*socket, error) {
	err := h.awaitAddresses(context.Background(), func(a netip.Addr) bool { return a == at.at.Addr() })
	if err != nil {
		return nil, err
	}
	proto, onlyV6 := at.protocol(h)
	s, err := h.endpoint(at.transport, proto)
	if err != nil {
		return nil, err
	}
	options := s.ep.SocketOptions()
	options.SetV6Only(onlyV6)
	if at.transport == "tcp" {
		// A new listener may take the port of connections that an old one
		// left in TIME-WAIT.
		options.SetReuseAddress(true)
	} else {
		options.SetBroadcast(true)
	}
	full := h.fullAddress(at.at)
	if at.at.Addr().IsMulticast() {
		full.NIC = 0 // one binds to a group, and not on an interface
	}
	if err := s.ep.Bind(full); err != nil {
		s.close()
		if _, notOurs := err.(*tcpip.ErrBadLocalAddress); notOurs {
			return nil, fmt.Errorf("%s is not an address of %s: %w", at.at.Addr(), h.name, callError("bind", err))
		}
		return nil, callError("bind", err)
	}
	return s, nil
}
