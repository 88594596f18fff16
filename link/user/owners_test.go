package user

import (
	"net/netip"
	"testing"

	"bondstack/link/linktest"
)

// nth returns an address of its own for each number.
func nth(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }

// When there are as many as may be, the one that was not seen for longest makes
// room.
func TestOwners(t *testing.T) {
	var o owners
	for i := range maxOwners {
		o.see(nth(i))
	}
	o.see(nth(0))
	o.see(nth(maxOwners))
	o.see(nth(maxOwners + 1))
	for i := range maxOwners + 2 {
		if want := i != 1 && i != 2; o.has(nth(i)) != want {
			t.Errorf("address %d is known: %v, want %v", i, !want, want)
		}
	}
	if len(o.byAddress) != maxOwners || o.order.Len() != maxOwners {
		t.Errorf("%d and %d are kept, want %d", len(o.byAddress), o.order.Len(), maxOwners)
	}
}

// An address of the bond's side is not answered for after many others were seen.
func TestNewOwner(t *testing.T) {
	n := newTestNetwork(t)
	for i := range 2 * maxOwners {
		n.hub.owners.see(nth(i))
	}
	s := newStation(t, n, 1)
	s.arp(linktest.ARPRequest, "192.0.2.5", "192.0.2.1")
	s.arp(linktest.ARPRequest, "192.0.2.6", "192.0.2.5")
	s.arp(linktest.ARPRequest, "192.0.2.6", "192.0.2.2")
	if got := s.answers(2); len(got) != 2 || got[0] != "192.0.2.1" || got[1] != "192.0.2.2" {
		t.Errorf("the answers are for %v", got)
	}
	if c := n.Stats().Claims; c != 1 {
		t.Errorf("%d claims, want 1", c)
	}
}
