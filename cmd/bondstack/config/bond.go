package config

import (
	"maps"
	"net"
	"net/netip"
	"slices"

	"bondstack/bonding"
	"bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// BondOptions are the settings that a bond is made with, before Options are set
// on it.
func (b *Bond) BondOptions() bonding.Options {
	o := bonding.Options{Name: b.Name, Mode: bonding.Mode(b.Mode), MTU: b.MTU}
	if mac, err := net.ParseMAC(b.HardwareAddress); err == nil {
		o.LinkAddress = tcpip.LinkAddress(mac)
	}
	return o
}

// Early are the options that are set before slaves join, Late those that name a
// slave which has to be there.
func (b *Bond) Early() map[string]string {
	early := maps.Clone(map[string]string(b.Options))
	delete(early, activeSlave)
	return early
}

// Late are the other options: see Early.
func (b *Bond) Late() map[string]string {
	late := map[string]string{}
	if name, ok := b.Options[activeSlave]; ok {
		late[activeSlave] = name
	}
	return late
}

const activeSlave = "active_slave"

// Tap reports whether the bond is to have a device of the kernel.
func (b *Bond) Tap() bool { return b.Device == DeviceTAP }

// KeepsFrames reports whether the slaves' frames are kept from the host's stack.
func (b *Bond) KeepsFrames() bool {
	if b.Exclusive != nil {
		return *b.Exclusive
	}
	return b.Tap() && b.NetNS == "" && !slices.ContainsFunc(b.Slaves, func(s Slave) bool { return !s.mayKeepFrames() })
}

// mayKeepFrames reports whether the slave's kind can keep frames from the host.
func (s *Slave) mayKeepFrames() bool {
	kind := s.KindOrDefault()
	return kind == "packet" || kind == "xdp"
}

// KindOrDefault is the slave's kind.
func (s *Slave) KindOrDefault() string {
	if s.Kind == "" {
		return DefaultKind
	}
	return s.Kind
}

// Options are what the slave joins with.
func (s *Slave) Options() bonding.SlaveOptions {
	return bonding.SlaveOptions{Priority: s.Prio, Weight: s.Weight, QueueID: s.QueueID, ActorPortPriority: s.ActorPortPrio, Disabled: s.Disabled}
}

// The words that stand for addresses which the network tells.
const (
	AddressDHCP = "dhcp" // DHCPv4
	AddressAuto = "auto" // IPv6 autoconfiguration
)

// Static returns the addresses that are written out. Those that are not of their
// form are left out.
func Static(addresses []string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range addresses {
		if p, err := netip.ParsePrefix(text); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// Routes returns routes as a stack takes them, of those to one network the one
// with the least metric, which is the one that is used. Those that are not of
// their form are left out.
func Routes(routes []Route) []stack.Route {
	sorted := slices.Clone(routes)
	slices.SortStableFunc(sorted, func(a, b Route) int { return int(int64(a.Metric) - int64(b.Metric)) })
	var list []stack.Route
	for _, r := range sorted {
		s, ok := r.stack()
		if ok && !slices.ContainsFunc(list, func(o stack.Route) bool { return o.Destination == s.Destination }) {
			list = append(list, s)
		}
	}
	return list
}

func (r *Route) stack() (s stack.Route, ok bool) {
	s.Gateway, _ = netip.ParseAddr(r.Via) // none where it is empty
	if r.To == "default" {
		switch {
		case s.Gateway.Is4():
			s.Destination = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		case s.Gateway.Is6():
			s.Destination = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		default:
			return s, false
		}
		return s, true
	}
	p, err := netip.ParsePrefix(r.To)
	s.Destination = p
	return s, err == nil
}

// ProtocolOrDefault is the kind of the VLAN's tag.
func (v *VLAN) ProtocolOrDefault() string {
	if v.Protocol == "" {
		return "802.1Q"
	}
	return v.Protocol
}

// Interface reports whether the device is an interface of the stack, not only
// what others are inside of.
func (v *VLAN) Interface() bool { return len(v.VLANs) == 0 || len(v.Addresses) > 0 }
