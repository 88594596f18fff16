package stack

import (
	"net/netip"
	"slices"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
)

// Announce has every interface announce its addresses.
func (h *Host) Announce() {
	for _, i := range h.Interfaces() {
		i.Announce()
	}
}

// Announce tells the link's other hosts and switches where the addresses of the
// interface are, as Linux does for NETDEV_NOTIFY_PEERS: for each IPv4 address a
// gratuitous ARP request (RFC 5227, section 3), for each IPv6 address that is
// not tentative an unsolicited neighbour advertisement to all nodes (RFC 4861,
// section 7.2.6). The frames are with the link when it returns. A link that is
// a link.Notifier has it called when it is due.
//
// A frame that the link does not take is lost, as any other; the link's own
// counters show it. Links repeat announcements for that reason.
func (i *Interface) Announce() {
	h := i.host
	leave, ok := h.enter()
	if !ok {
		return
	}
	defer leave()
	mac := i.link.LinkAddress()
	if len(mac) != header.EthernetAddressSize {
		return // a link without MACs has nobody to tell
	}
	for _, addr := range i.announced() {
		if addr.Is4() {
			i.transmit(header.EthernetBroadcastAddress, arp.ProtocolNumber, gratuitousARP(mac, addr))
			continue
		}
		i.transmit(header.EthernetAddressFromMulticastIPv6Address(header.IPv6AllNodesMulticastAddress),
			ipv6.ProtocolNumber, unsolicitedNA(mac, addr, i.forwards()))
	}
}

// announced returns the addresses to announce in Linux's order: those of IPv4,
// those of IPv6, and of these the link-local ones last.
func (i *Interface) announced() []netip.Addr {
	var list []netip.Addr
	for _, a := range i.Addresses() {
		if a.State == Assigned {
			list = append(list, a.Prefix.Addr())
		}
	}
	rank := func(a netip.Addr) int {
		switch {
		case a.Is4():
			return 0
		case a.IsLinkLocalUnicast():
			return 2
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return rank(a) - rank(b) })
	return list
}

// transmit sends a frame with a payload that is ready made.
func (i *Interface) transmit(to tcpip.LinkAddress, proto tcpip.NetworkProtocolNumber, payload []byte) {
	// See Announce for the error.
	_ = i.host.stack.WritePacketToRemote(i.id, to, proto, buffer.MakeWithData(payload))
}

// forwards reports whether the host is an IPv6 router on the interface.
func (i *Interface) forwards() bool {
	on, err := i.host.stack.NICForwarding(i.id, ipv6.ProtocolNumber)
	return err == nil && on
}

// gratuitousARP returns an ARP request for an address by its own holder. Its
// target MAC is zero, as in Linux.
func gratuitousARP(mac tcpip.LinkAddress, addr netip.Addr) []byte {
	packet := make([]byte, header.ARPSize)
	h := header.ARP(packet)
	h.SetIPv4OverEthernet()
	h.SetOp(header.ARPRequest)
	ip := addr.As4()
	copy(h.HardwareAddressSender(), mac)
	copy(h.ProtocolAddressSender(), ip[:])
	copy(h.ProtocolAddressTarget(), ip[:])
	return packet
}

// unsolicitedNA returns the IPv6 packet of a neighbour advertisement that
// nobody asked for.
func unsolicitedNA(mac tcpip.LinkAddress, addr netip.Addr, router bool) []byte {
	options := header.NDPOptionsSerializer{header.NDPTargetLinkLayerAddressOption(mac)}
	size := header.ICMPv6NeighborAdvertMinimumSize + options.Length()
	packet := make([]byte, header.IPv6MinimumSize+size)
	source, target := toAddress(addr), header.IPv6AllNodesMulticastAddress

	header.IPv6(packet).Encode(&header.IPv6Fields{
		PayloadLength:     uint16(size),
		TransportProtocol: header.ICMPv6ProtocolNumber,
		HopLimit:          header.NDPHopLimit,
		SrcAddr:           source,
		DstAddr:           target,
	})
	icmp := header.ICMPv6(packet[header.IPv6MinimumSize:])
	icmp.SetType(header.ICMPv6NeighborAdvert)
	na := header.NDPNeighborAdvert(icmp.MessageBody())
	na.SetTargetAddress(source)
	na.SetSolicitedFlag(false)
	na.SetOverrideFlag(true)
	na.SetRouterFlag(router)
	na.Options().Serialize(options)
	icmp.SetChecksum(header.ICMPv6Checksum(header.ICMPv6ChecksumParams{
		Header: icmp[:header.ICMPv6NeighborAdvertMinimumSize],
		Src:    source,
		Dst:    target,
		PayloadCsum: checksum.Checksum(
			icmp[header.ICMPv6NeighborAdvertMinimumSize:], 0),
		PayloadLen: options.Length(),
	}))
	return packet
}
