package user

import (
	"context"
	"net"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

// handleUDP passes on a datagram from the bond's side. It returns false where the
// sender shall be told that there is nobody.
func (n *Network) handleUDP(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
	if err := n.opts.permitted(localOf(id)); err != nil {
		n.deny("udp", id, err)
		return false
	}
	payload, ok := datagram(pkt)
	if !ok {
		n.malformed.Add(1)
		return true
	}
	_ = n.udp.Send(id, payload) // counted
	return true
}

// datagram returns the payload of a valid UDP packet, which is the packet's.
func datagram(pkt *stack.PacketBuffer) ([]byte, bool) {
	h, network := header.UDP(pkt.TransportHeader().Slice()), pkt.Network()
	size := pkt.Data().Size()
	length, sum := header.UDPValid(h, func() uint16 { return pkt.Data().Checksum() }, uint16(size),
		pkt.NetworkProtocolNumber, network.SourceAddress(), network.DestinationAddress(), pkt.RXChecksumValidated)
	if !length || !sum {
		return nil, false
	}
	size = min(size, int(h.Length())-header.UDPMinimumSize)
	if size <= 0 {
		return nil, size == 0
	}
	return pkt.Data().PullUp(size)
}

func (n *Network) dialUDP(ctx context.Context, id stack.TransportEndpointID) (net.Conn, error) {
	return n.dial(ctx, "udp", localOf(id))
}

// replyUDP sends the answer to a flow.
func (n *Network) replyUDP(id stack.TransportEndpointID, payload []byte) error {
	return n.send(udp.ProtocolNumber, id, func(route *stack.Route) *stack.PacketBuffer {
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
			ReserveHeaderBytes: int(route.MaxHeaderLength()) + header.UDPMinimumSize,
			Payload:            buffer.MakeWithData(append([]byte(nil), payload...)),
		})
		pkt.TransportProtocolNumber = udp.ProtocolNumber
		h := header.UDP(pkt.TransportHeader().Push(header.UDPMinimumSize))
		length := uint16(pkt.Size())
		h.Encode(&header.UDPFields{SrcPort: id.LocalPort, DstPort: id.RemotePort, Length: length})
		sum := checksum.Combine(route.PseudoHeaderChecksum(udp.ProtocolNumber, length), pkt.Data().Checksum())
		// Zero says that there is none (RFC 768); the other zero says zero.
		if sum = ^h.CalculateChecksum(sum); sum == 0 {
			sum = 0xffff
		}
		h.SetChecksum(sum)
		return pkt
	})
}
