package stack

import (
	"fmt"
	"net/netip"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
)

// toAddress returns gVisor's form of an address: 4 bytes for IPv4, also where
// it is mapped into IPv6, 16 for IPv6, none for the zero Addr.
func toAddress(a netip.Addr) tcpip.Address {
	a = a.Unmap()
	switch {
	case a.Is4():
		return tcpip.AddrFrom4(a.As4())
	case a.Is6():
		return tcpip.AddrFrom16(a.As16())
	}
	return tcpip.Address{}
}

// fromAddress is the inverse of toAddress.
func fromAddress(a tcpip.Address) netip.Addr {
	addr, _ := netip.AddrFromSlice(a.AsSlice())
	return addr.Unmap()
}

func toSubnet(p netip.Prefix) tcpip.Subnet {
	return tcpip.AddressWithPrefix{Address: toAddress(p.Masked().Addr()), PrefixLen: p.Bits()}.Subnet()
}

func fromSubnet(s tcpip.Subnet) netip.Prefix {
	return netip.PrefixFrom(fromAddress(s.ID()), s.Prefix())
}

// protocolOf returns the network protocol that carries an address.
func protocolOf(a netip.Addr) tcpip.NetworkProtocolNumber {
	if a.Unmap().Is4() {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

// needsNIC reports whether an address means something only on a certain
// interface, so that no route is looked up for it.
func needsNIC(a netip.Addr) bool {
	return a.IsMulticast() || a.IsLinkLocalUnicast() || a == limitedBroadcast
}

var limitedBroadcast = fromAddress(header.IPv4Broadcast)

// fullAddress returns gVisor's form of an address and port. An unspecified
// address is the empty one: any. nic is the interface that its zone named, 0 for
// none: an address that means something only on an interface is then on the first.
func (h *Host) fullAddress(ap netip.AddrPort, nic tcpip.NICID) tcpip.FullAddress {
	full := tcpip.FullAddress{Port: ap.Port()}
	addr := ap.Addr().Unmap()
	if addr.IsValid() && !addr.IsUnspecified() {
		full.Addr = toAddress(addr)
	}
	if needsNIC(addr) {
		full.NIC = or(nic, firstNIC)
	}
	return full
}

// addrPort is the inverse of fullAddress; a link-local IPv6 address carries the
// interface's name as its zone, as in package net.
func (h *Host) addrPort(full tcpip.FullAddress) netip.AddrPort {
	addr := fromAddress(full.Addr)
	if addr.Is6() && addr.IsLinkLocalUnicast() {
		addr = addr.WithZone(h.zone(full.NIC))
	}
	return netip.AddrPortFrom(addr, full.Port)
}

// zone returns the name of an interface, that of the first one for a number that
// none has.
func (h *Host) zone(nic tcpip.NICID) string {
	for _, i := range h.Interfaces() {
		if i.id == nic {
			return i.name
		}
	}
	return h.name
}

// interfaceOf returns the number of the interface that a zone names, 0 for none.
func (h *Host) interfaceOf(zone string) (tcpip.NICID, error) {
	if zone == "" {
		return 0, nil
	}
	var names []string
	for _, i := range h.Interfaces() {
		if i.name == zone {
			return i.id, nil
		}
		names = append(names, i.name)
	}
	if len(names) == 1 {
		return 0, fmt.Errorf("the only interface is %s", names[0])
	}
	return 0, fmt.Errorf("the interfaces are %s", strings.Join(names, ", "))
}
