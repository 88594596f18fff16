package stack_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"

	"bondstack/link/wire"
	"bondstack/stack"
)

var router = netip.MustParseAddr("fe80::1")

// advertisement returns the IPv6 packet of a router advertisement.
func advertisement(t *testing.T, ra *ndp.RouterAdvertisement) []byte {
	t.Helper()
	body, err := ndp.MarshalMessage(ra)
	if err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, header.IPv6MinimumSize, header.IPv6MinimumSize+len(body))
	from, to := tcpip.AddrFrom16(router.As16()), header.IPv6AllNodesMulticastAddress
	header.IPv6(packet).Encode(&header.IPv6Fields{
		PayloadLength:     uint16(len(body)),
		TransportProtocol: header.ICMPv6ProtocolNumber,
		HopLimit:          255,
		SrcAddr:           from,
		DstAddr:           to,
	})
	packet = append(packet, body...)
	icmp := header.ICMPv6(packet[header.IPv6MinimumSize:])
	icmp.SetChecksum(0)
	pseudo := header.PseudoHeaderChecksum(header.ICMPv6ProtocolNumber, from, to, uint16(len(icmp)))
	icmp.SetChecksum(^checksum.Checksum(icmp, pseudo))
	return packet
}

func slaacRig(t *testing.T) (*stack.Host, *recorder) {
	t.Helper()
	checkGoroutines(t)
	left, right := newWire(t, wire.Options{})
	t.Cleanup(right.Close)
	r := &recorder{LinkEndpoint: left}
	h := newHost(t, r, stack.HostOptions{SLAAC: true, DADInterval: time.Millisecond})
	if err := h.AwaitAddresses(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, r
}

func in(prefix string) func(stack.Address) bool {
	p := netip.MustParsePrefix(prefix)
	return func(a stack.Address) bool { return p.Contains(a.Prefix.Addr()) && a.State == stack.Assigned }
}

// awaitTrue waits for what happens in another goroutine.
func awaitTrue(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not seen: %s", what)
		}
	}
}

func TestSLAAC(t *testing.T) {
	h, r := slaacRig(t)
	offer := &ndp.RouterAdvertisement{
		RouterLifetime: time.Hour,
		Options: []ndp.Option{
			&ndp.PrefixInformation{Prefix: netip.MustParseAddr("fd00:1::"), PrefixLength: 64, OnLink: true, AutonomousAddressConfiguration: true, ValidLifetime: time.Hour, PreferredLifetime: time.Hour},
			&ndp.RecursiveDNSServer{Lifetime: time.Hour, Servers: []netip.Addr{netip.MustParseAddr("fd00:1::53"), netip.MustParseAddr("fe80::53")}},
			&ndp.DNSSearchList{Lifetime: time.Hour, DomainNames: []string{"lan"}},
		},
	}
	r.deliver(ipv6.ProtocolNumber, advertisement(t, offer))
	if _, err := h.AwaitAddress(t.Context(), in("fd00:1::/64")); err != nil {
		t.Fatal(err)
	}
	network := stack.Route{Destination: netip.MustParsePrefix("fd00:1::/64")}
	through := stack.Route{Destination: netip.MustParsePrefix("::/0"), Gateway: router}
	awaitTrue(t, "the routes", func() bool { return slices.Contains(h.Routes(), network) && slices.Contains(h.Routes(), through) })
	if got := h.NameServers(); fmt.Sprint(got) != "{[fd00:1::53 fe80::53%bond0] [lan]}" {
		t.Errorf("name servers %v", got)
	}

	// A router that goes takes what it gave away with it.
	gone := &ndp.RouterAdvertisement{Options: []ndp.Option{
		&ndp.RecursiveDNSServer{Servers: []netip.Addr{netip.MustParseAddr("fd00:1::53")}},
	}}
	r.deliver(ipv6.ProtocolNumber, advertisement(t, gone))
	awaitTrue(t, "the default route go", func() bool { return !slices.Contains(h.Routes(), through) })
	if got := h.NameServers(); fmt.Sprint(got) != "{[fe80::53%bond0] [lan]}" {
		t.Errorf("name servers %v", got)
	}
}

// solicitations counts the router solicitations that were sent since the last time.
func solicitations(r *recorder) (n int) {
	for _, f := range r.take() {
		if len(f) > 54 && f[20] == 58 && f[54] == byte(header.ICMPv6RouterSolicit) {
			n++
		}
	}
	return n
}

// TestSolicitAfterFailover: the routers are asked anew, once a second at most.
func TestSolicitAfterFailover(t *testing.T) {
	_, r := slaacRig(t)
	awaitTrue(t, "a solicitation at the beginning", func() bool { return solicitations(r) > 0 })
	notify := r.subscriber()
	for range 100 {
		notify()
	}
	if n := solicitations(r); n != 1 {
		t.Errorf("%d solicitations after 100 changes of the path at once, want 1", n)
	}
}

// TestAdvertisementFlood: a hostile router does not fill tables.
func TestAdvertisementFlood(t *testing.T) {
	h, r := slaacRig(t)
	for i := range 2000 {
		a := netip.AddrFrom16([16]byte{0xfd, 0, byte(i >> 8), byte(i)})
		r.deliver(ipv6.ProtocolNumber, advertisement(t, &ndp.RouterAdvertisement{
			RouterLifetime: time.Hour,
			Options: []ndp.Option{
				&ndp.PrefixInformation{Prefix: a, PrefixLength: 64, OnLink: true, AutonomousAddressConfiguration: true, ValidLifetime: time.Hour, PreferredLifetime: time.Hour},
				&ndp.RecursiveDNSServer{Lifetime: time.Hour, Servers: []netip.Addr{a.Next()}},
				&ndp.DNSSearchList{Lifetime: time.Hour, DomainNames: []string{fmt.Sprintf("d%d.test", i)}},
			},
		}))
	}
	c := h.NameServers()
	if n := len(h.Addresses()); n > 12 || len(h.Routes()) > 24 || len(c.Servers) > 8 || len(c.Search) > 8 {
		t.Errorf("%d addresses, %d routes, %d name servers, %d domains", n, len(h.Routes()), len(c.Servers), len(c.Search))
	}
}

// TestWithoutSLAAC: advertisements mean nothing to a host that did not ask.
func TestWithoutSLAAC(t *testing.T) {
	left, right := newWire(t, wire.Options{})
	t.Cleanup(right.Close)
	r := &recorder{LinkEndpoint: left}
	h := newHost(t, r, stack.HostOptions{DADInterval: time.Millisecond})
	r.deliver(ipv6.ProtocolNumber, advertisement(t, &ndp.RouterAdvertisement{RouterLifetime: time.Hour, Options: []ndp.Option{
		&ndp.PrefixInformation{Prefix: netip.MustParseAddr("fd00:1::"), PrefixLength: 64, OnLink: true, AutonomousAddressConfiguration: true, ValidLifetime: time.Hour, PreferredLifetime: time.Hour},
	}}))
	if n := len(h.Addresses()); n != 1 {
		t.Errorf("addresses %v, want the link-local one alone", h.Addresses())
	}
}
