package stack_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/link"
	"bondstack/link/wire"
	"bondstack/stack"
)

// Two links of a host are two networks: each has its addresses, routes and
// announcements, and what goes where is the routes' business.
func TestTwoLinks(t *testing.T) {
	checkGoroutines(t)
	left, right := newWire(t, wire.Options{})
	near, far := newWire(t, wire.Options{A: wire.EndOptions{Address: recorderMAC}})
	quick := func(o *stack.HostOptions) { o.DADTransmits = -1 }
	host := newHost(t, left, pairOptions("1", []func(*stack.HostOptions){quick}))
	first := newHost(t, right, pairOptions("2", []func(*stack.HostOptions){quick}))
	r := &recorder{LinkEndpoint: near}
	i, err := host.AddLink("eth1", r, stack.LinkOptions{
		Addresses: []netip.Prefix{prefix("10.1.0.1/24"), prefix("fd01::1/64")},
		Gateway:   addr("10.1.0.2"),
		Routes:    []stack.Route{{Destination: prefix("fd09::/16"), Gateway: addr("fd01::2")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	second := newHost(t, far, stack.HostOptions{DADTransmits: -1, Addresses: []netip.Prefix{
		prefix("10.1.0.2/24"), prefix("fd01::2/64"), prefix("192.0.2.1/32"), prefix("fd09::1/128")}})
	for _, h := range []*stack.Host{host, first, second} {
		if err := h.AwaitAddresses(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.AwaitAddresses(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"10.0.0.2", "fd00::2", "10.1.0.2", "fd01::2", "192.0.2.1", "fd09::1"} {
		if err := ping(t, host, to); err != nil {
			t.Errorf("to %s: %v", to, err)
		}
	}
	if i.Name() != "eth1" || i.NICID() != 2 || len(host.Interfaces()) != 2 || host.Interfaces()[1] != i {
		t.Errorf("interface %s, %d of %d", i.Name(), i.NICID(), len(host.Interfaces()))
	}
	// Both networks of the first, both of the second, and their link-local ones.
	if all, own := len(host.Addresses()), len(i.Addresses()); all != 6 || own != 3 {
		t.Errorf("%d addresses, %d on the second link", all, own)
	}
	if got := i.Routes(); len(got) != 5 {
		t.Errorf("routes over the second link: %v", got)
	}
	if err := i.AddRoute(stack.Route{Destination: prefix("10.7.0.0/16"), Gateway: addr("10.0.0.2")}); err == nil {
		t.Error("a gateway on another link is taken")
	}
	if err := i.RemoveRoute(stack.Route{Destination: prefix("fd09::/16"), Gateway: addr("fd01::2")}); err != nil {
		t.Error(err)
	}
	r.take()
	i.Announce()
	if frames := r.take(); len(frames) != 3 {
		t.Errorf("%d announcements on the second link, want 3", len(frames))
	}
	r.subscriber()()
	if frames := r.take(); len(frames) != 3 {
		t.Errorf("%d announcements when the link asks, want 3", len(frames))
	}
	if err := i.RemoveAddress(addr("fd01::1")); err != nil || len(i.Addresses()) != 2 {
		t.Errorf("RemoveAddress() = %v, left are %v", err, i.Addresses())
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if r.subscriber() != nil || len(host.Addresses()) != 3 || len(host.Interfaces()) != 1 {
		t.Error("something of the second link is left")
	}
	if err := ping(t, host, "10.0.0.2"); err != nil {
		t.Errorf("the first link after the second's end: %v", err)
	}
	if err := host.Interfaces()[0].Close(); err != nil {
		t.Error(err)
	}
	if _, err := host.AddLink("eth2", far, stack.LinkOptions{}); err == nil || !strings.Contains(err.Error(), "attached") {
		t.Errorf("AddLink of an attached link = %v", err)
	}
	third, fourth := newWire(t, wire.Options{})
	defer fourth.Close()
	defer third.Close()
	if _, err := host.AddLink("eth2", third, stack.LinkOptions{}); err == nil || third.IsAttached() {
		t.Errorf("AddLink to a closed host = %v", err)
	}
	third.SetMTU(1000)
	if _, err := first.AddLink("eth2", third, stack.LinkOptions{}); err == nil || !strings.Contains(err.Error(), "1280 and more") {
		t.Errorf("AddLink of a small link = %v", err)
	}
}

// A link-local address is on both links, and its zone says which is meant, also in
// what is received.
func TestZones(t *testing.T) {
	checkGoroutines(t)
	host, peers := (*stack.Host)(nil), map[string]*stack.Host{}
	for n, name := range []string{"bond0", "eth1"} {
		a, b := newWire(t, wire.Options{
			A: wire.EndOptions{Address: tcpip.LinkAddress([]byte{2, 0, 0, 0, byte(n), 1})},
			B: wire.EndOptions{Address: "\x02\x00\x00\x00\x00\x09"}})
		if host == nil {
			host = newHost(t, a, stack.HostOptions{DADTransmits: -1})
		} else if _, err := host.AddLink(name, a, stack.LinkOptions{}); err != nil {
			t.Fatal(err)
		}
		peers[name] = newHost(t, b, stack.HostOptions{DADTransmits: -1})
	}
	for name, peer := range peers {
		l, err := peer.ListenPacket("udp", ":9")
		if err != nil {
			t.Fatal(err)
		}
		c, err := host.ListenPacket("udp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		to := peer.Addresses()[0].Prefix.Addr().WithZone(name)
		if _, err := c.(*stack.UDPConn).WriteToUDPAddrPort([]byte(name), netip.AddrPortFrom(to, 9)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		n, from, err := l.ReadFrom(buf)
		if err != nil || string(buf[:n]) != name {
			t.Fatalf("ReadFrom() = %q, %v", buf[:n], err)
		}
		if _, err := l.WriteTo([]byte("back"), from); err != nil {
			t.Fatal(err)
		}
		if _, from, err := c.(*stack.UDPConn).ReadFromUDPAddrPort(buf); err != nil || from.Addr() != to {
			t.Errorf("an answer over %s is from %s, %v", name, from, err)
		}
	}
	if _, err := host.Ping(context.Background(), addr("fe80::1%eth2")); err == nil || !strings.Contains(err.Error(), "the interfaces are bond0, eth1") {
		t.Errorf("an unknown zone: %v", err)
	}
}

// routeUser is a link that keeps the routes that it is given.
type routeUser struct {
	*wire.Endpoint
	routes link.Routes
}

func (u *routeUser) UseRoutes(r link.Routes) (cancel func()) {
	u.routes = r
	return func() { u.routes = nil }
}

// A link is told which addresses are reached by it, from where, and which are the
// stack's own there.
func TestRoutesForLinks(t *testing.T) {
	checkGoroutines(t)
	a, x := newWire(t, wire.Options{})
	b, y := newWire(t, wire.Options{})
	defer x.Close()
	defer y.Close()
	one, two := &routeUser{Endpoint: a}, &routeUser{Endpoint: b}
	host := newHost(t, one, pairOptions("1", []func(*stack.HostOptions){func(o *stack.HostOptions) { o.DADTransmits = -1 }}))
	i, err := host.AddLink("eth1", two, stack.LinkOptions{Addresses: []netip.Prefix{prefix("10.1.0.1/24")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		target, source string
		ok             [2]bool
	}{
		{"10.0.0.9", "10.0.0.1", [2]bool{true, false}},
		{"fd00::9", "fd00::1", [2]bool{true, false}},
		{"10.1.0.9", "10.1.0.1", [2]bool{false, true}},
		{"10.0.0.1", "", [2]bool{false, false}}, // our own
		{"10.1.0.1", "", [2]bool{false, false}},
		{"10.9.0.9", "invalid IP", [2]bool{true, true}}, // no route
		{"::ffff:10.0.0.9", "10.0.0.1", [2]bool{true, false}},
	} {
		for n, u := range []*routeUser{one, two} {
			way, ok := u.routes.Route(addr(tt.target))
			if ok != tt.ok[n] || ok && (way.Source.String() != tt.source || len(way.Tags) != 0) {
				t.Errorf("link %d: Route(%s) = %+v, %v, want %s, %v", n, tt.target, way, ok, tt.source, tt.ok[n])
			}
		}
	}
	if _, ok := one.routes.Route(netip.Addr{}); ok {
		t.Error("there is a way to no address")
	}
	if !one.routes.Owns(addr("fd00::1")) || one.routes.Owns(addr("10.1.0.1")) || !two.routes.Owns(addr("10.1.0.1")) {
		t.Error("Owns mixes the links up")
	}
	old := two.routes
	i.Close()
	if two.routes != nil {
		t.Error("a closed interface still tells routes")
	}
	if _, ok := old.Route(addr("10.1.0.9")); !ok || old.Owns(addr("10.1.0.1")) {
		t.Error("after Close the network is known to the old routes")
	}
	host.Close()
	if one.routes != nil {
		t.Error("a closed host still tells routes")
	}
}
