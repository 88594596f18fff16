package packet

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"bondstack/link/linktest"
	"bondstack/link/netnstest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// patience is how long tests wait for what must happen: never reached where
// all is well.
const patience = 20 * time.Second

// addresses of the tests: the stack's and the kernel peer's.
const (
	stackV4, peerV4 = "10.9.0.1", "10.9.0.2"
	stackV6, peerV6 = "fd00:9::1", "fd00:9::2"
)

// pair is a namespace with veth0, for the endpoint, and one with veth1, for the
// kernel's peer.
type pair struct {
	t          testing.TB
	near, peer *netnstest.Namespace
	shelved    int
}

// newPair makes a pair; the peer has addresses.
func newPair(t testing.TB) *pair {
	t.Helper()
	p := &pair{t: t, near: netnstest.New(t), peer: netnstest.New(t)}
	// The near host is to answer nothing unless a test wants it to.
	p.near.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	netnstest.Veth(t, p.near, "veth0", p.peer, "veth1")
	p.peer.AddAddress("veth1", peerV4+"/24")
	p.peer.AddAddress("veth1", peerV6+"/64")
	return p
}

// open makes an endpoint on veth0 and closes it when the test ends.
func (p *pair) open(o Options) *Endpoint {
	p.t.Helper()
	var e *Endpoint
	p.near.Do(func() {
		var err error
		if e, err = New("veth0", o); err != nil {
			p.t.Fatal(err)
		}
	})
	p.t.Cleanup(e.Close)
	return e
}

// openFdbased makes a Fdbased on veth0 and closes it when the test ends.
func (p *pair) openFdbased(o Options) *Fdbased {
	p.t.Helper()
	var f *Fdbased
	p.near.Do(func() {
		var err error
		if f, err = OpenFdbased("veth0", o); err != nil {
			p.t.Fatal(err)
		}
	})
	p.t.Cleanup(f.Close)
	return f
}

// host is a netstack on an endpoint, with the stack's addresses.
type host struct {
	t  testing.TB
	s  *stack.Stack
	ep stack.LinkEndpoint
}

// newHost makes a netstack on an endpoint, closed when the test ends.
func newHost(t testing.TB, ep stack.LinkEndpoint) *host {
	t.Helper()
	return newHostWith(t, ep, stack.NICOptions{})
}

// newHostWith is newHost with options of the NIC.
func newHostWith(t testing.TB, ep stack.LinkEndpoint, o stack.NICOptions) *host {
	t.Helper()
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{arp.NewProtocol, ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6},
	})
	sack := tcpip.TCPSACKEnabled(true)
	s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack)
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: 4 << 20, Max: 8 << 20}
	s.SetTransportProtocolOption(tcp.ProtocolNumber, &send)
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: 4 << 20, Max: 8 << 20}
	s.SetTransportProtocolOption(tcp.ProtocolNumber, &receive)
	if err := s.CreateNICWithOptions(1, ep, o); err != nil {
		t.Fatalf("CreateNIC: %s", err)
	}
	t.Cleanup(func() {
		s.Close()
		ep.Close()
		s.Wait()
	})
	h := &host{t: t, s: s, ep: ep}
	h.address(ipv4.ProtocolNumber, stackV4, 24)
	h.address(ipv6.ProtocolNumber, stackV6, 64)
	s.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: 1}, {Destination: header.IPv6EmptySubnet, NIC: 1},
	})
	return h
}

// address gives the stack an address.
func (h *host) address(proto tcpip.NetworkProtocolNumber, ip string, prefix int) {
	h.t.Helper()
	err := h.s.AddProtocolAddress(1, tcpip.ProtocolAddress{
		Protocol:          proto,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: address(ip), PrefixLen: prefix},
	}, stack.AddressProperties{})
	if err != nil {
		h.t.Fatalf("add address %s: %s", ip, err)
	}
}

// address is an address as gVisor has it.
func address(ip string) tcpip.Address {
	if v4 := net.ParseIP(ip).To4(); v4 != nil {
		return tcpip.AddrFromSlice(v4)
	}
	return tcpip.AddrFromSlice(net.ParseIP(ip))
}

// protocolOf is the network protocol of an address.
func protocolOf(ip string) tcpip.NetworkProtocolNumber {
	if net.ParseIP(ip).To4() != nil {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

// dial connects the stack to a port of the peer.
func (h *host) dial(ip string, port int) net.Conn {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	to := tcpip.FullAddress{NIC: 1, Addr: address(ip), Port: uint16(port)}
	c, err := gonet.DialContextTCP(ctx, h.s, to, protocolOf(ip))
	if err != nil {
		h.t.Fatalf("dial %s port %d: %v", ip, port, err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

// listenPeer listens at the peer's kernel.
func (p *pair) listenPeer(ip string) *net.TCPListener {
	p.t.Helper()
	var l net.Listener
	p.peer.Do(func() {
		var err error
		if l, err = net.Listen("tcp", net.JoinHostPort(ip, "0")); err != nil {
			p.t.Fatal(err)
		}
	})
	p.t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// block is a stream of n bytes that is the same each time.
func block(n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{1}), n)
}

// sum is the hash of a stream, and its length.
func sum(r io.Reader) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return fmt.Sprintf("%d bytes, %x", n, h.Sum(nil)), err
}

// eventually waits until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}
