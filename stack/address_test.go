package stack_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bondstack/link/wire"
	"bondstack/stack"
)

var compareNetip = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

func TestAddresses(t *testing.T) {
	h, _ := newRecorded(t, false, func(o *stack.HostOptions) {
		o.Addresses = []netip.Prefix{prefix("10.0.0.1/24"), prefix("10.0.0.2/24"), prefix("fd00::1/64")}
	})
	var (
		linkLocal = stack.Address{Prefix: prefix("fe80::ff:feaa:bbcc/64")}
		one       = stack.Address{Prefix: prefix("10.0.0.1/24")}
		two       = stack.Address{Prefix: prefix("10.0.0.2/24")}
		six       = stack.Address{Prefix: prefix("fd00::1/64")}
		three     = stack.Address{Prefix: prefix("172.16.3.3/12")}
	)
	check := func(addresses []stack.Address, networks ...string) {
		t.Helper()
		if diff := cmp.Diff(addresses, h.Addresses(), compareNetip); diff != "" {
			t.Errorf("Addresses() (-want +got):\n%s", diff)
		}
		var want []stack.Route
		for _, n := range networks {
			want = append(want, stack.Route{Destination: prefix(n)})
		}
		if diff := cmp.Diff(want, h.Routes(), compareNetip); diff != "" {
			t.Errorf("Routes() (-want +got):\n%s", diff)
		}
	}
	check([]stack.Address{linkLocal, one, two, six}, "fe80::/64", "fd00::/64", "10.0.0.0/24")
	if err := h.AddAddress(three.Prefix); err != nil {
		t.Fatal(err)
	}
	check([]stack.Address{linkLocal, one, two, six, three}, "fe80::/64", "fd00::/64", "10.0.0.0/24", "172.16.0.0/12")
	// The network's route goes with its last address.
	h.RemoveAddress(one.Prefix.Addr())
	check([]stack.Address{linkLocal, two, six, three}, "fe80::/64", "fd00::/64", "10.0.0.0/24", "172.16.0.0/12")
	h.RemoveAddress(two.Prefix.Addr())
	check([]stack.Address{linkLocal, six, three}, "fe80::/64", "fd00::/64", "172.16.0.0/12")

	for _, tt := range []struct {
		err  error
		want string
	}{
		{h.AddAddress(prefix("172.16.3.3/24")), "172.16.3.3/24 is on bond0 already"},
		{h.AddAddress(prefix("172.16.3.255/24")), "broadcast"},
		{h.AddAddress(netip.Prefix{}), "not valid"},
		{h.RemoveAddress(one.Prefix.Addr()), "10.0.0.1 is not on bond0"},
		{h.RemoveAddress(netip.Addr{}), "is not on bond0"},
		{h.AddRoute(stack.Route{Destination: prefix("172.16.0.0/12")}), "172.16.0.0/12 on link is on bond0 already"},
		{h.AddRoute(stack.Route{Destination: prefix("0.0.0.0/0"), Gateway: addr("10.0.0.1")}), "gateway 10.0.0.1 is in none of the networks"},
		{h.AddRoute(stack.Route{Destination: prefix("0.0.0.0/0"), Gateway: addr("fd00::2")}), "different IP versions"},
		{h.AddRoute(stack.Route{}), "not valid"},
		{h.RemoveRoute(stack.Route{}), "is not on bond0"},
		{h.RemoveRoute(stack.Route{Destination: prefix("0.0.0.0/0"), Gateway: addr("172.16.0.1")}), "0.0.0.0/0 via 172.16.0.1 is not on bond0"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("error %v, want %q", tt.err, tt.want)
		}
	}
	check([]stack.Address{linkLocal, six, three}, "fe80::/64", "fd00::/64", "172.16.0.0/12")

	route := stack.Route{Destination: prefix("0.0.0.0/0"), Gateway: addr("172.16.0.1")}
	other := stack.Route{Destination: prefix("0.0.0.0/0"), Gateway: addr("172.16.0.2")}
	for _, r := range []stack.Route{route, other} {
		if err := h.AddRoute(r); err != nil {
			t.Fatal(err)
		}
	}
	// Only the one with the same gateway goes.
	if err := h.RemoveRoute(route); err != nil {
		t.Fatal(err)
	}
	if got := h.Routes(); got[len(got)-1] != other {
		t.Errorf("Routes() = %v, want %v last", got, other)
	}
	h.Close()
	if err := h.AddAddress(one.Prefix); err == nil {
		t.Error("AddAddress() on a closed host = no error")
	}
	if err := h.AddRoute(route); err == nil {
		t.Error("AddRoute() on a closed host = no error")
	}
}

// A host's packets for elsewhere go to its gateway.
func TestGateway(t *testing.T) {
	checkGoroutines(t)
	left, right := newWire(t, wire.Options{})
	far := newHost(t, right, stack.HostOptions{
		Addresses: []netip.Prefix{prefix("10.0.0.254/24"), prefix("192.0.2.1/24"), prefix("fd00::fe/64"), prefix("2001:db8::1/64")},
	})
	mustListen(t, far, ":80")
	if err := far.AwaitAddresses(t.Context()); err != nil {
		t.Fatal(err)
	}
	near := newHost(t, left, stack.HostOptions{
		Addresses: []netip.Prefix{prefix("10.0.0.1/24"), prefix("fd00::1/64")},
		Gateway:   addr("10.0.0.254"),
		Gateway6:  addr("fd00::fe"),
	})
	for _, to := range []string{"192.0.2.1:80", "[2001:db8::1]:80"} {
		c, err := near.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

// An address that another host has is found to be a duplicate, and not used.
func TestDuplicateAddress(t *testing.T) {
	// Time enough for the answer.
	a, _ := newPair(t, func(o *stack.HostOptions) { o.DADInterval = 300 * time.Millisecond })
	if err := a.AddAddress(prefix("fd00::2/64")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Listen("tcp", "[fd00::2]:80"); err == nil || !strings.Contains(err.Error(), "not an address of bond0") {
		t.Errorf("Listen() at a duplicate address = %v", err)
	}
	list := a.Addresses()
	if got := list[len(list)-1]; got.State != stack.Duplicate {
		t.Errorf("%s is %s, want duplicate", got.Prefix, got.State)
	}
	if err := a.RemoveAddress(addr("fd00::2")); err != nil {
		t.Errorf("RemoveAddress(a duplicate) = %v", err)
	}
	if got := len(a.Addresses()); got != len(list)-1 {
		t.Errorf("%d addresses after the removal of one of %d", got, len(list))
	}
}

// A host that hears its own neighbour solicitations (two slaves in one bridge)
// does not take itself for another one.
func TestHearsItself(t *testing.T) {
	h, r := newRecorded(t, true, func(o *stack.HostOptions) {
		o.DADTransmits = 1
		o.DADInterval = 200 * time.Millisecond // it hears itself before
		o.Addresses = []netip.Prefix{prefix("fd00::1/64")}
	})
	for _, a := range h.Addresses() {
		l := mustListen(t, h, net.JoinHostPort(a.Prefix.Addr().String(), "80"))
		l.Close()
	}
	for _, a := range h.Addresses() {
		if a.State != stack.Assigned {
			t.Errorf("%s is %s, want assigned", a.Prefix, a.State)
		}
	}
	solicitations := 0
	for _, f := range r.take() {
		if f[20] == 0x3a && f[54] == 135 {
			solicitations++
		}
	}
	if solicitations < 4 { // one, and three more since it heard itself, for each
		t.Errorf("%d solicitations, want more: none was heard", solicitations)
	}
}
