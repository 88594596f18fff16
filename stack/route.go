package stack

import (
	"fmt"
	"net/netip"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Route says where the packets for a network go.
type Route struct {
	// Destination is the network: 0.0.0.0/0 or ::/0 for everything. Of
	// several routes to an address the one with the longest prefix is taken.
	Destination netip.Prefix
	// Gateway is the router, an address on the link. The zero Addr means that
	// the network itself is on the link.
	Gateway netip.Addr
}

// String returns "10.1.0.0/16 via 10.0.0.1", or "10.0.0.0/24 on link".
func (r Route) String() string {
	if !r.Gateway.IsValid() {
		return r.Destination.String() + " on link"
	}
	return r.Destination.String() + " via " + r.Gateway.String()
}

var (
	default4 = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	default6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
)

// allRoutes returns the routes that the options ask for, gateways included.
func (o HostOptions) allRoutes() []Route {
	routes := slices.Clone(o.Routes)
	for _, gw := range []netip.Addr{o.Gateway, o.Gateway6} {
		switch {
		case gw.Is4():
			routes = append(routes, Route{Destination: default4, Gateway: gw})
		case gw.Is6():
			routes = append(routes, Route{Destination: default6, Gateway: gw})
		}
	}
	return routes
}

// routeFaults returns the faults of the gateways and routes.
func (o HostOptions) routeFaults() (faults []error) {
	networks := slices.Clone(o.Addresses)
	for _, r := range o.Routes {
		if !r.Gateway.IsValid() {
			networks = append(networks, r.Destination)
		}
	}
	if o.Gateway6.IsValid() && !isIPv6(o.Gateway6) {
		faults = append(faults, fmt.Errorf("stack: Gateway6: %s is no IPv6 address", o.Gateway6))
	}
	if isIPv6(o.Gateway) && o.Gateway6.IsValid() {
		faults = append(faults, fmt.Errorf("stack: Gateway6: %s is a second IPv6 gateway: Gateway is %s", o.Gateway6, o.Gateway))
	}
	for _, g := range []struct {
		field string
		addr  netip.Addr
	}{{"Gateway", o.Gateway}, {"Gateway6", o.Gateway6}} {
		if g.addr.IsValid() {
			if err := checkGateway(g.addr, networks); err != nil {
				faults = append(faults, fmt.Errorf("stack: %s: %w", g.field, err))
			}
		}
	}
	for i, r := range o.Routes {
		if err := r.validate(networks); err != nil {
			faults = append(faults, fmt.Errorf("stack: Routes[%d]: %w", i, err))
		}
	}
	return faults
}

func isIPv6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() }

// validate returns what is wrong with a route of a host on networks.
func (r Route) validate(networks []netip.Prefix) error {
	switch {
	case !r.Destination.IsValid() || r.Destination.Addr().Is4In6():
		return fmt.Errorf("destination %s is not valid: an IPv4 or IPv6 prefix is needed", r.Destination)
	case r.Destination != r.Destination.Masked():
		return fmt.Errorf("destination %s has bits outside its prefix: %s is meant?", r.Destination, r.Destination.Masked())
	case !r.Gateway.IsValid():
		return nil
	case r.Gateway.Is4() != r.Destination.Addr().Is4():
		return fmt.Errorf("gateway %s and destination %s are of different IP versions", r.Gateway, r.Destination)
	}
	return checkGateway(r.Gateway, networks)
}

// checkGateway returns an error unless a router's address is on the link.
func checkGateway(gw netip.Addr, networks []netip.Prefix) error {
	switch {
	case gw.Is4In6() || gw.Zone() != "":
		return fmt.Errorf("gateway %s must be a plain IPv4 or IPv6 address, with no zone", gw)
	case gw.IsUnspecified() || gw.IsMulticast() || gw.IsLoopback() || gw == limitedBroadcast:
		return fmt.Errorf("gateway %s is no router's address", gw)
	case gw.Is6() && gw.IsLinkLocalUnicast():
		return nil
	}
	for _, p := range networks {
		if p.Contains(gw) {
			return nil
		}
	}
	return fmt.Errorf("gateway %s is in none of the networks on the link: %v", gw, networks)
}

// AddRoute adds a route over the host's first interface: see Interface.AddRoute.
func (h *Host) AddRoute(r Route) error { return h.first().AddRoute(r) }

// AddRoute adds a route over the interface. It returns an error when the route is not valid, its
// gateway is in no network that is on the link, or the interface has the
// route already.
func (i *Interface) AddRoute(r Route) error {
	h := i.host
	var networks []netip.Prefix
	for _, known := range i.Routes() {
		if !known.Gateway.IsValid() {
			networks = append(networks, known.Destination)
		}
		if known == r {
			return fmt.Errorf("stack: route %s is on %s already", r, i.name)
		}
	}
	if err := r.validate(networks); err != nil {
		return fmt.Errorf("stack: route %s: %w", r, err)
	}
	if r.Destination.Addr().Is6() && !h.ipv6 {
		return fmt.Errorf("stack: route %s: IPv6 needs a link with an MTU of at least %d", r, minIPv6MTU)
	}
	if err := h.ended(); err != nil {
		return fmt.Errorf("stack: route %s: %w", r, err)
	}
	h.stack.AddRoute(tcpip.Route{Destination: toSubnet(r.Destination), Gateway: toAddress(r.Gateway), NIC: i.id})
	return nil
}

// RemoveRoute removes a route over the host's first interface: see
// Interface.RemoveRoute.
func (h *Host) RemoveRoute(r Route) error { return h.first().RemoveRoute(r) }

// RemoveRoute removes a route. It returns an error when the interface does not
// have it.
func (i *Interface) RemoveRoute(r Route) error {
	want := tcpip.Route{Destination: toSubnet(r.Destination), Gateway: toAddress(r.Gateway), NIC: i.id}
	if !r.Destination.IsValid() || i.removeRoutes(same(want)) == 0 {
		return fmt.Errorf("stack: route %s is not on %s", r, i.name)
	}
	return nil
}

// Routes returns the routes over the host's first interface: see
// Interface.Routes.
func (h *Host) Routes() []Route { return h.first().Routes() }

// Routes returns the routes over the interface, those with longer prefixes first,
// including the ones that come with addresses.
func (i *Interface) Routes() []Route {
	table := i.host.stack.GetRouteTable()
	routes := make([]Route, 0, len(table))
	for _, r := range table {
		if r.NIC == i.id {
			routes = append(routes, Route{Destination: fromSubnet(r.Destination), Gateway: fromAddress(r.Gateway)})
		}
	}
	return routes
}

// ensureRoute adds a route that is not there yet.
func (h *Host) ensureRoute(r tcpip.Route) {
	if !slices.ContainsFunc(h.stack.GetRouteTable(), same(r)) {
		h.stack.AddRoute(r)
	}
}

// same returns a function that recognizes a route. (Equal of tcpip.Route pays
// no heed to the gateway.)
func same(r tcpip.Route) func(tcpip.Route) bool {
	return func(other tcpip.Route) bool {
		return r.Destination.Equal(other.Destination) && r.Gateway == other.Gateway && r.NIC == other.NIC
	}
}

func (i *Interface) removeRoutes(match func(tcpip.Route) bool) int {
	return i.host.stack.RemoveRoutes(func(r tcpip.Route) bool { return r.NIC == i.id && match(r) })
}
