// Package stack is a TCP/IP host on any link: gVisor's netstack with addresses,
// routes, and the calls that Go programs know from package net.
//
//	h, err := stack.NewHost(ep, stack.HostOptions{
//		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")},
//		Gateway:   netip.MustParseAddr("10.0.0.1"),
//	})
//	l, err := h.Listen("tcp", ":80")
//	c, err := h.DialContext(ctx, "tcp", "10.0.0.1:80")
//	client := &http.Client{Transport: &http.Transport{DialContext: h.DialContext}}
//
// The link is any stack.LinkEndpoint of gVisor: a bond, a wire, a kernel
// interface. A link that is a link.Notifier (a bond is) has the host announce
// its addresses anew whenever it says so. Connections and listeners know
// nothing of what happens below the link: they live through every failover.
//
// A host can have further links, such as VLAN devices on the first: see
// Host.AddLink. Dial, Listen and the rest use all of them, by the routes.
//
// # Limits
//
//   - Addresses are literal: names are not resolved, ports are numbers.
//   - A host has no loopback interface. It reaches its own addresses without
//     a link. It takes packets only on the interface that has their address.
//   - Router advertisements are ignored: addresses and gateways are those
//     that the options give and that AddAddress and AddRoute add.
//   - IPv6 needs a link with an MTU of at least 1280 bytes (RFC 8200, section
//     5) when the host is made; on a smaller one the host has IPv4 only.
//   - Close aborts: what a closed connection had yet to send is lost.
package stack
