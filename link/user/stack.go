package user

import (
	"fmt"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

// nic is the number of the stack's one interface.
const nic tcpip.NICID = 1

// bufferBytes are TCP's buffers towards the bond, in memory: the far side is near,
// and a connection that the host takes slowly shall not fill more.
var bufferBytes = struct{ least, usual, most int }{4 << 10, 256 << 10, 2 << 20}

// startStack makes the stack that stands for the world.
func (n *Network) startStack() error {
	n.stack = stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{
			arp.NewProtocol, ipv4.NewProtocol,
			ipv6.NewProtocolWithOptions(ipv6.Options{NDPConfigs: ipv6.NDPConfigurations{HandleRAs: ipv6.HandlingRAsDisabled}}),
		},
		TransportProtocols: []stack.TransportProtocolFactory{
			tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6,
		},
	})
	sack := tcpip.TCPSACKEnabled(true)
	recovery := tcpip.TCPRecovery(0) // RACK recovers from a failover too slowly: see stack.DefaultRecovery
	send := tcpip.TCPSendBufferSizeRangeOption{Min: bufferBytes.least, Default: bufferBytes.usual, Max: bufferBytes.most}
	receive := tcpip.TCPReceiveBufferSizeRangeOption(send)
	moderate := tcpip.TCPModerateReceiveBufferOption(true)
	for _, opt := range []tcpip.SettableTransportProtocolOption{&sack, &recovery, &send, &receive, &moderate} {
		if err := n.stack.SetTransportProtocolOption(tcp.ProtocolNumber, opt); err != nil {
			return fmt.Errorf("user: setting TCP's %T: %s", opt, err)
		}
	}
	if err := n.stack.CreateNICWithOptions(nic, n.hub, stack.NICOptions{Name: "user"}); err != nil {
		return fmt.Errorf("user: making the interface: %s", err)
	}
	// These two make every address the stack's own. They fail only without the NIC.
	n.stack.SetPromiscuousMode(nic, true)
	n.stack.SetSpoofing(nic, true)
	for _, a := range []netip.Addr{n.opts.Gateway, n.opts.Gateway6, linkLocalGateway} {
		if err := n.addAddress(a); err != nil {
			return err
		}
	}
	n.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic}})
	n.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(n.stack, 0, maxHandshakes, n.handleTCP).HandlePacket)
	n.stack.SetTransportProtocolHandler(udp.ProtocolNumber, n.handleUDP)
	n.stack.SetTransportProtocolHandler(icmp.ProtocolNumber4, n.handleEcho)
	n.stack.SetTransportProtocolHandler(icmp.ProtocolNumber6, n.handleEcho)
	return nil
}

// maxHandshakes is how many connections may be on their way to the host. Further
// ones are ignored, and tried again by those who want them.
const maxHandshakes = 512

func (n *Network) addAddress(a netip.Addr) error {
	proto := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddrFromSlice(a.AsSlice()).WithPrefix()}
	if a.Is6() {
		proto.Protocol = ipv6.ProtocolNumber
	}
	if err := n.stack.AddProtocolAddress(nic, proto, stack.AddressProperties{}); err != nil {
		return fmt.Errorf("user: adding the gateway %s: %s", a, err)
	}
	return nil
}

// send sends a transport packet to the bond's side, from any address.
func (n *Network) send(proto tcpip.TransportProtocolNumber, id stack.TransportEndpointID, build func(*stack.Route) *stack.PacketBuffer) error {
	netProto := ipv4.ProtocolNumber
	if id.RemoteAddress.Len() == header.IPv6AddressSize {
		netProto = ipv6.ProtocolNumber
	}
	route, err := n.stack.FindRoute(nic, id.LocalAddress, id.RemoteAddress, netProto, false)
	if err != nil {
		return fmt.Errorf("no route to %s: %s", remoteOf(id), err)
	}
	defer route.Release()
	pkt := build(route)
	defer pkt.DecRef()
	if err := route.WritePacket(stack.NetworkHeaderParams{Protocol: proto, TTL: route.DefaultTTL()}, pkt); err != nil {
		return fmt.Errorf("sending to %s: %s", remoteOf(id), err)
	}
	return nil
}
