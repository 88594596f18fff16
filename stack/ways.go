package stack

import (
	"net/netip"
	"slices"

	"bondstack/link"
)

// ways are what an interface's link is told of the stack's routes. The tags of
// VLAN devices are those of the links between, which add their own.
type ways struct{ iface *Interface }

var _ link.Routes = ways{}

// Route implements link.Routes.
func (w ways) Route(target netip.Addr) (link.Way, bool) {
	target = target.Unmap()
	s := w.iface.host.stack
	if !target.IsValid() || w.iface.host.owns(target) {
		return link.Way{}, false // nothing is sent
	}
	nic := w.iface.id
	if !needsNIC(target) {
		nic = 0
	}
	r, err := s.FindRoute(nic, toAddress(netip.Addr{}), toAddress(target), protocolOf(target), false)
	if err != nil {
		return link.Way{}, true
	}
	defer r.Release()
	if r.NICID() != w.iface.id {
		return link.Way{}, false
	}
	return link.Way{Source: fromAddress(r.LocalAddress())}, true
}

// Owns implements link.Routes.
func (w ways) Owns(addr netip.Addr) bool {
	return slices.ContainsFunc(w.iface.Addresses(), func(a Address) bool {
		return a.Prefix.Addr() == addr.Unmap() && a.State != Duplicate
	})
}

// owns reports whether an address is the host's, on whatever interface.
func (h *Host) owns(addr netip.Addr) bool {
	return slices.ContainsFunc(h.Addresses(), func(a Address) bool { return a.Prefix.Addr() == addr })
}
