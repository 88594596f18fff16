package stack

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Neighbors returns the addresses on the link of the host's first interface that have
// answered and are not known to have gone, in order.
func (h *Host) Neighbors() []netip.Addr {
	var found []netip.Addr
	for _, proto := range []tcpip.NetworkProtocolNumber{header.IPv4ProtocolNumber, header.IPv6ProtocolNumber} {
		list, err := h.stack.Neighbors(firstNIC, proto)
		if err != nil {
			continue // the interface has no such protocol, or has gone
		}
		for _, e := range list {
			switch e.State {
			case netstack.Reachable, netstack.Stale, netstack.Delay, netstack.Probe, netstack.Static:
				a := fromAddress(e.Addr)
				if a.Is6() && a.IsLinkLocalUnicast() {
					a = a.WithZone(h.name)
				}
				found = append(found, a)
			}
		}
	}
	slices.SortFunc(found, netip.Addr.Compare)
	return found
}

// NextHop returns the MAC address to which the host sends packets for an address: the
// neighbour's own, or its router's. Where it is not known the host asks for it, until
// the context ends.
func (h *Host) NextHop(ctx context.Context, to netip.Addr) (tcpip.LinkAddress, error) {
	fail := func(err error) (tcpip.LinkAddress, error) {
		return "", fmt.Errorf("stack: next hop to %s: %w", to, err)
	}
	proto, nic := protocolOf(to), tcpip.NICID(0)
	if needsNIC(to) {
		nic = firstNIC
	}
	route, err := h.stack.FindRoute(nic, tcpip.Address{}, toAddress(to), proto, false)
	if err != nil {
		return fail(errorOf(err))
	}
	defer route.Release()
	if mac := route.RemoteLinkAddress(); mac != "" { // groups and broadcast
		return mac, nil
	}
	hop := route.NextHop()
	if hop.BitLen() == 0 {
		hop = route.RemoteAddress()
	}
	found := make(chan netstack.LinkResolutionResult, 1)
	if err := h.stack.GetLinkAddress(route.NICID(), hop, route.LocalAddress(), proto, func(r netstack.LinkResolutionResult) { found <- r }); err != nil {
		if _, wait := err.(*tcpip.ErrWouldBlock); !wait {
			return fail(errorOf(err))
		}
	}
	select {
	case r := <-found:
		if r.Err != nil {
			return fail(errorOf(r.Err))
		}
		return r.LinkAddress, nil
	case <-ctx.Done():
		return fail(ctx.Err())
	}
}
