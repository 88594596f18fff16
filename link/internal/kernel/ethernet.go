package kernel

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// typeOffset is where the type of an Ethernet frame is: after both addresses.
const typeOffset = 12

// MinMTU is the least MTU of IPv4 (RFC 791).
const MinMTU = 68

// AddEthernet pushes the Ethernet header of a packet.
func AddEthernet(pkt *stack.PacketBuffer) {
	header.Ethernet(pkt.LinkHeader().Push(header.EthernetMinimumSize)).Encode(&header.EthernetFields{
		SrcAddr: pkt.EgressRoute.LocalLinkAddress,
		DstAddr: pkt.EgressRoute.RemoteLinkAddress,
		Type:    pkt.NetworkProtocolNumber,
	})
}

// ParseEthernet consumes the Ethernet header of a packet. It is false where the
// packet is shorter.
func ParseEthernet(pkt *stack.PacketBuffer) bool {
	b, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	if ok {
		pkt.NetworkProtocolNumber = tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(b[typeOffset:]))
	}
	return ok
}

// FirstPiece returns what of a packet is in one piece, from its first byte on. It
// is nil for an empty packet.
func FirstPiece(pkt *stack.PacketBuffer) []byte {
	views, skip := pkt.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		if skip < v.Size() {
			return v.AsSlice()[skip:]
		}
		skip -= v.Size()
	}
	return nil
}

// PacketType says for whom a frame to an address is, for an endpoint that has own.
func PacketType(own, to tcpip.LinkAddress) tcpip.PacketType {
	switch {
	case to == header.EthernetBroadcastAddress:
		return tcpip.PacketBroadcast
	case to[0]&1 != 0:
		return tcpip.PacketMulticast
	case to == own:
		return tcpip.PacketHost
	}
	return tcpip.PacketOtherHost
}
