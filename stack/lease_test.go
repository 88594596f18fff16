package stack_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"bondstack/link/wire"
	"bondstack/stack"
)

// dhcpServer answers on a host's port 67, and says which requests it saw.
type dhcpServer struct {
	conn *stack.UDPConn
	seen chan *dhcpv4.DHCPv4

	mu     sync.Mutex
	offer  string
	refuse bool
}

func serveDHCP(t *testing.T, h *stack.Host, offer string) *dhcpServer {
	s := &dhcpServer{conn: mustListenPacket(t, h, "udp4", ":67"), seen: make(chan *dhcpv4.DHCPv4, 100), offer: offer}
	go s.serve()
	return s
}

func (s *dhcpServer) set(offer string, refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer, s.refuse = offer, refuse
}

func (s *dhcpServer) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		d, err := dhcpv4.FromBytes(buf[:n])
		if err != nil {
			continue
		}
		s.seen <- d
		if d.MessageType() == dhcpv4.MessageTypeDecline {
			continue
		}
		to := netip.AddrPortFrom(netip.MustParseAddr("255.255.255.255"), 68)
		if !d.IsBroadcast() {
			to = from
		}
		s.conn.WriteToUDPAddrPort(s.answer(d).ToBytes(), to)
	}
}

func (s *dhcpServer) answer(d *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := dhcpv4.MessageTypeAck
	switch {
	case d.MessageType() == dhcpv4.MessageTypeDiscover:
		kind = dhcpv4.MessageTypeOffer
	case s.refuse:
		kind = dhcpv4.MessageTypeNak
	}
	reply, err := dhcpv4.NewReplyFromRequest(d,
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithYourIP(net.ParseIP(s.offer)),
		dhcpv4.WithServerIP(net.IPv4(10, 0, 0, 1)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 0, 1))),
		dhcpv4.WithNetmask(net.CIDRMask(24, 32)),
		dhcpv4.WithLeaseTime(3600),
		dhcpv4.WithOption(dhcpv4.OptRouter(net.IPv4(10, 0, 0, 1))),
		dhcpv4.WithOption(dhcpv4.OptDNS(net.IPv4(10, 0, 0, 1))),
		dhcpv4.WithDomainSearchList("lan"))
	if err != nil {
		panic(err)
	}
	return reply
}

// await returns the next request of a type.
func (s *dhcpServer) await(t *testing.T, kind dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	t.Helper()
	end := time.After(patience)
	for {
		select {
		case d := <-s.seen:
			if d.MessageType() == kind {
				return d
			}
		case <-end:
			t.Fatalf("the server saw no %s", kind)
		}
	}
}

// leaseRig is a client on a recorder, beside a host with a DHCP server.
func leaseRig(t *testing.T) (client, server *stack.Host, r *recorder, s *dhcpServer) {
	t.Helper()
	checkGoroutines(t)
	left, right := newWire(t, wire.Options{})
	server = newHost(t, right, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}, DADInterval: time.Millisecond})
	s = serveDHCP(t, server, "10.0.0.9")
	r = &recorder{LinkEndpoint: left}
	client = newHost(t, r, stack.HostOptions{DHCP: true, HostName: "box", DADInterval: time.Millisecond})
	return client, server, r, s
}

func TestDHCP(t *testing.T) {
	h, server, r, s := leaseRig(t)
	if err := h.AwaitAddresses(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, ok := h.Interfaces()[0].Lease()
	if !ok || lease.Prefix.String() != "10.0.0.9/24" || lease.Server.String() != "10.0.0.1" {
		t.Fatalf("lease %+v, %v", lease, ok)
	}
	if want := (stack.Route{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("10.0.0.1")}); !slices.Contains(h.Routes(), want) {
		t.Errorf("routes %v, want %v among them", h.Routes(), want)
	}
	if c := h.NameServers(); len(c.Servers) != 1 || c.Servers[0].String() != "10.0.0.1" || !slices.Equal(c.Search, []string{"lan"}) {
		t.Errorf("name servers %+v", c)
	}
	if d := s.await(t, dhcpv4.MessageTypeRequest); d.HostName() != "box" {
		t.Errorf("the server was told the name %q", d.HostName())
	}
	l := mustListen(t, server, ":80")
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
	}()
	c, err := h.Dial("tcp", "10.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.LocalAddr().(*net.TCPAddr).IP.String(); got != "10.0.0.9" {
		t.Errorf("it dials from %s", got)
	}
	c.Close()

	// A failover: the server confirms, then another network's gives another
	// address, and takes the old one.
	r.subscriber()()
	if d := s.await(t, dhcpv4.MessageTypeRequest); d.RequestedIPAddress().String() != "10.0.0.9" || d.ServerIdentifier() != nil {
		t.Errorf("after a failover it asks %s", d.Summary())
	}
}

