package linktest

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// layout is how many bytes each header of a frame has, as far as it can be parsed.
type layout struct {
	link, network, transport int
	networkProtocol          tcpip.NetworkProtocolNumber
	transportProtocol        tcpip.TransportProtocolNumber
}

// Packet returns a packet as a netstack gives it to a link's WritePackets: link,
// network and transport header pushed, as far as the frame has them, and the rest
// as payload. The frame's bytes are copied. It takes any bytes: what does not parse
// is payload, and with fewer than 14 bytes there is no link header. The caller owns
// the one reference.
func Packet(frame []byte) *stack.PacketBuffer {
	l := parse(frame)
	headers := l.link + l.network + l.transport
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: headers,
		Payload:            buffer.MakeWithData(frame[headers:]),
	})
	if l.transport > 0 {
		copy(pkt.TransportHeader().Push(l.transport), frame[l.link+l.network:])
		pkt.TransportProtocolNumber = l.transportProtocol
	}
	if l.network > 0 {
		copy(pkt.NetworkHeader().Push(l.network), frame[l.link:])
	}
	if l.link > 0 {
		copy(pkt.LinkHeader().Push(l.link), frame)
		eth := header.Ethernet(frame)
		pkt.NetworkProtocolNumber = l.networkProtocol
		pkt.EgressRoute.NetProto = l.networkProtocol
		pkt.EgressRoute.LocalLinkAddress = eth.SourceAddress()
		pkt.EgressRoute.RemoteLinkAddress = eth.DestinationAddress()
	}
	return pkt
}

// GSOPacket is Packet for a TCP frame that the link is to cut into segments of at
// most mss bytes of payload: GSO is set, and the checksum is left to the link, so
// that its field holds the sum of the pseudo header. It panics when the frame is
// not TCP over IPv4 or IPv6 without a VLAN tag.
func GSOPacket(frame []byte, mss uint16) *stack.PacketBuffer {
	l := parse(frame)
	if l.transportProtocol != header.TCPProtocolNumber {
		panic("linktest: GSOPacket needs a TCP frame")
	}
	pkt := Packet(frame)
	gso := stack.GSO{
		Type:       stack.GSOTCPv4,
		NeedsCsum:  true,
		CsumOffset: header.TCPChecksumOffset,
		MSS:        mss,
		L3HdrLen:   uint16(l.network),
		MaxSize:    65536,
	}
	if l.networkProtocol == header.IPv6ProtocolNumber {
		gso.Type = stack.GSOTCPv6
	}
	pkt.GSOOptions = gso
	net := pkt.Network()
	size := uint16(len(frame) - l.link - l.network)
	header.TCP(pkt.TransportHeader().Slice()).SetChecksum(
		header.PseudoHeaderChecksum(header.TCPProtocolNumber, net.SourceAddress(), net.DestinationAddress(), size))
	return pkt
}

// Packets returns a list of a Packet for each frame. Call Reset or DecRef of the
// list after it was written.
func Packets(frames ...[]byte) stack.PacketBufferList {
	var list stack.PacketBufferList
	for _, f := range frames {
		list.PushBack(Packet(f))
	}
	return list
}

// Write writes frames to a link in one WritePackets call, and releases them.
func Write(ep stack.LinkWriter, frames ...[]byte) (int, tcpip.Error) {
	list := Packets(frames...)
	defer list.DecRef()
	// The link owns the list, not the references: give it one of its own.
	var given stack.PacketBufferList
	for _, pkt := range list.AsSlice() {
		given.PushBack(pkt)
	}
	return ep.WritePackets(given)
}

func parse(frame []byte) layout {
	var l layout
	if len(frame) < header.EthernetMinimumSize {
		return l
	}
	l.link = header.EthernetMinimumSize
	l.networkProtocol = tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(frame[12:]))
	rest := frame[l.link:]
	size, proto := networkSize(l.networkProtocol, rest)
	l.network = size
	if l.transport = transportSize(proto, rest[size:]); l.transport > 0 {
		l.transportProtocol = proto
	}
	return l
}

// networkSize returns the size of a network header, 0 when it does not parse, and
// which protocol follows.
func networkSize(proto tcpip.NetworkProtocolNumber, b []byte) (int, tcpip.TransportProtocolNumber) {
	switch proto {
	case header.IPv4ProtocolNumber:
		if len(b) < header.IPv4MinimumSize {
			return 0, 0
		}
		ip := header.IPv4(b)
		n := int(ip.HeaderLength())
		if n < header.IPv4MinimumSize || n > len(b) {
			return 0, 0
		}
		return n, ip.TransportProtocol()
	case header.IPv6ProtocolNumber:
		if len(b) >= header.IPv6MinimumSize {
			return header.IPv6MinimumSize, tcpip.TransportProtocolNumber(header.IPv6(b).NextHeader())
		}
	case header.ARPProtocolNumber:
		if len(b) >= header.ARPSize {
			return header.ARPSize, 0
		}
	}
	return 0, 0
}

// transportSize returns the size of a transport header, 0 when it does not parse.
func transportSize(proto tcpip.TransportProtocolNumber, b []byte) int {
	switch proto {
	case header.UDPProtocolNumber:
		if len(b) >= header.UDPMinimumSize {
			return header.UDPMinimumSize
		}
	case header.TCPProtocolNumber:
		if len(b) < header.TCPMinimumSize {
			return 0
		}
		n := int(header.TCP(b).DataOffset())
		if n >= header.TCPMinimumSize && n <= len(b) {
			return n
		}
	}
	return 0
}
