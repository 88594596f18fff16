package stack

import (
	"net"
	"slices"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

// firstNIC is the number in its netstack of the interface that a host is made with.
const firstNIC tcpip.NICID = 1

// Host is a TCP/IP host on a link, and on further ones that AddLink gives it. Its
// methods may be called from any goroutine.
type Host struct {
	name  string
	opts  HostOptions // with the defaults filled in
	ipv6  bool
	stack *netstack.Stack
	link  *attachment // of the first interface

	addresses addressTable
	listeners listeners

	// closed is closed when Close has done its work.
	closed chan struct{}
	// work counts what Close has to wait for.
	work sync.WaitGroup

	// mu is a leaf: no call leaves this package with it held.
	mu sync.Mutex
	// The following are guarded by mu.
	sockets map[*socket]struct{}
	// interfaces are in the order of adding, and replaced, not changed: the
	// first one stays.
	interfaces []*Interface
	lastNIC    tcpip.NICID
	// over is why no socket can be made any more: net.ErrClosed after Close,
	// errLinkGone after the link went; nil until then.
	over error
}

// NewHost makes a host on a link and has the link deliver to it. The link is
// the host's from then on: Close closes it. When NewHost returns an error the
// link is detached again, and still the caller's.
//
// IPv6 addresses are usable once no other host has claimed them, after
// DADTransmits times DADInterval. Dial and Listen wait for that where it
// matters; AwaitAddresses is for who tells others to come.
func NewHost(ep netstack.LinkEndpoint, opts HostOptions) (*Host, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if err := checkLink(ep); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	h := &Host{
		name:    opts.Name,
		opts:    opts,
		ipv6:    ep.MTU() >= minIPv6MTU,
		closed:  make(chan struct{}),
		sockets: make(map[*socket]struct{}),
	}
	first := &Interface{host: h, id: firstNIC, name: h.name, stop: func() {}}
	h.link = &attachment{LinkEndpoint: ep, iface: first}
	first.link = h.link
	h.interfaces, h.lastNIC = []*Interface{first}, firstNIC
	h.addresses.init()
	h.listeners.at = make(map[*socket]endpointAddress)
	h.stack = netstack.New(h.stackOptions())
	err := h.tune()
	if err == nil {
		err = first.configure(h.opts)
	}
	if err != nil {
		h.link.keep.Store(true)
		h.Close()
		return nil, err
	}
	first.connect()
	return h, nil
}

// stackOptions chooses the protocols.
func (h *Host) stackOptions() netstack.Options {
	dad := netstack.DADConfigurations{
		DupAddrDetectTransmits: uint8(max(h.opts.DADTransmits, 0)),
		RetransmitTimer:        h.opts.DADInterval,
	}
	networks := []netstack.NetworkProtocolFactory{
		arp.NewProtocolWithOptions(arp.Options{DADConfigs: dad}),
		ipv4.NewProtocolWithOptions(ipv4.Options{IGMP: ipv4.IGMPOptions{Enabled: true}}),
	}
	if h.ipv6 {
		networks = append(networks, ipv6.NewProtocolWithOptions(ipv6.Options{
			NDPConfigs: ipv6.NDPConfigurations{HandleRAs: ipv6.HandlingRAsDisabled},
			NDPDisp:    routerNews{h},
			DADConfigs: dad,
			MLD:        ipv6.MLDOptions{Enabled: true},
		}))
	}
	return netstack.Options{
		NetworkProtocols: networks,
		TransportProtocols: []netstack.TransportProtocolFactory{
			tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6,
		},
		Clock: h.opts.Clock,
		// The host reaches its own addresses without the link.
		HandleLocal: true,
	}
}

// Stack returns the gVisor stack below the host, for what the host does not
// offer: statistics, packet filters, other protocols.
func (h *Host) Stack() *netstack.Stack { return h.stack }

// NICID returns the number of the host's first interface in its gVisor stack.
func (h *Host) NICID() tcpip.NICID { return firstNIC }

// Name returns the first interface's name.
func (h *Host) Name() string { return h.name }

// Close ends the host: it aborts all connections and listeners (peers are
// reset, waiting calls return net.ErrClosed), closes the links, and returns when
// no goroutine of the host, its stack and its links is left. It may be called
// many times and from many goroutines; all return when the work is done, and
// nil.
func (h *Host) Close() error {
	if !h.finish(net.ErrClosed) {
		<-h.closed
		return nil
	}
	h.abortAll(net.ErrClosed)
	h.work.Wait()
	// The interfaces go before the rest of the stack: RemoveNIC closes the
	// link with no lock of the stack held, so that the link may wait for its
	// goroutines, which may be inside the stack. Those that may be stacked on
	// others go first.
	for _, i := range slices.Backward(h.Interfaces()) {
		i.withdraw()
	}
	h.stack.Destroy()
	close(h.closed)
	return nil
}

// finish sets why the host is over and returns whether this call was the one
// that did. Close comes after a loss of the link, but never the other way.
func (h *Host) finish(why error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over == net.ErrClosed || h.over == why {
		return false
	}
	h.over = why
	if why == errLinkGone {
		h.work.Add(1)
	}
	return true
}

// linkLost is called when the link was removed from the stack or closed by
// someone else. The stack's lock may be held, so the work is done elsewhere.
func (h *Host) linkLost() {
	if !h.finish(errLinkGone) {
		return
	}
	go func() {
		defer h.work.Done()
		h.abortAll(errLinkGone)
	}()
}

// enter has Close wait until leave, unless the host is over.
func (h *Host) enter() (leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		return nil, false
	}
	h.work.Add(1)
	return h.work.Done, true
}

// abortAll ends the host's sockets, and aborts the endpoints that others made
// in its stack.
func (h *Host) abortAll(cause error) {
	h.mu.Lock()
	sockets := make([]*socket, 0, len(h.sockets))
	for s := range h.sockets {
		sockets = append(sockets, s)
	}
	h.mu.Unlock()
	for _, s := range sockets {
		s.abort(cause)
	}
	for _, ep := range h.stack.RegisteredEndpoints() {
		ep.Abort()
	}
	h.addresses.wake()
}

// track has the host know a socket, unless the host is over.
func (h *Host) track(s *socket) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		return h.over
	}
	h.sockets[s] = struct{}{}
	return nil
}

// untrack has the host forget a socket. It returns whether it knew it.
func (h *Host) untrack(s *socket) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.sockets[s]
	delete(h.sockets, s)
	return ok
}

// ended returns why the host is over, nil while it is not.
func (h *Host) ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}