// TestDHCPFailover: a network that refuses the address after a failover has the host
// give it up, and take one of there.
func TestDHCPFailover(t *testing.T) {
	h, _, r, s := leaseRig(t)
	if err := h.AwaitAddresses(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.set("10.0.0.77", true)
	r.subscriber()()
	s.await(t, dhcpv4.MessageTypeRequest) // of 10.0.0.9, before the failover
	s.await(t, dhcpv4.MessageTypeRequest)
	s.set("10.0.0.77", false)
	if _, err := h.AwaitAddress(t.Context(), func(a stack.Address) bool { return a.Prefix.String() == "10.0.0.77/24" && a.State == stack.Assigned }); err != nil {
		t.Fatal(err)
	}
	for _, a := range h.Addresses() {
		if a.Prefix.Addr().String() == "10.0.0.9" {
			t.Errorf("the refused address is still there: %v", h.Addresses())
		}
	}
}

// TestDHCPDecline: an address that another host has is declined.
func TestDHCPDecline(t *testing.T) {
	checkGoroutines(t)
	left, right := newWire(t, wire.Options{})
	server := newHost(t, right, stack.HostOptions{DADInterval: time.Millisecond, Addresses: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.0.9/24")}})
	s := serveDHCP(t, server, "10.0.0.9")
	h := newHost(t, left, stack.HostOptions{DHCP: true, DADInterval: 20 * time.Millisecond})
	if d := s.await(t, dhcpv4.MessageTypeDecline); d.RequestedIPAddress().String() != "10.0.0.9" {
		t.Errorf("declined %s", d.Summary())
	}
	if _, ok := h.Interfaces()[0].Lease(); ok {
		t.Error("a lease of another's address")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.AwaitAddresses(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("AwaitAddresses without a lease = %v", err)
	}
}

// TestDHCPOnLink: a further interface has a client of its own, which ends with it.
func TestDHCPOnLink(t *testing.T) {
	checkGoroutines(t)
	left, right := newWire(t, wire.Options{})
	other, end := newWire(t, wire.Options{})
	t.Cleanup(end.Close)
	server := newHost(t, right, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}})
	serveDHCP(t, server, "10.0.0.9")
	h := newHost(t, other, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.1/24")}, DADInterval: time.Millisecond})
	i, err := h.AddLink("two", left, stack.LinkOptions{DHCP: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.AwaitAddresses(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if len(h.NameServers().Servers) != 0 {
		t.Errorf("name servers of an interface that is gone: %v", h.NameServers())
	}
}

func TestAutoconfOptions(t *testing.T) {
	for want, opts := range map[string]stack.HostOptions{
		"HostName: 256 is out of range":                     {HostName: strings.Repeat("x", 256)},
		"DNS.Servers[0]: 127.0.0.1 is no name server's":     {DNS: dnsConfig("127.0.0.1")},
		"DNS.Servers[1]: 224.0.0.1 is no name server's":     {DNS: dnsConfig("10.0.0.1", "224.0.0.1")},
		"DNS.Servers[0]: invalid IP is no name server's":    {DNS: dnsConfig("")},
		"SLAAC on bond0: IPv6 needs a link with an MTU of ": {SLAAC: true},
	} {
		a, _ := newWire(t, wire.Options{MTU: 600})
		if _, err := stack.NewHost(a, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewHost: %v, want %q", err, want)
		}
	}
}

// TestDHCPOwnAddress: a lease of the address that the program has given the host
// anyway does not take it away when it is lost.
func TestDHCPOwnAddress(t *testing.T) {
	checkGoroutines(t)
	left, right := newWire(t, wire.Options{})
	server := newHost(t, right, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}, DADInterval: time.Millisecond})
	s := serveDHCP(t, server, "10.0.0.9")
	r := &recorder{LinkEndpoint: left}
	own := netip.MustParsePrefix("10.0.0.9/24")
	h := newHost(t, r, stack.HostOptions{DHCP: true, Addresses: []netip.Prefix{own}, DADInterval: time.Millisecond})
	if err := h.AwaitAddresses(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.set("10.0.0.10", true)
	r.subscriber()() // the path has changed: the server refuses
	awaitTrue(t, "the lease is lost", func() bool {
		l, ok := h.Interfaces()[0].Lease()
		return !ok || l.Prefix != own
	})
	if !slices.ContainsFunc(h.Addresses(), func(a stack.Address) bool { return a.Prefix == own }) {
		t.Errorf("the host has lost its own %s with the lease: %v", own, h.Addresses())
	}
}
