package user

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/net/icmp"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// pingKey is one who pings one.
type pingKey struct {
	id    stack.TransportEndpointID // without ports
	ident uint16
}

// handleEcho passes on an echo request from the bond's side. It returns false for
// what the stack answers itself.
func (n *Network) handleEcho(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
	message := append(append([]byte(nil), pkt.TransportHeader().Slice()...), pkt.Data().AsRange().ToSlice()...)
	to := toAddr(id.LocalAddress)
	if len(message) < header.ICMPv4MinimumSize || !isEcho(to, message[0]) || n.opts.isGateway(to) {
		return false
	}
	if !reachable(to) {
		n.deny("icmp", id, errDenied)
		return true
	}
	id.LocalPort, id.RemotePort = 0, 0
	_ = n.pings.Send(pingKey{id, binary.BigEndian.Uint16(message[4:])}, message) // counted
	return true
}

func isEcho(to netip.Addr, kind byte) bool {
	if to.Is4() {
		return kind == byte(header.ICMPv4Echo)
	}
	return kind == byte(header.ICMPv6EchoRequest)
}

// pingConn is a ping socket for one destination. The kernel puts a number of its
// own in place of the identifier.
type pingConn struct {
	*icmp.PacketConn
	to netip.Addr
}

// openPing makes a ping socket, where the host allows it.
func (n *Network) openPing(_ context.Context, k pingKey) (net.Conn, error) {
	to := toAddr(k.id.LocalAddress)
	network, any := "udp4", "0.0.0.0"
	if to.Is6() {
		network, any = "udp6", "::"
	}
	c, err := icmp.ListenPacket(network, any)
	if err != nil {
		if n.unanswered.Add(1) == 1 && n.opts.Logger != nil {
			n.opts.Logger.Warn("the host gives no ping sockets: echoes beyond the gateway stay unanswered (on Linux net.ipv4.ping_group_range allows them)", "error", err)
		}
		return nil, err
	}
	return &pingConn{c, to}, nil
}

func (c *pingConn) RemoteAddr() net.Addr { return &net.UDPAddr{IP: c.to.AsSlice()} }

// Write sends an echo request.
func (c *pingConn) Write(b []byte) (int, error) { return c.WriteTo(b, c.RemoteAddr()) }

// Read receives an echo reply of the destination.
func (c *pingConn) Read(b []byte) (int, error) {
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return n, err
		}
		if udp, ok := from.(*net.UDPAddr); ok && udp.AddrPort().Addr().Unmap().WithZone("") == c.to && n >= header.ICMPv4MinimumSize {
			return n, nil
		}
	}
}

// replyPing sends an echo reply to who pings.
func (n *Network) replyPing(k pingKey, message []byte) error {
	proto := header.ICMPv4ProtocolNumber
	if k.id.RemoteAddress.Len() == header.IPv6AddressSize {
		proto = header.ICMPv6ProtocolNumber
	}
	return n.send(proto, k.id, func(route *stack.Route) *stack.PacketBuffer {
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
			ReserveHeaderBytes: int(route.MaxHeaderLength()) + header.ICMPv4MinimumSize,
			Payload:            buffer.MakeWithData(append([]byte(nil), message[header.ICMPv4MinimumSize:]...)),
		})
		pkt.TransportProtocolNumber = proto
		b := pkt.TransportHeader().Push(header.ICMPv4MinimumSize)
		copy(b, message)
		b[2], b[3] = 0, 0
		binary.BigEndian.PutUint16(b[4:], k.ident)
		var sum uint16
		if proto == header.ICMPv6ProtocolNumber {
			sum = route.PseudoHeaderChecksum(proto, uint16(len(message)))
		}
		sum = checksum.Combine(checksum.Checksum(b, sum), pkt.Data().Checksum())
		binary.BigEndian.PutUint16(b[2:], ^sum)
		return pkt
	})
}
