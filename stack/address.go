package stack

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// AddressState is how far an address of a host is.
type AddressState int

// The states of an address. IPv4 addresses are always Assigned.
const (
	// Assigned addresses are in use.
	Assigned AddressState = iota
	// Tentative addresses are being asked for on the link, and not in use.
	Tentative
	// Duplicate addresses are another host's, and never used. Remove and add
	// the address to try again.
	Duplicate
)

// String returns "assigned", "tentative" or "duplicate".
func (s AddressState) String() string {
	switch s {
	case Assigned:
		return "assigned"
	case Tentative:
		return "tentative"
	default:
		return "duplicate"
	}
}

// Address is an address of a host.
type Address struct {
	// Prefix is the address with the length of its network's prefix.
	Prefix netip.Prefix
	// State is how far it is.
	State AddressState
}

// addressTable knows a host's addresses, in the order of adding.
type addressTable struct {
	// mu is a leaf: netstack calls in with its own locks held.
	mu sync.Mutex
	// The following are guarded by mu.
	list []*addressEntry
	// changed is closed, and made anew, at each change of a state.
	changed chan struct{}
}

// addressEntry is one address; netstack tells it what becomes of it.
type addressEntry struct {
	table   *addressTable
	on      *Interface
	Address // guarded by table.mu
}

var _ netstack.AddressDispatcher = (*addressEntry)(nil)

func (t *addressTable) init() { t.changed = make(chan struct{}) }

// wake has everybody who waits for a change look again.
func (t *addressTable) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakeLocked()
}

func (t *addressTable) wakeLocked() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// add returns nil when the interface has the address already.
func (t *addressTable) add(on *Interface, p netip.Prefix) *addressEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.list {
		if e.on == on && e.Prefix.Addr() == p.Addr() {
			return nil
		}
	}
	e := &addressEntry{table: t, on: on, Address: Address{Prefix: p, State: Tentative}}
	t.list = append(t.list, e)
	return e
}

// removeAll forgets the addresses of an interface that has gone.
func (t *addressTable) removeAll(on *Interface) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(e *addressEntry) bool { return e.on == on })
	t.wakeLocked()
}

// remove returns the address that the interface had, nil when it had not.
func (t *addressTable) remove(on *Interface, addr netip.Addr) *addressEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, e := range t.list {
		if e.on == on && e.Prefix.Addr() == addr {
			t.list = slices.Delete(t.list, i, i+1)
			t.wakeLocked()
			return e
		}
	}
	return nil
}

// snapshot returns copies of the addresses, and a channel that is closed when
// they are no longer these.
func (t *addressTable) snapshot() ([]addressEntry, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]addressEntry, len(t.list))
	for i, e := range t.list {
		list[i] = *e
	}
	return list, t.changed
}

// of returns the addresses of an interface, or, for nil, of all.
func (t *addressTable) of(on *Interface) []Address {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Address
	for _, e := range t.list {
		if on == nil || e.on == on {
			list = append(list, e.Address)
		}
	}
	return list
}

// OnChanged implements stack.AddressDispatcher.
func (e *addressEntry) OnChanged(_ netstack.AddressLifetimes, state netstack.AddressAssignmentState) {
	if state == netstack.AddressAssigned {
		e.setState(Assigned)
	} else {
		e.setState(Tentative)
	}
}

// OnRemoved implements stack.AddressDispatcher.
func (e *addressEntry) OnRemoved(reason netstack.AddressRemovalReason) {
	if reason == netstack.AddressRemovalDADFailed {
		e.setState(Duplicate)
	}
}

func (e *addressEntry) setState(s AddressState) {
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	e.State = s
	e.table.wakeLocked()
}

// AddAddress gives the host's first interface an address: see
// Interface.AddAddress.
func (h *Host) AddAddress(p netip.Prefix) error { return h.first().AddAddress(p) }

// AddAddress gives the interface an address and the host a route to its network.
// It returns an error when the address cannot be a host's, is there already, or
// needs IPv6 on a link that is too small for it. An IPv6 address is used once no
// other host has claimed it.
func (i *Interface) AddAddress(p netip.Prefix) error {
	h := i.host
	if err := CheckAddress(p); err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	if p.Addr().Is6() && !h.ipv6 {
		return fmt.Errorf("stack: address %s on %s: IPv6 needs a link with an MTU of at least %d", p, i.name, minIPv6MTU)
	}
	if err := h.ended(); err != nil {
		return fmt.Errorf("stack: address %s on %s: %w", p, i.name, err)
	}
	entry := h.addresses.add(i, p)
	if entry == nil {
		return fmt.Errorf("stack: address %s is on %s already", p, i.name)
	}
	address := tcpip.ProtocolAddress{
		Protocol:          protocolOf(p.Addr()),
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: toAddress(p.Addr()), PrefixLen: p.Bits()},
	}
	if err := h.stack.AddProtocolAddress(i.id, address, netstack.AddressProperties{Disp: entry}); err != nil {
		h.addresses.remove(i, p.Addr())
		return fmt.Errorf("stack: address %s on %s: %w", p, i.name, errorOf(err))
	}
	h.ensureRoute(tcpip.Route{Destination: toSubnet(p), NIC: i.id})
	return nil
}

