package wire_test

import (
	"io"
	"net"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

const nic = 1

// newStack returns a plain netstack on a link, with the address 10.0.0.last/24,
// with fast settings, which ends with the test.
func newStack(tb testing.TB, ep stack.LinkEndpoint, last byte) *stack.Stack {
	tb.Helper()
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
	})
	sack := tcpip.TCPSACKEnabled(true)
	s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack)
	moderate := tcpip.TCPModerateReceiveBufferOption(true)
	s.SetTransportProtocolOption(tcp.ProtocolNumber, &moderate)
	rcv := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: 4 << 20, Max: 16 << 20}
	s.SetTransportProtocolOption(tcp.ProtocolNumber, &rcv)
	snd := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: 4 << 20, Max: 16 << 20}
	s.SetTransportProtocolOption(tcp.ProtocolNumber, &snd)
	if err := s.CreateNIC(nic, ep); err != nil {
		tb.Fatalf("CreateNIC() = %s", err)
	}
	if err := s.AddProtocolAddress(nic, tcpip.ProtocolAddress{
		Protocol:          header.IPv4ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: address(last), PrefixLen: 24},
	}, stack.AddressProperties{}); err != nil {
		tb.Fatalf("AddProtocolAddress() = %s", err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	tb.Cleanup(s.Destroy)
	return s
}

func address(last byte) tcpip.Address { return tcpip.AddrFrom4([4]byte{10, 0, 0, last}) }

// connect returns both ends of a TCP connection from s to t's port at .last.
func connect(tb testing.TB, s, t *stack.Stack, last byte, port uint16) (client, server net.Conn) {
	tb.Helper()
	at := tcpip.FullAddress{NIC: nic, Addr: address(last), Port: port}
	l, err := gonet.ListenTCP(t, at, header.IPv4ProtocolNumber)
	if err != nil {
		tb.Fatalf("ListenTCP() = %v", err)
	}
	defer l.Close()
	client, err = gonet.DialTCP(s, at, header.IPv4ProtocolNumber)
	if err != nil {
		tb.Fatalf("DialTCP() = %v", err)
	}
	server, err = l.Accept()
	if err != nil {
		tb.Fatalf("Accept() = %v", err)
	}
	return client, server
}

// pump sends size bytes in writes of 256 KiB, then closes.
func pump(c net.Conn, size int64) error {
	defer c.Close()
	buf := make([]byte, 256<<10)
	for size > 0 {
		n, err := c.Write(buf[:min(int64(len(buf)), size)])
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}

// discard reads until the end and returns how many bytes came.
func discard(c net.Conn) (int64, error) {
	defer c.Close()
	return io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 256<<10))
}
