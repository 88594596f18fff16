package stack

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// maxAdvertised bounds the name servers, and the domains, that are kept of what
// routers advertise. netstack bounds prefixes and routes, at 10 of each.
const maxAdvertised = 8

// solicitWait is the shortest time between solicitations after changes of the
// path.
const solicitWait = time.Second

// advertised is what the routers on an interface's link advertise (RFC 4861, 4862
// and 8106). netstack makes the addresses, and tells of routes and name servers with
// its locks held: so these are written down, and a goroutine of their own brings the
// stack's routes in line with them.
type advertised struct {
	iface *Interface

	// mu is a leaf.
	mu sync.Mutex
	// The following are guarded by mu.
	routes  map[Route]struct{} // wanted
	servers []timed[netip.Addr]
	search  []timed[string]
	working bool // a goroutine applies routes
	again   bool // they have changed since it looked
	asked   tcpip.MonotonicTime
	askedAt bool // whether asked is set

	// applied and news are the goroutine's.
	applied map[Route]struct{}
	news    lineLimit
}

// timed is a value that is good until a time.
type timed[T comparable] struct {
	value T
	until tcpip.MonotonicTime
}

// startSLAAC has netstack heed router advertisements, and solicit them. The NIC is
// not enabled yet.
func (i *Interface) startSLAAC() error {
	if !i.host.ipv6 {
		return fmt.Errorf("stack: SLAAC on %s: IPv6 needs a link with an MTU of at least %d", i.name, minIPv6MTU)
	}
	ep, err := i.host.stack.GetNetworkEndpoint(i.id, ipv6.ProtocolNumber)
	if err != nil {
		return fmt.Errorf("stack: interface %s: %s", i.name, err)
	}
	ndp, ok := ep.(ipv6.NDPEndpoint)
	if !ok {
		return fmt.Errorf("stack: interface %s: its IPv6 knows no router advertisements", i.name)
	}
	i.advertised = &advertised{iface: i, routes: map[Route]struct{}{}, applied: map[Route]struct{}{}}
	c := ipv6.DefaultNDPConfigurations()
	c.HandleRAs = ipv6.HandlingRAsEnabledWhenForwardingDisabled
	c.MaxRtrSolicitationDelay = 0 // it is for networks where many hosts start at once
	c.AutoGenTempGlobalAddresses = false
	ndp.SetNDPConfigurations(c)
	return nil
}

// want adds or removes a route.
func (a *advertised) want(r Route, wanted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if wanted {
		a.routes[r] = struct{}{}
	} else {
		delete(a.routes, r)
	}
	a.again = true
	if a.working {
		return
	}
	leave, ok := a.iface.host.enter()
	if !ok {
		return
	}
	a.working = true
	go func() {
		defer leave()
		a.apply()
	}()
}

// apply brings the stack's routes in line until nothing has changed meanwhile.
func (a *advertised) apply() {
	for {
		a.mu.Lock()
		if !a.again {
			a.working = false
			a.mu.Unlock()
			return
		}
		a.again = false
		want := maps.Clone(a.routes)
		a.mu.Unlock()
		a.change(want)
	}
}

// change takes away the routes that are no longer wanted, and adds those that are.
// Networks on the link go first, since they lead to the routers.
func (a *advertised) change(want map[Route]struct{}) {
	i := a.iface
	for r := range a.applied {
		if _, ok := want[r]; !ok {
			delete(a.applied, r)
			_ = i.RemoveRoute(r) // it fails where the program has taken it away
		}
	}
	list := slices.SortedFunc(maps.Keys(want), func(x, y Route) int { return x.Gateway.Compare(y.Gateway) })
	for _, r := range list {
		if _, ok := a.applied[r]; ok || slices.Contains(i.Routes(), r) {
			continue
		}
		err := i.AddRoute(r)
		if err == nil {
			a.applied[r] = struct{}{}
		}
		switch unsaid, ok := a.news.allow(i.host.opts.Clock.NowMonotonic()); {
		case !ok:
		case err != nil:
			i.host.log().Warn("route of a router's", "error", err, "unsaid", unsaid)
		default:
			i.host.log().Info("route", "interface", i.name, "route", r, "by", "slaac", "unsaid", unsaid)
		}
	}
}

