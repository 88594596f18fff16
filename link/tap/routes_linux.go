package tap

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"bondstack/link"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var _ link.Routes = (*Endpoint)(nil)

// Addresses returns the IP addresses that the namespace has on the device and on
// VLAN devices that are on it.
func (e *Endpoint) Addresses() ([]Address, error) {
	var list []Address
	err := e.device.withLink("list the addresses", func(h *netlink.Handle, _ netlink.Link) error {
		all, err := h.AddrList(nil, netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		tags := map[int]*[]link.VLANTag{}
		for _, a := range all {
			path, seen := tags[a.LinkIndex]
			if !seen {
				if found, ok := e.device.path(h, a.LinkIndex); ok {
					path = &found
				}
				tags[a.LinkIndex] = path
			}
			ip, ok := netip.AddrFromSlice(a.IP)
			if path == nil || !ok {
				continue
			}
			const hidden = unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED
			bits, _ := a.Mask.Size()
			list = append(list, Address{ip.Unmap(), bits, *path, a.Flags&hidden != 0})
		}
		return nil
	})
	return list, err
}

// maxTags is how many VLAN devices on each other are followed.
const maxTags = 2

// path returns the tags of the VLAN devices between the interface of an index
// and ours; false where it is not on ours.
func (d *device) path(h *netlink.Handle, index int) ([]link.VLANTag, bool) {
	var tags []link.VLANTag
	for index != d.index {
		found, err := h.LinkByIndex(index)
		v, ok := found.(*netlink.Vlan)
		if err != nil || !ok || len(tags) == maxTags {
			return nil, false
		}
		protocol := uint16(v.VlanProtocol)
		if protocol == 0 {
			protocol = link.TagProtocolQ
		}
		tags = append([]link.VLANTag{{Protocol: protocol, ID: uint16(v.VlanId)}}, tags...)
		index = v.Attrs().ParentIndex
	}
	return tags, true
}

// Route implements link.Routes by the namespace's routing table.
func (e *Endpoint) Route(target netip.Addr) (way link.Way, ok bool) {
	target = target.Unmap()
	if !target.IsValid() {
		return link.Way{}, false
	}
	ok = true
	_ = e.device.withLink("", func(h *netlink.Handle, _ netlink.Link) error {
		routes, err := h.RouteGet(net.IP(target.AsSlice()))
		if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || err == nil && len(routes) == 0 {
			return nil // no route: an empty way
		}
		if err != nil || routes[0].Type == unix.RTN_LOCAL {
			ok = false
			return err
		}
		way.Tags, ok = e.device.path(h, routes[0].LinkIndex)
		way.Source, _ = netip.AddrFromSlice(routes[0].Src)
		way.Source = way.Source.Unmap()
		return nil
	})
	return way, ok
}

// Owns implements link.Routes: it reports whether the device, or a VLAN device
// on it, has the address.
func (e *Endpoint) Owns(addr netip.Addr) bool {
	list, _ := e.Addresses()
	for _, a := range list {
		if a.Addr == addr.Unmap() {
			return true
		}
	}
	return false
}

// Forwards reports whether the namespace is an IPv6 router on the device.
func (e *Endpoint) Forwards() bool {
	a := e.device.attributes()
	if a == nil {
		return false
	}
	forwards := false
	e.device.askMu.RLock()
	defer e.device.askMu.RUnlock()
	_ = inNamespace(e.device.namespace, func() error {
		value, err := os.ReadFile("/proc/sys/net/ipv6/conf/" + a.Name + "/forwarding")
		forwards = err == nil && len(value) > 0 && value[0] != '0'
		return nil
	})
	return forwards
}
