package bridge

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Announce tells the link's other hosts and switches where the addresses behind
// the device are: for each IPv4 address a gratuitous ARP request (RFC 5227,
// section 3), for each IPv6 address an unsolicited neighbour advertisement to all
// nodes (RFC 4861, section 7.2.6). The frames are with the link when it returns.
func (b *Bridge) Announce() {
	b.sync() // the device has the address that is announced
	b.stats.announcements.Add(1)
	router := b.device.Forwards()
	mac := b.below.LinkAddress()
	for _, s := range b.announced(mac) {
		var frame []byte
		if s.addr.Is4() {
			frame = gratuitousARP(s)
		} else {
			frame = unsolicitedNA(s, router && s.mac == mac)
		}
		inject(b.below, frame)
	}
}

// Introduce is Announce for who has just given the device addresses, which the
// kernel's news may not have told of yet. Hosts that remember another that had
// them learn so where they are now (RFC 5227, section 2.3).
func (b *Bridge) Introduce() {
	b.readAddresses()
	b.Announce()
}

// announced returns what to announce: the namespace's own addresses, which have
// the link's MAC address, then those that were seen.
func (b *Bridge) announced(mac tcpip.LinkAddress) []sighting {
	var list []sighting
	known := map[netip.Addr]bool{}
	if own := b.addresses.Load(); own != nil {
		for _, a := range *own {
			known[a.Addr] = true
			if !a.Tentative && !a.Addr.IsLoopback() {
				list = append(list, sighting{a.Addr, mac, tagBytes(a.Tags)})
			}
		}
	}
	seen := b.seen.list()
	slices.SortFunc(seen, func(x, y sighting) int { return x.addr.Compare(y.addr) })
	for _, s := range seen {
		if !known[s.addr] {
			list = append(list, s)
		}
	}
	return list
}

// tagBytes returns tags as they are in a frame, with priority 0.
func tagBytes(tags []link.VLANTag) string {
	var b []byte
	for _, t := range tags {
		b = binary.BigEndian.AppendUint16(b, t.Protocol)
		b = binary.BigEndian.AppendUint16(b, t.ID)
	}
	return string(b)
}

// inject writes a frame of ours.
func inject(to stack.LinkWriter, frame []byte) {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	defer pkt.DecRef()
	pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	pkt.NetworkProtocolNumber = tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(frame[12:]))
	send(to, pkt)
}

// ethernet returns the start of a frame.
func ethernet(to, from tcpip.LinkAddress, tags string, protocol tcpip.NetworkProtocolNumber) []byte {
	b := []byte(string(to) + string(from) + tags)
	return binary.BigEndian.AppendUint16(b, uint16(protocol))
}

// gratuitousARP returns an ARP request of a host for its own address, as Linux
// makes it.
func gratuitousARP(s sighting) []byte {
	arp := header.ARP(make([]byte, header.ARPSize))
	arp.SetIPv4OverEthernet()
	arp.SetOp(header.ARPRequest)
	copy(arp.HardwareAddressSender(), s.mac)
	copy(arp.ProtocolAddressSender(), s.addr.AsSlice())
	copy(arp.ProtocolAddressTarget(), s.addr.AsSlice())
	return append(ethernet(header.EthernetBroadcastAddress, s.mac, s.tags, header.ARPProtocolNumber), arp...)
}

// unsolicitedNA returns a neighbour advertisement that nobody asked for.
func unsolicitedNA(s sighting, router bool) []byte {
	options := header.NDPOptionsSerializer{header.NDPTargetLinkLayerAddressOption(s.mac)}
	icmp := header.ICMPv6(make([]byte, header.ICMPv6NeighborAdvertMinimumSize+options.Length()))
	icmp.SetType(header.ICMPv6NeighborAdvert)
	na := header.NDPNeighborAdvert(icmp.MessageBody())
	na.SetTargetAddress(tcpip.AddrFrom16(s.addr.As16()))
	na.SetOverrideFlag(true)
	na.SetRouterFlag(router)
	na.Options().Serialize(options)
	to := header.EthernetAddressFromMulticastIPv6Address(header.IPv6AllNodesMulticastAddress)
	return append(ethernet(to, s.mac, s.tags, header.IPv6ProtocolNumber),
		icmpPacket(tcpip.AddrFrom16(s.addr.As16()), header.IPv6AllNodesMulticastAddress, header.NDPHopLimit, nil, icmp)...)
}