// remember keeps values that are good for a time; zero takes them away.
func remember[T comparable](list []timed[T], values []T, now tcpip.MonotonicTime, lifetime time.Duration) []timed[T] {
	list = slices.DeleteFunc(list, func(t timed[T]) bool { return !now.Before(t.until) || slices.Contains(values, t.value) })
	for _, v := range values {
		if lifetime > 0 && len(list) < maxAdvertised && !slices.ContainsFunc(list, func(t timed[T]) bool { return t.value == v }) {
			list = append(list, timed[T]{v, now.Add(lifetime)})
		}
	}
	return list
}

// valid returns the values that are good now.
func valid[T comparable](list []timed[T], now tcpip.MonotonicTime) []T {
	var values []T
	for _, t := range list {
		if now.Before(t.until) {
			values = append(values, t.value)
		}
	}
	return values
}

// names returns the name servers and domains that are good now.
func (a *advertised) names() ([]netip.Addr, []string) {
	now := a.iface.host.opts.Clock.NowMonotonic()
	a.mu.Lock()
	defer a.mu.Unlock()
	return valid(a.servers, now), valid(a.search, now)
}

// solicit asks the routers for an advertisement (RFC 4861, section 6.3.7), after a
// change of the path, as RFC 6059 has it. More than one a second are one.
func (a *advertised) solicit() {
	i := a.iface
	now := i.host.opts.Clock.NowMonotonic()
	a.mu.Lock()
	early := a.askedAt && now.Sub(a.asked) < solicitWait
	if !early {
		a.asked, a.askedAt = now, true
	}
	a.mu.Unlock()
	mac := i.link.LinkAddress()
	if early || len(mac) != header.EthernetAddressSize {
		return
	}
	from := header.IPv6Any
	for _, own := range i.Addresses() {
		if own.State == Assigned && own.Prefix.Addr().Is6() && own.Prefix.Addr().IsLinkLocalUnicast() {
			from = toAddress(own.Prefix.Addr())
		}
	}
	i.transmit(header.EthernetAddressFromMulticastIPv6Address(header.IPv6AllRoutersLinkLocalMulticastAddress),
		ipv6.ProtocolNumber, routerSolicitation(from, mac))
}

// routerSolicitation returns the IPv6 packet of a router solicitation.
func routerSolicitation(from tcpip.Address, mac tcpip.LinkAddress) []byte {
	var options header.NDPOptionsSerializer
	if from != header.IPv6Any { // RFC 4861, section 4.1
		options = header.NDPOptionsSerializer{header.NDPSourceLinkLayerAddressOption(mac)}
	}
	size := header.ICMPv6HeaderSize + header.NDPRSMinimumSize + options.Length()
	packet := make([]byte, header.IPv6MinimumSize+size)
	to := header.IPv6AllRoutersLinkLocalMulticastAddress
	header.IPv6(packet).Encode(&header.IPv6Fields{
		PayloadLength:     uint16(size),
		TransportProtocol: header.ICMPv6ProtocolNumber,
		HopLimit:          header.NDPHopLimit,
		SrcAddr:           from,
		DstAddr:           to,
	})
	icmp := header.ICMPv6(packet[header.IPv6MinimumSize:])
	icmp.SetType(header.ICMPv6RouterSolicit)
	header.NDPRouterSolicit(icmp.MessageBody()).Options().Serialize(options)
	pseudo := header.PseudoHeaderChecksum(header.ICMPv6ProtocolNumber, from, to, uint16(len(icmp)))
	icmp.SetChecksum(^checksum.Checksum(icmp, pseudo))
	return packet
}

// routerNews takes what netstack says of routers. It is called with netstack's locks
// held.
type routerNews struct{ host *Host }

var _ ipv6.NDPDispatcher = routerNews{}

// of returns what is known of an interface's routers, nil where it does not heed
// them.
func (n routerNews) of(nic tcpip.NICID) *advertised {
	for _, i := range n.host.Interfaces() {
		if i.id == nic {
			return i.advertised
		}
	}
	return nil
}

