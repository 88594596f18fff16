package stack

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"bondstack/stack/dns"
)

// fallbackDelay is how long one address of a name has to itself before the next is
// tried beside it (RFC 8305, section 5).
const fallbackDelay = 250 * time.Millisecond

// maxTried bounds how many addresses of each IP version of a name are tried: whoever
// answers for a name decides how many it has.
const maxTried = 16

// NameServers returns whom the host asks for names, and which domains it searches:
// those of the options, then those of each interface's lease and routers.
func (h *Host) NameServers() dns.Config {
	c := dns.Config{Servers: slices.Clone(h.opts.DNS.Servers), Search: slices.Clone(h.opts.DNS.Search)}
	for _, i := range h.Interfaces() {
		if lease, ok := i.Lease(); ok {
			c.Servers, c.Search = append(c.Servers, lease.DNS...), append(c.Search, lease.Search...)
		}
		if i.advertised != nil {
			servers, search := i.advertised.names()
			c.Servers, c.Search = append(c.Servers, servers...), append(c.Search, search...)
		}
	}
	c.Servers, c.Search = distinct(c.Servers), distinct(c.Search)
	return c
}

func distinct[T comparable](list []T) []T {
	var found []T
	for _, v := range list {
		if !slices.Contains(found, v) {
			found = append(found, v)
		}
	}
	return found
}

// LookupNetIP returns the addresses of a name, asked for over the host's own links:
// see dns.Resolver. The network is "ip", "ip4" or "ip6". The names that the machine
// knows on which the program runs are not looked at.
func (h *Host) LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error) {
	r := dns.Resolver{Config: h.NameServers, Dial: h.DialContext}
	return r.LookupNetIP(ctx, network, name)
}

// splitName returns the name and port of an address whose host is neither empty nor
// a literal address.
func splitName(address string) (name, port string, ok bool) {
	name, port, err := net.SplitHostPort(address)
	if err != nil || name == "" {
		return "", "", false
	}
	_, err = netip.ParseAddr(name)
	return name, port, err != nil
}

// dialName connects to the first of a name's addresses that answers, of the first
// maxTried of each IP version. Those of a version that the host has no address of go
// last.
func (h *Host) dialName(ctx context.Context, network, name, port string) (net.Conn, error) {
	addrs, err := h.LookupNetIP(ctx, "ip"+strings.TrimLeft(network, "tcpud"), name)
	if err != nil {
		return nil, opError("dial", network, nil, nil, err)
	}
	addrs = tried(addrs)
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return h.rank(a) - h.rank(b) })
	return race(ctx, h.after, addrs, func(ctx context.Context, a netip.Addr) (net.Conn, error) {
		return h.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
	})
}

// tried returns the addresses that are tried, in their order.
func tried(addrs []netip.Addr) []netip.Addr {
	var count4, count6 int
	return slices.DeleteFunc(addrs, func(a netip.Addr) bool {
		count := &count6
		if a.Is4() {
			count = &count4
		}
		*count++
		return *count > maxTried
	})
}

// rank orders destinations: those of the version of IPv6 go first where the host has
// such an address that others can reach, and last where it has none.
func (h *Host) rank(to netip.Addr) int {
	has := slices.ContainsFunc(h.Addresses(), func(a Address) bool {
		own := a.Prefix.Addr()
		return a.State == Assigned && own.Is4() == to.Is4() && !own.IsLinkLocalUnicast()
	})
	switch {
	case !has:
		return 2
	case to.Is4():
		return 1
	}
	return 0
}

// after returns a channel that is closed after a time on the host's clock.
func (h *Host) after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	h.opts.Clock.AfterFunc(d, func() { close(c) })
	return c
}

// race dials addresses in order, the next one when the last has failed or not
// answered in time, and returns the first connection; the others are closed.
func race(ctx context.Context, after func(time.Duration) <-chan struct{}, addrs []netip.Addr, dial func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	var faults []error
	begun := 0
	var delay <-chan struct{}
	next := func() {
		if begun == len(addrs) {
			delay = nil
			return
		}
		a := addrs[begun]
		begun++
		delay = after(fallbackDelay)
		go func() {
			c, err := dial(ctx, a)
			results <- result{c, err}
		}()
	}
	next()
	for {
		select {
		case <-delay:
			next()
		case r := <-results:
			if r.err == nil {
				go func(left int) { // the losers end by their context
					for range left {
						if late := <-results; late.err == nil {
							late.conn.Close()
						}
					}
				}(begun - len(faults) - 1)
				return r.conn, nil
			}
			if faults = append(faults, r.err); len(faults) == len(addrs) {
				return nil, faults[0] // as package net does
			}
			if len(faults) == begun {
				next()
			}
		}
	}
}

// isTransport reports whether names are looked up for a network.
func isTransport(network string) bool {
	switch network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
		return true
	}
	return false
}