// icmpPacket returns the IPv6 packet of an ICMPv6 message, whose checksum it sets.
func icmpPacket(from, to tcpip.Address, hops uint8, extensions header.IPv6ExtHdrSerializer, icmp header.ICMPv6) []byte {
	pseudo := header.PseudoHeaderChecksum(header.ICMPv6ProtocolNumber, from, to, uint16(len(icmp)))
	icmp.SetChecksum(^checksum.Checksum(icmp, pseudo))
	b := make([]byte, header.IPv6MinimumSize+extensions.Length(), header.IPv6MinimumSize+extensions.Length()+len(icmp))
	header.IPv6(b).Encode(&header.IPv6Fields{
		PayloadLength:     uint16(extensions.Length() + len(icmp)),
		TransportProtocol: header.ICMPv6ProtocolNumber,
		HopLimit:          hops,
		SrcAddr:           from,
		DstAddr:           to,
		ExtensionHeaders:  extensions,
	})
	return append(b, icmp...)
}

// querierMAC is whom the queries come from: a local address that no device has.
const querierMAC = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x00")

// ReportMemberships has the namespace report its multicast memberships, as Linux
// does by itself on a bond of its own (NETDEV_RESEND_IGMP): it is given general
// queries, of IGMPv3 from nobody and of MLDv2, that leave no time to wait. The
// link does not see them.
func (b *Bridge) ReportMemberships() {
	b.stats.reports.Add(1)
	inject(b.device, igmpQuery())
	inject(b.device, mldQuery())
}

// igmpQuery returns the frame of a general query (RFC 3376, section 4.1).
func igmpQuery() []byte {
	options := header.IPv4OptionsSerializer{&header.IPv4SerializableRouterAlertOption{}}
	ip := header.IPv4(make([]byte, header.IPv4MinimumSize+int(options.Length())))
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(ip) + header.IGMPv3QueryMinimumSize),
		TTL:         header.IGMPTTL,
		Protocol:    uint8(header.IGMPProtocolNumber),
		SrcAddr:     header.IPv4Any,
		DstAddr:     header.IPv4AllSystems,
		Options:     options,
	})
	ip.SetChecksum(^ip.CalculateChecksum())
	igmp := header.IGMP(make([]byte, header.IGMPv3QueryMinimumSize))
	igmp.SetType(header.IGMPMembershipQuery)
	igmp.SetChecksum(header.IGMPCalculateChecksum(igmp))
	to := header.EthernetAddressFromMulticastIPv4Address(header.IPv4AllSystems)
	return slices.Concat(ethernet(to, querierMAC, "", header.IPv4ProtocolNumber), []byte(ip), []byte(igmp))
}

// mldQuery returns the frame of a general query (RFC 3810, section 5.1), from a
// link-local address that nobody has.
func mldQuery() []byte {
	querier := tcpip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80})
	extensions := header.IPv6ExtHdrSerializer{header.IPv6SerializableHopByHopExtHdr{
		&header.IPv6RouterAlertOption{Value: header.IPv6RouterAlertMLD},
	}}
	icmp := header.ICMPv6(make([]byte, header.ICMPv6HeaderSize+header.MLDv2QueryMinimumSize))
	icmp.SetType(header.ICMPv6MulticastListenerQuery)
	to := header.EthernetAddressFromMulticastIPv6Address(header.IPv6AllNodesMulticastAddress)
	return append(ethernet(to, querierMAC, "", header.IPv6ProtocolNumber),
		icmpPacket(querier, header.IPv6AllNodesMulticastAddress, header.MLDHopLimit, extensions, icmp)...)
}
