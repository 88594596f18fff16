package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"bondstack/link"
	"bondstack/link/vlan"
	"bondstack/stack"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// vlanSpec is one --vlan: a device and what is on it.
type vlanSpec struct {
	tags      []vlanTag // the outermost first
	addresses []netip.Prefix
	// dhcp, slaac and routes only files have.
	dhcp, slaac bool
	routes      []stack.Route
}

// vlanTag is a tag of a device's frames, and their priority in it.
type vlanTag struct {
	link.VLANTag
	priority uint8
}

// maxTags is how many tags a device's frames may have.
const maxTags = 2

// parseVLAN reads [802.1ad:]ID[@PRIORITY][/...][=CIDR,...].
func (s *runSettings) parseVLAN(text string) error {
	path, addresses, hasAddresses := strings.Cut(text, "=")
	var v vlanSpec
	for part := range strings.SplitSeq(path, "/") {
		tag, err := parseTag(part)
		if err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		v.tags = append(v.tags, tag)
	}
	if len(v.tags) > maxTags {
		return fmt.Errorf("%q has %d tags, at most %d are allowed", text, len(v.tags), maxTags)
	}
	if hasAddresses {
		for a := range strings.SplitSeq(addresses, ",") {
			p, err := netip.ParsePrefix(a)
			if err != nil {
				return fmt.Errorf("%q: %q is not an address with a prefix length, such as 10.5.0.2/24", text, a)
			}
			v.addresses = append(v.addresses, p)
		}
	}
	name := v.name(s.name)
	if err := (stack.HostOptions{Name: name, Addresses: v.addresses}).Validate(); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	for _, other := range s.vlans {
		if other.name(s.name) == name {
			return fmt.Errorf("%q: %s is given twice", text, name)
		}
	}
	s.vlans = append(s.vlans, v)
	return nil
}

// parseTag reads [802.1ad:]ID[@PRIORITY].
func parseTag(text string) (vlanTag, error) {
	t := vlanTag{VLANTag: link.VLANTag{Protocol: link.TagProtocolQ}}
	id, ad := strings.CutPrefix(text, "802.1ad:")
	if ad {
		t.Protocol = link.TagProtocolAD
	} else {
		id = strings.TrimPrefix(id, "802.1q:")
	}
	id, priority, hasPriority := strings.Cut(id, "@")
	n, err := strconv.ParseUint(id, 10, 16)
	if err != nil || n == 0 || n > link.MaxVLANID {
		return t, fmt.Errorf("%q is not a VLAN, allowed are 1 to %d, with 802.1ad: before it for that kind of tag", id, link.MaxVLANID)
	}
	t.ID = uint16(n)
	if hasPriority {
		p, err := strconv.ParseUint(priority, 10, 8)
		if err != nil || p > 7 {
			return t, fmt.Errorf("%q is not a priority, allowed are 0 to 7", priority)
		}
		t.priority = uint8(p)
	}
	return t, nil
}

// name is that of the device, as Linux's tools name them: bond0.5, bond0.7.5.
func (v vlanSpec) name(bond string) string {
	for _, t := range v.tags {
		bond += "." + strconv.Itoa(int(t.ID))
	}
	return bond
}

// vlanNode is a link and the devices on it.
type vlanNode struct {
	link  netstack.LinkEndpoint
	trunk *vlan.Trunk
	on    map[link.VLANTag]*vlanNode
}

// endpoint is what a host uses of the link: the trunk, where devices are on it.
func (n *vlanNode) endpoint() netstack.LinkEndpoint {
	if n.trunk != nil {
		return n.trunk
	}
	return n.link
}

// device returns the device of a tag, and makes it where it is not there.
func (n *vlanNode) device(t vlanTag) (*vlanNode, error) {
	if n.trunk == nil {
		trunk, err := vlan.NewTrunk(n.link)
		if err != nil {
			return nil, err
		}
		n.trunk, n.on = trunk, map[link.VLANTag]*vlanNode{}
	}
	if child := n.on[t.VLANTag]; child != nil {
		return child, nil
	}
	o := vlan.Options{Priority: t.priority}
	if _, second := n.link.(*vlan.Device); second || t.Protocol != link.TagProtocolQ {
		// Packet sockets take one 802.1Q tag beyond the MTU, and no other.
		o.MTUReserve = 4
	}
	d, err := n.trunk.Add(t.VLANTag, o)
	if err != nil {
		return nil, err
	}
	child := &vlanNode{link: d}
	n.on[t.VLANTag] = child
	return child, nil
}

// newHost makes the host on a bond, with its VLAN devices. Closing the host closes
// them, and the bond.
func (s *runSettings) newHost(bond netstack.LinkEndpoint) (*stack.Host, error) {
	root := &vlanNode{link: bond}
	devices := make([]*vlanNode, len(s.vlans))
	for i, v := range s.vlans {
		at := root
		for _, t := range v.tags {
			var err error
			if at, err = at.device(t); err != nil {
				return nil, fmt.Errorf("--vlan %s: %w", v.name(s.name), err)
			}
		}
		devices[i] = at
	}
	h, err := stack.NewHost(root.endpoint(), s.host)
	if err != nil {
		return nil, err
	}
	for i, v := range s.vlans {
		if _, err := h.AddLink(v.name(s.name), devices[i].endpoint(), stack.LinkOptions{Addresses: v.addresses, Routes: v.routes, DHCP: v.dhcp, SLAAC: v.slaac}); err != nil {
			h.Close()
			return nil, fmt.Errorf("--vlan %s: %w", v.name(s.name), err)
		}
	}
	return h, nil
}
