package stack

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"bondstack/stack/dhcp"
)

// leaser runs the DHCP client of an interface: it is the machine's user, and one
// goroutine drives it.
type leaser struct {
	iface   *Interface
	machine *dhcp.Machine
	socket  *socket
	began   tcpip.MonotonicTime

	// What happens comes to the goroutine by these.
	datagrams chan []byte
	checks    chan checkResult
	path      chan struct{} // of one: a change that waits stands for all
	due       chan struct{} // of one

	// routes are those of the lease that the interface has by it, and added whether
	// it has the address by it: the program may have given it the same.
	routes []Route
	added  bool

	ignored lineLimit

	mu sync.Mutex
	// The following are guarded by mu.
	lease dhcp.Lease
	bound bool
}

// checkResult is what became of a search for another holder of an address.
type checkResult struct {
	addr  netip.Addr
	taken bool
}

var _ dhcp.User = (*leaser)(nil)

// startDHCP begins to look for a server.
func (i *Interface) startDHCP() error {
	l := &leaser{
		iface:     i,
		began:     i.host.opts.Clock.NowMonotonic(),
		datagrams: make(chan []byte),
		checks:    make(chan checkResult, 1),
		path:      make(chan struct{}, 1),
		due:       make(chan struct{}, 1),
	}
	machine, err := dhcp.New(dhcp.Options{
		MAC:      []byte(i.link.LinkAddress()),
		HostName: i.host.opts.HostName,
		Rand:     rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}, l)
	if err != nil {
		return err
	}
	l.machine = machine
	if err := l.open(); err != nil {
		return err
	}
	leave, ok := i.host.enter()
	if !ok {
		l.socket.close()
		return i.host.ended()
	}
	i.leaser = l
	// Two goroutines: netstack's sockets wake one, and it has more to await.
	gone := make(chan struct{})
	go l.read(gone)
	go func() {
		defer leave()
		l.run(gone)
	}()
	return nil
}

// open makes the socket that hears the servers, on this interface alone.
func (l *leaser) open() error {
	h := l.iface.host
	s, err := h.bind(endpointAddress{transport: "udp", version: 4, at: netip.AddrPortFrom(netip.Addr{}, dhcp.ClientPort)})
	if err != nil {
		return err
	}
	if err := s.ep.SocketOptions().SetBindToDevice(int32(l.iface.id)); err != nil {
		s.close()
		return errorOf(err)
	}
	l.socket = s
	return nil
}

// read hands datagrams on until the socket ends.
func (l *leaser) read(gone chan<- struct{}) {
	defer close(gone)
	conn := newUDPConn(l.socket, nil)
	buf := make([]byte, 1<<16)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if from.Port() == dhcp.ServerPort {
			l.datagrams <- bytes.Clone(buf[:n])
		}
	}
}

// run drives the machine until the socket ends.
func (l *leaser) run(gone <-chan struct{}) {
	l.machine.Start(0)
	for {
		stop := l.arm()
		select {
		case <-gone:
			stop()
			return
		case d := <-l.datagrams:
			l.machine.Receive(l.now(), d)
		case c := <-l.checks:
			l.machine.Checked(l.now(), c.addr, c.taken)
		case <-l.path:
			l.machine.PathChanged(l.now())
		case <-l.due:
			l.machine.Tick(l.now())
		}
		stop()
	}
}

// arm has due be told at the machine's deadline.
func (l *leaser) arm() (stop func()) {
	at, ok := l.machine.Deadline()
	if !ok {
		return func() {}
	}
	timer := l.iface.host.opts.Clock.AfterFunc(max(at-l.now(), 0), func() { signal(l.due) })
	return func() { timer.Stop() }
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *leaser) now() time.Duration { return l.iface.host.opts.Clock.NowMonotonic().Sub(l.began) }

// Send implements dhcp.User. Without an address of its own, and to all, the packet
// is made here, since netstack sends none of these.
func (l *leaser) Send(payload []byte, from, to netip.Addr) {
	if to != limitedBroadcast {
		// What is lost is asked for again.
		_, _ = newUDPConn(l.socket, nil).WriteToUDPAddrPort(payload, netip.AddrPortFrom(to, dhcp.ServerPort))
		return
	}
	if !from.IsValid() {
		from = netip.IPv4Unspecified()
	}
	l.iface.transmit(header.EthernetBroadcastAddress, ipv4.ProtocolNumber, dhcpPacket(payload, toAddress(from)))
}

