package dhcp

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// The bounds of what is taken from a server.
const (
	maxServers = 8  // DNS servers and routers
	maxRoutes  = 64 // classless static routes
	maxSearch  = 16 // domains to search
	// minLease keeps a server from having the client ask without end.
	minLease = 60 * time.Second
	// forever stands for a lease without an end (RFC 2131, section 3.3).
	forever = time.Duration(math.MaxInt64 / 4)
)

// Lease is an address with what the server says goes with it.
type Lease struct {
	// Prefix is the address with the length of its network's prefix.
	Prefix netip.Prefix
	// Server is the address of the server that gave it.
	Server netip.Addr
	// Routes are those of option 121 (RFC 3442), or the default route by the
	// first router of option 3.
	Routes []Route
	// DNS are the name servers (option 6).
	DNS []netip.Addr
	// Search are the domains in which names are looked up: option 119
	// (RFC 3397), or the domain name of option 15.
	Search []string
	// Renew, Rebind and Expire are T1, T2 and the end, from when the lease was
	// asked for (RFC 2131, section 4.4.5). A lease without an end has an Expire
	// of centuries.
	Renew, Rebind, Expire time.Duration
}

// Route is a route that a lease brings.
type Route struct {
	Destination netip.Prefix
	// Gateway is the zero Addr where the destination is on the link.
	Gateway netip.Addr
}

// parseLease reads an offer or acknowledgement.
func parseLease(m *dhcpv4.DHCPv4) (Lease, error) {
	addr, ok := unicast(m.YourIPAddr)
	if !ok {
		return Lease{}, fmt.Errorf("yiaddr %s is no host's address", m.YourIPAddr)
	}
	server, ok := unicast(m.ServerIdentifier())
	if !ok {
		return Lease{}, fmt.Errorf("server identifier %s is no host's address", m.ServerIdentifier())
	}
	bits, ok := prefixBits(m.SubnetMask(), addr)
	if !ok {
		return Lease{}, fmt.Errorf("subnet mask %s is none: ones and then zeros are allowed, for an address %s inside", m.SubnetMask(), addr)
	}
	l := Lease{
		Prefix: netip.PrefixFrom(addr, bits),
		Server: server,
		DNS:    addresses(m.DNS()),
		Search: search(m),
	}
	l.Routes = routes(m)
	return l, l.readTimes(m)
}

// readTimes reads the lease time, T1 and T2. Where T1 or T2 is not in order, it is
// a half or seven eighths of the lease.
func (l *Lease) readTimes(m *dhcpv4.DHCPv4) error {
	seconds := m.Options.Get(dhcpv4.OptionIPAddressLeaseTime)
	if len(seconds) != 4 {
		return fmt.Errorf("no lease time")
	}
	if binary.BigEndian.Uint32(seconds) == math.MaxUint32 {
		l.Renew, l.Rebind, l.Expire = forever, forever, forever
		return nil
	}
	l.Expire = max(m.IPAddressLeaseTime(0), minLease)
	l.Rebind = m.IPAddressRebindingTime(0)
	if l.Rebind <= 0 || l.Rebind >= l.Expire {
		l.Rebind = l.Expire / 8 * 7
	}
	l.Renew = m.IPAddressRenewalTime(0)
	if l.Renew <= 0 || l.Renew >= l.Rebind {
		l.Renew = min(l.Expire/2, l.Rebind)
	}
	return nil
}

// unicast returns an IPv4 address that a host can have.
func unicast(ip net.IP) (netip.Addr, bool) {
	a, ok := netip.AddrFromSlice(ip)
	a = a.Unmap()
	if !ok || !a.Is4() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a.As4()[0] >= 240 {
		return netip.Addr{}, false
	}
	return a, true
}

// prefixBits returns the length of a mask's prefix. An address without a mask has
// none of its neighbours on the link.
func prefixBits(mask net.IPMask, addr netip.Addr) (int, bool) {
	if mask == nil {
		return 32, true
	}
	bits, size := mask.Size()
	if size != 32 || bits == 0 {
		return 0, false
	}
	if bits < 31 {
		host := binary.BigEndian.Uint32(addr.AsSlice()) << bits
		if host == 0 || host == math.MaxUint32<<bits {
			return 0, false // the network's own address, or its broadcast
		}
	}
	return bits, true
}

func addresses(ips []net.IP) []netip.Addr {
	var list []netip.Addr
	for _, ip := range ips {
		if a, ok := unicast(ip); ok && len(list) < maxServers {
			list = append(list, a)
		}
	}
	return list
}

// routes pays no heed to routers where there are classless routes, as RFC 3442
// asks.
func routes(m *dhcpv4.DHCPv4) []Route {
	var list []Route
	for _, r := range m.ClasslessStaticRoute() {
		to, ok := netip.AddrFromSlice(r.Dest.IP.To4())
		bits, size := r.Dest.Mask.Size()
		if !ok || size != 32 || len(list) == maxRoutes {
			continue
		}
		gateway, reached := unicast(r.Router)
		if reached || r.Router.IsUnspecified() {
			list = append(list, Route{netip.PrefixFrom(to, bits).Masked(), gateway})
		}
	}
	if len(list) > 0 {
		return list
	}
	if routers := addresses(m.Router()); len(routers) > 0 {
		return []Route{{netip.PrefixFrom(netip.IPv4Unspecified(), 0), routers[0]}}
	}
	return nil
}
