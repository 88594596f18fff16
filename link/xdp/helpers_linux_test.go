package xdp

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"bondstack/link/linktest"
	"bondstack/link/netnstest"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
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

func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		beVictim()
	}
	linktest.Main(m)
}

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
	queues     int
}

// newPair makes a pair of interfaces with a number of queues; the peer has
// addresses.
func newPair(t testing.TB, queues int) *pair {
	t.Helper()
	p := &pair{t: t, near: netnstest.New(t), peer: netnstest.New(t), queues: queues}
	p.near.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	p.link()
	return p
}

// link makes the interfaces.
func (p *pair) link() {
	netnstest.VethQueues(p.t, p.near, "veth0", p.peer, "veth1", p.queues)
	p.peer.AddAddress("veth1", peerV4+"/24")
	p.peer.AddAddress("veth1", peerV6+"/64")
}

// open makes an endpoint on veth0 and closes it when the test ends.
func (p *pair) open(o Options) *Endpoint {
	p.t.Helper()
	e, err := p.tryOpen(o)
	if errors.Is(err, ErrNotSupported) || errors.Is(err, unix.EPERM) {
		p.t.Skipf("needs AF_XDP: %v", err)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(e.Close)
	return e
}

// tryOpen makes an endpoint on veth0.
func (p *pair) tryOpen(o Options) (e *Endpoint, err error) {
	p.near.Do(func() { e, err = New("veth0", o) })
	return e, err
}

// newHost makes a netstack with the stack's addresses on an endpoint, closed
// when the test ends.
func newHost(t testing.TB, ep stack.LinkEndpoint) *stack.Stack {
	t.Helper()
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{arp.NewProtocol, ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6},
	})
	if err := s.CreateNIC(1, ep); err != nil {
		t.Fatalf("CreateNIC: %s", err)
	}
	t.Cleanup(func() {
		s.Close()
		ep.Close()
		s.Wait()
	})
	for ip, prefix := range map[string]int{stackV4: 24, stackV6: 64} {
		err := s.AddProtocolAddress(1, tcpip.ProtocolAddress{
			Protocol:          protocolOf(ip),
			AddressWithPrefix: tcpip.AddressWithPrefix{Address: address(ip), PrefixLen: prefix},
		}, stack.AddressProperties{})
		if err != nil {
			t.Fatalf("add address %s: %s", ip, err)
		}
	}
	s.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: 1}, {Destination: header.IPv6EmptySubnet, NIC: 1},
	})
	return s
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
func dial(t testing.TB, s *stack.Stack, ip string, port int) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := gonet.DialContextTCP(ctx, s, tcpip.FullAddress{NIC: 1, Addr: address(ip), Port: uint16(port)}, protocolOf(ip))
	if err != nil {
		t.Fatalf("dial %s port %d: %v", ip, port, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// recorder is a dispatcher that keeps the frames it gets.
type recorder struct {
	frames chan []byte
}

func newRecorder() *recorder { return &recorder{frames: make(chan []byte, 1024)} }

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (r *recorder) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	v := pkt.ToView()
	defer v.Release()
	select {
	case r.frames <- append([]byte{}, v.AsSlice()...):
	default:
	}
}

// DeliverLinkPacket implements stack.NetworkDispatcher.
func (*recorder) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// await waits for a frame that f accepts.
func (r *recorder) await(t testing.TB, what string, f func(frame []byte) bool) []byte {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case b := <-r.frames:
			if f(b) {
				return b
			}
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// etherFrame is a frame of an experimental type.
func etherFrame(dst, src net.HardwareAddr, payload string) []byte {
	b := append(append([]byte{}, dst...), src...)
	return append(append(b, 0x88, 0xb5), payload...)
}

// packetOf is a packet whose link header and payload are those of a frame.
func packetOf(frame []byte) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: header.EthernetMinimumSize,
		Payload:            buffer.MakeWithData(frame[header.EthernetMinimumSize:]),
	})
	copy(pkt.LinkHeader().Push(header.EthernetMinimumSize), frame)
	return pkt
}

// write writes frames by an endpoint.
func write(ep stack.LinkEndpoint, frames ...[]byte) (int, tcpip.Error) {
	var list stack.PacketBufferList
	defer list.Reset()
	for _, b := range frames {
		list.PushBack(packetOf(b))
	}
	return ep.WritePackets(list)
}

// rawSocket is a packet socket on an interface of a namespace, closed when the
// test ends.
func rawSocket(t testing.TB, ns *netnstest.Namespace, name string) int {
	t.Helper()
	fd := -1
	ns.Do(func() {
		i, err := net.InterfaceByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index}); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { unix.Close(fd) })
	limit := unix.NsecToTimeval(patience.Nanoseconds())
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	return fd
}

// flood sends UDP datagrams from the peer's kernel to the stack's address until
// the function that it returns is called.
func (p *pair) flood(size int) (stop func()) {
	p.peer.Run("ip", "neigh", "replace", stackV4, "lladdr", p.near.HardwareAddress("veth0").String(), "dev", "veth1")
	var c net.Conn
	p.peer.Do(func() {
		var err error
		if c, err = net.Dial("udp", stackV4+":9"); err != nil {
			p.t.Fatal(err)
		}
	})
	var wg sync.WaitGroup
	end := make(chan struct{})
	wg.Go(func() {
		b := make([]byte, size)
		for {
			select {
			case <-end:
				return
			default:
				c.Write(b) // refused where nobody listens
			}
		}
	})
	stop = sync.OnceFunc(func() { close(end); wg.Wait(); c.Close() })
	p.t.Cleanup(stop) // of a test that fails
	return stop
}

// acquaint has a stack know the peer's hardware address: packets that wait for it
// when their NIC is removed can stay in gVisor for ever.
func (p *pair) acquaint(s *stack.Stack) {
	p.t.Helper()
	peer := tcpip.LinkAddress(p.peer.HardwareAddress("veth1"))
	if err := s.AddStaticNeighbor(1, ipv4.ProtocolNumber, address(peerV4), peer); err != nil {
		p.t.Fatal(err)
	}
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
