package stack

import (
	"context"
	"fmt"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

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
