package stack

import (
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// ReportMemberships has every interface report its memberships.
func (h *Host) ReportMemberships() {
	for _, i := range h.Interfaces() {
		i.ReportMemberships()
	}
}

// ReportMemberships tells the link's switches and routers which multicast groups
// the host is in, as Linux does for NETDEV_RESEND_IGMP: a report of every joined
// IPv4 group but 224.0.0.1, in the version of IGMP that is spoken, and of every
// joined IPv6 group but ff02::1 by MLD, those of solicited nodes among them. The
// reports are sent at once, by another goroutine. A link that is a
// link.MembershipNotifier has it called when it is due.
//
// netstack knows the groups, and tells nobody but who asks as routers do. So it
// is handed a general query, which nobody on the link sees: one of the latest
// version, which netstack answers in the version it is in and which leaves that
// as it is, with no time to wait and nothing said of the querier.
func (i *Interface) ReportMemberships() {
	h := i.host
	leave, ok := h.enter()
	if !ok {
		return
	}
	defer leave()
	i.hand(ipv4.ProtocolNumber, igmpQuery())
	if h.ipv6 {
		i.hand(ipv6.ProtocolNumber, mldQuery())
	}
}

// hand gives a packet to the network protocol, as if it had been received.
func (i *Interface) hand(proto tcpip.NetworkProtocolNumber, packet []byte) {
	ep, err := i.host.stack.GetNetworkEndpoint(i.id, proto)
	if err != nil || ep == nil {
		return // the interface is gone
	}
	pkt := netstack.NewPacketBuffer(netstack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
	defer pkt.DecRef()
	pkt.NICID, pkt.NetworkProtocolNumber, pkt.PktType = i.id, proto, tcpip.PacketMulticast
	ep.HandlePacket(pkt)
}

// igmpQuery returns the IPv4 packet of a general query of IGMPv3 (RFC 3376,
// section 4.1) from nobody, as a snooping switch without an address sends it.
func igmpQuery() []byte {
	options := header.IPv4OptionsSerializer{&header.IPv4SerializableRouterAlertOption{}}
	size := header.IPv4MinimumSize + int(options.Length())
	packet := make([]byte, size+header.IGMPv3QueryMinimumSize)
	ip := header.IPv4(packet)
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(packet)),
		TTL:         header.IGMPTTL,
		Protocol:    uint8(header.IGMPProtocolNumber),
		SrcAddr:     header.IPv4Any,
		DstAddr:     header.IPv4AllSystems,
		Options:     options,
	})
	ip.SetChecksum(^ip.CalculateChecksum())
	igmp := header.IGMP(packet[size:])
	igmp.SetType(header.IGMPMembershipQuery)
	igmp.SetChecksum(header.IGMPCalculateChecksum(igmp))
	return packet
}

// querier is the source of mldQuery: a link-local address that nobody has, since
// that is what queries come from.
var querier = tcpip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80})

// mldQuery returns the IPv6 packet of a general query of MLDv2 (RFC 3810,
// section 5.1).
func mldQuery() []byte {
	extensions := header.IPv6ExtHdrSerializer{header.IPv6SerializableHopByHopExtHdr{
		&header.IPv6RouterAlertOption{Value: header.IPv6RouterAlertMLD},
	}}
	size := header.IPv6MinimumSize + extensions.Length()
	packet := make([]byte, size+header.ICMPv6HeaderSize+header.MLDv2QueryMinimumSize)
	header.IPv6(packet).Encode(&header.IPv6Fields{
		PayloadLength:     uint16(len(packet) - header.IPv6MinimumSize),
		TransportProtocol: header.ICMPv6ProtocolNumber,
		HopLimit:          header.MLDHopLimit,
		SrcAddr:           querier,
		DstAddr:           header.IPv6AllNodesMulticastAddress,
		ExtensionHeaders:  extensions,
	})
	icmp := header.ICMPv6(packet[size:])
	icmp.SetType(header.ICMPv6MulticastListenerQuery)
	pseudo := header.PseudoHeaderChecksum(header.ICMPv6ProtocolNumber, querier, header.IPv6AllNodesMulticastAddress, uint16(len(icmp)))
	icmp.SetChecksum(^checksum.Checksum(icmp, pseudo))
	return packet
}
