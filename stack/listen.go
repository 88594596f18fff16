package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

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
	if err := h.awaitAddresses(context.Background(), func(a netip.Addr) bool { return a == at.at.Addr() }); err != nil {
		return nil, opError("listen", network, nil, at.netAddr(), err)
	}
	s, err := h.listen(at)
	if err != nil {
		return nil, opError("listen", network, nil, at.netAddr(), err)
	}
	return newListener(s), nil
}

// portTries is how often a free port is picked anew, when one was picked that a
// listener has on another address.
const portTries = 64

// listen makes a listening socket.
//
// Listeners reuse addresses, as those of package net do, so that the
// connections that an old listener left in TIME-WAIT do not keep its port.
// Linux then still lets no two of them listen in one place; gVisor does, where
// one has an address and the other has all. So the host looks itself.
func (h *Host) listen(at endpointAddress) (*socket, error) {
	h.listeners.mu.Lock()
	defer h.listeners.mu.Unlock()
	for range portTries {
		s, err := h.bind(at)
		if err != nil {
			return nil, err
		}
		bound := at
		if local, err := s.ep.GetLocalAddress(); err == nil {
			bound.at = netip.AddrPortFrom(at.at.Addr(), local.Port)
		}
		if h.listeners.conflict(bound) {
			s.close()
			if at.at.Port() == 0 {
				continue
			}
			break
		}
		if err := s.ep.Listen(h.opts.Backlog); err != nil {
			defer s.close()
			return nil, s.reason("listen", err)
		}
		h.listeners.at[s] = bound
		return s, nil
	}
	return nil, callError("bind", &tcpip.ErrPortInUse{})
}

// listeners knows where a host listens.
type listeners struct {
	mu sync.Mutex
	at map[*socket]endpointAddress // guarded by mu
}

// conflict reports whether a listener is in a place already. It is called with
// mu held, and forgets those that have ended.
func (l *listeners) conflict(place endpointAddress) bool {
	for s, other := range l.at {
		switch {
		case s.ended() != nil:
			delete(l.at, s)
		case place.overlaps(other):
			return true
		}
	}
	return false
}

// overlaps reports whether a packet can be for both of two places.
func (a endpointAddress) overlaps(b endpointAddress) bool {
	if a.at.Port() != b.at.Port() {
		return false
	}
	if a.at.Addr().IsValid() && b.at.Addr().IsValid() {
		return a.at.Addr() == b.at.Addr()
	}
	return a.takes(4) && b.takes(4) || a.takes(6) && b.takes(6)
}

// takes reports whether packets of an IP version can be for a place.
func (a endpointAddress) takes(version int) bool {
	if addr := a.at.Addr(); addr.IsValid() {
		return addr.Is4() == (version == 4)
	}
	return a.version == 0 || a.version == version
}

// ListenPacket receives and sends UDP datagrams at an address. Networks are
// "udp", "udp4" and "udp6"; addresses and errors are those of Listen. The
// connection is a *UDPConn.
func (h *Host) ListenPacket(network, address string) (net.PacketConn, error) {
	at, err := h.parse(network, address, "udp")
	if err != nil {
		return nil, opError("listen", network, nil, nil, err)
	}
	// What it sends needs an address to come from.
	if err := h.awaitAddresses(context.Background(), at.sends); err != nil {
		return nil, opError("listen", network, nil, at.netAddr(), err)
	}
	s, err := h.bind(at)
	if err != nil {
		return nil, opError("listen", network, nil, at.netAddr(), err)
	}
	return newUDPConn(s, nil), nil
}

// sends reports whether an endpoint at a may send from an address.
func (a endpointAddress) sends(from netip.Addr) bool {
	if at := a.at.Addr(); at.IsValid() && !at.IsMulticast() {
		return at == from
	}
	return from.Is6() && a.takes(6)
}

// bind makes a socket at one of the host's addresses.
func (h *Host) bind(at endpointAddress) (*socket, error) {
	proto, onlyV6 := at.protocol(h)
	s, err := h.endpoint(at.transport, proto)
	if err != nil {
		return nil, err
	}
	options := s.ep.SocketOptions()
	options.SetV6Only(onlyV6)
	if at.transport == "tcp" {
		options.SetReuseAddress(true) // see listen
	} else {
		options.SetBroadcast(true) // as package net does
	}
	full := h.fullAddress(at.at, at.nic)
	if at.at.Addr().IsMulticast() {
		full.NIC = 0 // one binds to a group, and not on an interface
	}
	if err := s.ep.Bind(full); err != nil {
		defer s.close()
		reason := s.reason("bind", err)
		if errors.Is(reason, syscall.EADDRNOTAVAIL) {
			return nil, fmt.Errorf("%s is not an address of %s: %w", at.at.Addr(), h.name, reason)
		}
		return nil, reason
	}
	return s, nil
}