func (n routerNews) want(nic tcpip.NICID, to tcpip.Subnet, router tcpip.Address, wanted bool) {
	if a := n.of(nic); a != nil {
		a.want(Route{Destination: fromSubnet(to), Gateway: fromAddress(router)}, wanted)
	}
}

// OnOffLinkRouteUpdated implements ipv6.NDPDispatcher.
func (n routerNews) OnOffLinkRouteUpdated(nic tcpip.NICID, to tcpip.Subnet, router tcpip.Address, _ header.NDPRoutePreference) {
	n.want(nic, to, router, true)
}

// OnOffLinkRouteInvalidated implements ipv6.NDPDispatcher.
func (n routerNews) OnOffLinkRouteInvalidated(nic tcpip.NICID, to tcpip.Subnet, router tcpip.Address) {
	n.want(nic, to, router, false)
}

// OnOnLinkPrefixDiscovered implements ipv6.NDPDispatcher.
func (n routerNews) OnOnLinkPrefixDiscovered(nic tcpip.NICID, to tcpip.Subnet) {
	n.want(nic, to, tcpip.Address{}, true)
}

// OnOnLinkPrefixInvalidated implements ipv6.NDPDispatcher.
func (n routerNews) OnOnLinkPrefixInvalidated(nic tcpip.NICID, to tcpip.Subnet) {
	n.want(nic, to, tcpip.Address{}, false)
}

// OnAutoGenAddress implements ipv6.NDPDispatcher: the address is one of the host's.
func (n routerNews) OnAutoGenAddress(nic tcpip.NICID, a tcpip.AddressWithPrefix) netstack.AddressDispatcher {
	known := n.of(nic)
	if known == nil {
		return nil
	}
	if e := n.host.addresses.add(known.iface, netipPrefix(a.Address, a.PrefixLen)); e != nil {
		return e
	}
	return nil
}

// OnAutoGenAddressDeprecated implements ipv6.NDPDispatcher. netstack prefers others
// by itself.
func (routerNews) OnAutoGenAddressDeprecated(tcpip.NICID, tcpip.AddressWithPrefix) {}

// OnAutoGenAddressInvalidated implements ipv6.NDPDispatcher.
func (n routerNews) OnAutoGenAddressInvalidated(nic tcpip.NICID, a tcpip.AddressWithPrefix) {
	if known := n.of(nic); known != nil {
		n.host.addresses.remove(known.iface, fromAddress(a.Address))
	}
}

// OnRecursiveDNSServerOption implements ipv6.NDPDispatcher.
func (n routerNews) OnRecursiveDNSServerOption(nic tcpip.NICID, servers []tcpip.Address, lifetime time.Duration) {
	a := n.of(nic)
	if a == nil {
		return
	}
	var list []netip.Addr
	for _, s := range servers {
		addr := fromAddress(s)
		if addr.IsLinkLocalUnicast() {
			addr = addr.WithZone(a.iface.name)
		}
		list = append(list, addr)
	}
	now := n.host.opts.Clock.NowMonotonic()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers = remember(a.servers, list, now, lifetime)
}

// OnDNSSearchListOption implements ipv6.NDPDispatcher.
func (n routerNews) OnDNSSearchListOption(nic tcpip.NICID, domains []string, lifetime time.Duration) {
	a := n.of(nic)
	if a == nil {
		return
	}
	domains = slices.DeleteFunc(slices.Clone(domains), func(d string) bool { return strings.Trim(d, ".") == "" })
	now := n.host.opts.Clock.NowMonotonic()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.search = remember(a.search, domains, now, lifetime)
}

// OnDuplicateAddressDetectionResult implements ipv6.NDPDispatcher. The address's own
// dispatcher is told as well.
func (routerNews) OnDuplicateAddressDetectionResult(tcpip.NICID, tcpip.Address, netstack.DADResult) {}

// OnDHCPv6Configuration implements ipv6.NDPDispatcher. There is no DHCPv6.
func (routerNews) OnDHCPv6Configuration(tcpip.NICID, ipv6.DHCPv6ConfigurationFromNDPRA) {}
