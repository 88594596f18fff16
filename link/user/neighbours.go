package user

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A stack that spoofs answers ARP for every address, also when the bond asks
// whether one is free for itself: only the gateways are not. And it takes no neighbour solicitation for a
// group that it has not joined. So the hub has a look at these frames first.

// neighbour looks at a received frame. It returns false where nobody shall see
// it, and another in its place where that is needed; the caller lets go of that.
func (h *hub) neighbour(proto tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) (instead *stack.PacketBuffer, ok bool) {
	switch proto {
	case arp.ProtocolNumber:
		if b, ok := pkt.Data().PullUp(header.ARPSize); ok {
			return h.arp(pkt, header.ARP(b))
		}
	case ipv6.ProtocolNumber:
		const least = header.IPv6MinimumSize + header.ICMPv6NeighborSolicitMinimumSize
		b, ok := pkt.Data().PullUp(least)
		if ok && header.IPv6(b).NextHeader() == uint8(header.ICMPv6ProtocolNumber) &&
			header.ICMPv6(b[header.IPv6MinimumSize:]).Type() == header.ICMPv6NeighborSolicit {
			return h.solicitation(pkt, b)
		}
	}
	return nil, true
}

// arp looks at an ARP packet. Announcements become requests for the gateway: only
// from a request does the stack learn that an address has moved.
func (h *hub) arp(pkt *stack.PacketBuffer, b header.ARP) (*stack.PacketBuffer, bool) {
	if !b.IsValid() {
		return nil, true
	}
	sender := netip.AddrFrom4([4]byte(b.ProtocolAddressSender()))
	target := netip.AddrFrom4([4]byte(b.ProtocolAddressTarget()))
	switch {
	case sender.IsUnspecified():
		// A probe (RFC 5227, section 2.1.1): nobody else has it, but the gateway.
		return nil, target == h.gateway
	case sender == target:
		h.owners.see(sender)
		instead, data := copyOf(pkt)
		request := header.ARP(data)
		request.SetOp(header.ARPRequest)
		gateway := h.gateway.As4()
		copy(request.ProtocolAddressTarget(), gateway[:])
		return instead, true
	}
	h.owners.see(sender)
	return nil, b.Op() != header.ARPRequest || !h.owners.has(target)
}

// solicitation looks at a neighbour solicitation, whose first bytes are b. It is
// sent to the target itself in place of the group of its solicitations.
func (h *hub) solicitation(pkt *stack.PacketBuffer, b []byte) (*stack.PacketBuffer, bool) {
	ip := header.IPv6(b)
	source := netip.AddrFrom16(ip.SourceAddress().As16())
	icmp := header.ICMPv6(b[header.IPv6MinimumSize:]) // whatever length the packet claims
	address := header.NDPNeighborSolicit(icmp.MessageBody()).TargetAddress()
	target := netip.AddrFrom16(address.As16())
	if source.IsUnspecified() {
		// Duplicate address detection (RFC 4862, section 5.4.2).
		return nil, target == h.gateway6 || target == linkLocalGateway
	}
	h.owners.see(source)
	if h.owners.has(target) {
		return nil, false
	}
	if group := ip.DestinationAddress(); header.IsV6MulticastAddress(group) && !target.IsMulticast() {
		instead, data := copyOf(pkt)
		ip := header.IPv6(data)
		ip.SetDestinationAddress(address)
		header.ICMPv6(data[header.IPv6MinimumSize:]).UpdateChecksumPseudoHeaderAddress(group, address)
		return instead, true
	}
	return nil, true
}

// copyOf returns a copy of a received frame, and its bytes behind the Ethernet
// header, to change them: those of the frame itself may be others' too.
func copyOf(pkt *stack.PacketBuffer) (*stack.PacketBuffer, []byte) {
	frame := append(append([]byte(nil), pkt.LinkHeader().Slice()...), pkt.Data().AsRange().ToSlice()...)
	c := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	c.LinkHeader().Consume(header.EthernetMinimumSize)
	c.PktType = pkt.PktType
	c.RXChecksumValidated = pkt.RXChecksumValidated
	c.NetworkProtocolNumber = pkt.NetworkProtocolNumber
	data, _ := c.Data().PullUp(len(frame) - header.EthernetMinimumSize)
	return c, data
}