// dhcpPacket returns the IPv4 packet of a client's message to all servers.
func dhcpPacket(payload []byte, from tcpip.Address) []byte {
	const headers = header.IPv4MinimumSize + header.UDPMinimumSize
	packet := make([]byte, headers+len(payload))
	ip := header.IPv4(packet)
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(packet)),
		TTL:         ipv4.DefaultTTL,
		Protocol:    uint8(udp.ProtocolNumber),
		SrcAddr:     from,
		DstAddr:     header.IPv4Broadcast,
	})
	ip.SetChecksum(^ip.CalculateChecksum())
	datagram := header.UDP(packet[header.IPv4MinimumSize:])
	datagram.Encode(&header.UDPFields{SrcPort: dhcp.ClientPort, DstPort: dhcp.ServerPort, Length: uint16(len(datagram))})
	copy(datagram.Payload(), payload)
	pseudo := header.PseudoHeaderChecksum(udp.ProtocolNumber, from, header.IPv4Broadcast, uint16(len(datagram)))
	datagram.SetChecksum(^checksum.Checksum(datagram, pseudo))
	return packet
}

// Check implements dhcp.User, by ARP probes (RFC 5227, section 2.1.1).
func (l *leaser) Check(addr netip.Addr) {
	tell := func(taken bool) {
		select {
		case l.checks <- checkResult{addr, taken}:
		default: // of an address that was given up meanwhile
		}
	}
	select {
	case <-l.checks: // an older one's
	default:
	}
	how, err := l.iface.host.stack.CheckDuplicateAddress(l.iface.id, ipv4.ProtocolNumber, toAddress(addr), func(r netstack.DADResult) {
		_, taken := r.(*netstack.DADDupAddrDetected)
		tell(taken)
	})
	if err != nil || how == netstack.DADDisabled {
		tell(false)
	}
}

// Bind implements dhcp.User.
func (l *leaser) Bind(lease dhcp.Lease) {
	i, log := l.iface, l.iface.host.log()
	old, had := l.current()
	if !had {
		log.Info("address", "interface", i.name, "address", lease.Prefix, "from", lease.Server, "for", lease.Expire, "by", "dhcp")
	}
	if !had || old.Prefix != lease.Prefix {
		err := i.AddAddress(lease.Prefix)
		if l.added = err == nil; !l.added {
			log.Warn("address of a lease", "error", err)
		}
	}
	l.changeRoutes(leaseRoutes(lease))
	l.set(lease, true)
	i.host.addresses.wake() // who waits for a lease
}

// Unbind implements dhcp.User.
func (l *leaser) Unbind(lease dhcp.Lease, why string) {
	l.iface.host.log().Warn("address lost", "interface", l.iface.name, "address", lease.Prefix, "reason", why, "by", "dhcp")
	l.set(dhcp.Lease{}, false)
	l.changeRoutes(nil)
	if l.added {
		_ = l.iface.RemoveAddress(lease.Prefix.Addr()) // it fails where the program has taken it away
	}
}

// Ignored implements dhcp.User.
func (l *leaser) Ignored(why string) {
	if unsaid, ok := l.ignored.allow(l.iface.host.opts.Clock.NowMonotonic()); ok {
		l.iface.host.log().Info("dhcp", "interface", l.iface.name, "ignored", why, "unsaid", unsaid)
	}
}

// changeRoutes puts the routes of a lease in the place of the last one's.
func (l *leaser) changeRoutes(want []Route) {
	i := l.iface
	for _, r := range l.routes {
		if !slices.Contains(want, r) {
			_ = i.RemoveRoute(r) // it fails where the program has taken it away
		}
	}
	var have []Route
	for _, r := range want {
		if slices.Contains(l.routes, r) {
			have = append(have, r)
		} else if err := i.AddRoute(r); err == nil {
			have = append(have, r)
		} else if !slices.Contains(i.Routes(), r) {
			i.host.log().Warn("route of a lease", "error", err)
		}
	}
	l.routes = have
}

// leaseRoutes returns the routes of a lease; a router outside the address's network
// is on the link (RFC 3442).
func leaseRoutes(lease dhcp.Lease) []Route {
	var list []Route
	for _, r := range lease.Routes {
		if r.Gateway.IsValid() && !lease.Prefix.Contains(r.Gateway) {
			list = append(list, Route{Destination: netip.PrefixFrom(r.Gateway, 32)})
		}
		list = append(list, Route(r))
	}
	return list
}

func (l *leaser) set(lease dhcp.Lease, bound bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease, l.bound = lease, bound
}

func (l *leaser) current() (dhcp.Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease, l.bound
}

// Lease returns the interface's lease. ok is false where it has none, or no DHCP.
func (i *Interface) Lease() (lease dhcp.Lease, ok bool) {
	if i.leaser == nil {
		return dhcp.Lease{}, false
	}
	return i.leaser.current()
}

// log returns the logger of the options, or one that says nothing.
func (h *Host) log() *slog.Logger {
	if h.opts.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return h.opts.Logger
}
