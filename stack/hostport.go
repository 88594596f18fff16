package stack

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
)

// endpointAddress is a network and address as Dial and Listen take them.
type endpointAddress struct {
	// transport is "tcp" or "udp".
	transport string
	// version is 4 or 6 where the network insists on it ("tcp4"), else 0.
	version int
	// at is the address and port. Its address is the zero Addr for any.
	at netip.AddrPort
	// nic is the interface that the address's zone names, 0 for none.
	nic tcpip.NICID
}

// parse reads a network, one of transport, transport+"4" and transport+"6", and
// an address "host:port". The host is a literal IP address; empty and
// unspecified ones mean any. It must never panic, whatever it is given.
func (h *Host) parse(network, address, transport string) (endpointAddress, error) {
	a := endpointAddress{transport: transport}
	switch network {
	case transport:
	case transport + "4":
		a.version = 4
	case transport + "6":
		a.version = 6
	default:
		return a, net.UnknownNetworkError(network)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return a, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return a, &net.AddrError{Err: "port must be a number from 0 to 65535", Addr: address}
	}
	addr, nic, err := h.parseHost(host)
	if err != nil {
		return a, err
	}
	a.nic = nic
	if addr.IsValid() && a.version != 0 && addr.Is4() != (a.version == 4) {
		return a, &net.AddrError{Err: fmt.Sprintf("%s needs an IPv%d address", network, a.version), Addr: host}
	}
	if !h.ipv6 && (a.version == 6 || addr.Is6()) {
		return a, fmt.Errorf("%s has no IPv6: that needs a link with an MTU of at least %d: %w", h.name, minIPv6MTU, syscall.EAFNOSUPPORT)
	}
	a.at = netip.AddrPortFrom(addr, uint16(number))
	return a, nil
}

// parseHost returns the zero Addr for any, and the interface that the zone names.
func (h *Host) parseHost(host string) (netip.Addr, tcpip.NICID, error) {
	if host == "" {
		return netip.Addr{}, 0, nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("address %q: %w", host, errNames)
	}
	nic, err := h.interfaceOf(addr.Zone())
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("address %s: %w", host, err)
	}
	addr = addr.WithZone("").Unmap()
	if addr.IsUnspecified() {
		return netip.Addr{}, 0, nil
	}
	return addr, nic, nil
}

// protocol returns the network protocol of an endpoint for the address. Where
// that is any and both versions will do, it is IPv6, which takes IPv4 as well.
func (a endpointAddress) protocol(h *Host) (proto tcpip.NetworkProtocolNumber, onlyV6 bool) {
	switch {
	case a.at.Addr().IsValid():
		return protocolOf(a.at.Addr()), a.at.Addr().Is6()
	case a.version == 4 || !h.ipv6:
		return ipv4.ProtocolNumber, false
	default:
		return ipv6.ProtocolNumber, a.version == 6
	}
}

// netAddr returns the address in the form of package net.
func (a endpointAddress) netAddr() net.Addr { return netAddr(a.transport, a.at) }

func netAddr(transport string, at netip.AddrPort) net.Addr {
	if transport == "tcp" {
		return net.TCPAddrFromAddrPort(at)
	}
	return net.UDPAddrFromAddrPort(at)
}

// remote settles where a Dial goes: an unspecified address is the host itself,
// and an IPv6 destination waits until the host has addresses to speak from.
func (h *Host) remote(ctx context.Context, a endpointAddress) (endpointAddress, error) {
	addr := a.at.Addr()
	if addr.IsLoopback() {
		return a, fmt.Errorf("%s has no loopback interface: %w", h.name, syscall.ENETUNREACH)
	}
	if !addr.IsValid() || addr.Is6() {
		if err := h.awaitAddresses(ctx, func(own netip.Addr) bool { return own.Is6() }); err != nil {
			return a, err
		}
	}
	if !addr.IsValid() {
		own, ok := h.ownAddress(a.version)
		if !ok {
			return a, fmt.Errorf("%s has no address to reach itself by: %w", h.name, syscall.EADDRNOTAVAIL)
		}
		a.at = netip.AddrPortFrom(own, a.at.Port())
	}
	return a, nil
}

// ownAddress returns the host's first address of an IP version, or of any for
// 0, where IPv4 goes first.
func (h *Host) ownAddress(version int) (own netip.Addr, ok bool) {
	for _, a := range h.Addresses() {
		is4 := a.Prefix.Addr().Is4()
		switch {
		case a.State != Assigned || (version == 4 && !is4) || (version == 6 && is4):
		case is4 && version == 0:
			return a.Prefix.Addr(), true
		case !ok:
			own, ok = a.Prefix.Addr(), true
		}
	}
	return own, ok
}