// RemoveAddress takes an address from the host's first interface: see
// Interface.RemoveAddress.
func (h *Host) RemoveAddress(addr netip.Addr) error { return h.first().RemoveAddress(addr) }

// RemoveAddress takes an address from the interface, with the route to its network
// when no other address is in that. Connections that use the address can no
// longer send.
func (i *Interface) RemoveAddress(addr netip.Addr) error {
	h := i.host
	entry := h.addresses.remove(i, addr.Unmap())
	if entry == nil {
		return fmt.Errorf("stack: address %s is not on %s", addr, i.name)
	}
	h.stack.RemoveAddress(i.id, toAddress(addr)) // fails for a duplicate, which is not there
	network := entry.Prefix.Masked()
	for _, a := range i.Addresses() {
		if a.Prefix.Masked() == network {
			return nil
		}
	}
	i.removeRoutes(same(tcpip.Route{Destination: toSubnet(network), NIC: i.id}))
	return nil
}

// Addresses returns the addresses of all interfaces in the order of adding. An
// IPv6 host's link-local address comes first.
func (h *Host) Addresses() []Address { return h.addresses.of(nil) }

// Addresses returns the interface's addresses in the order of adding.
func (i *Interface) Addresses() []Address { return i.host.addresses.of(i) }

// AwaitAddresses waits until none of the host's addresses is tentative and every
// interface with DHCP has a lease, so that others can reach it at all of them that are
// not duplicates. It returns the context's error when that ends first, and that of the
// host's end.
func (h *Host) AwaitAddresses(ctx context.Context) error {
	err := h.await(ctx, func(list []addressEntry) bool {
		return slices.ContainsFunc(h.Interfaces(), func(i *Interface) bool { return i.unsettled(list) })
	})
	if err != nil {
		return fmt.Errorf("stack: addresses of %s: %w", h.name, err)
	}
	return nil
}

// unsettled reports whether any of the interface's addresses is tentative, or still
// to come by DHCP.
func (i *Interface) unsettled(list []addressEntry) bool {
	if _, ok := i.Lease(); i.leaser != nil && !ok {
		return true
	}
	return slices.ContainsFunc(list, func(e addressEntry) bool { return e.on == i && e.State == Tentative })
}

// AwaitAddress waits until the host has an address for which match returns true, by
// SLAAC for instance, and returns the first one. Its errors are those of
// AwaitAddresses.
func (h *Host) AwaitAddress(ctx context.Context, match func(Address) bool) (found Address, err error) {
	err = h.await(ctx, func(list []addressEntry) bool {
		at := slices.IndexFunc(list, func(e addressEntry) bool { return match(e.Address) })
		if at >= 0 {
			found = list[at].Address
		}
		return at < 0
	})
	if err != nil {
		return Address{}, fmt.Errorf("stack: addresses of %s: %w", h.name, err)
	}
	return found, nil
}

// awaitAddresses waits until no address for which concerns returns true is
// tentative, the context has ended, or the host is over.
func (h *Host) awaitAddresses(ctx context.Context, concerns func(netip.Addr) bool) error {
	return h.await(ctx, func(list []addressEntry) bool {
		return slices.ContainsFunc(list, func(e addressEntry) bool { return e.State == Tentative && concerns(e.Prefix.Addr()) })
	})
}

// await waits while pending returns true for the addresses.
func (h *Host) await(ctx context.Context, pending func([]addressEntry) bool) error {
	for {
		list, changed := h.addresses.snapshot()
		if !pending(list) {
			return nil
		}
		if err := h.ended(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// CheckAddress returns why a prefix, such as 10.0.0.2/24, cannot be a host's
// address; nil where it can.
func CheckAddress(p netip.Prefix) error {
	a := p.Addr()
	switch {
	case !p.IsValid():
		return fmt.Errorf("address %s is not valid: an IP address with the length of its prefix is needed", p)
	case a.Is4In6():
		return fmt.Errorf("address %s is an IPv4 address mapped into IPv6: give it as IPv4", p)
	case a.IsUnspecified(), a.IsMulticast(), a.IsLoopback(), a == limitedBroadcast:
		return fmt.Errorf("address %s cannot be a host's: unspecified, multicast, loopback and broadcast addresses are not allowed", p)
	case a.Is4() && p.Bits() < 31 && a == lastAddr(p):
		return fmt.Errorf("address %s is its network's broadcast address", p)
	}
	return nil
}

// lastAddr returns the last address of an IPv4 network.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

func netipPrefix(a tcpip.Address, bits int) netip.Prefix {
	return netip.PrefixFrom(fromAddress(a), bits)
}
