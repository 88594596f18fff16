package stack

import (
	"fmt"
	"net"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"bondstack/link"
)

// nicID is the number of a host's interface in its netstack.
const nicID tcpip.NICID = 1

// Host is a TCP/IP host on one link. Its methods may be called from any
// goroutine.
type Host struct {
	name  string
	opts  HostOptions // with the defaults filled in
	ipv6  bool
	stack *netstack.Stack
	link  *attachment

	addresses addressTable
	listeners listeners

	// stopNotices ends the subscriptions to the link's announcements.
	stopNotices func()

	// closed is closed when Close has done its work.
	closed chan struct{}
	// work counts what Close has to wait for.
	work sync.WaitGroup

	// mu is a leaf: no call leaves this package with it held.
	mu sync.Mutex
	// The following are guarded by mu.
	sockets map[*socket]struct{}
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
	if ep == nil {
		return nil, fmt.Errorf("stack: link is nil")
	}
	if ep.IsAttached() {
		return nil, fmt.Errorf("stack: link %s is attached to a stack already", ep.LinkAddress())
	}
	if mtu := ep.MTU(); mtu < minIPv4MTU {
		return nil, fmt.Errorf("stack: link's MTU %d is too small: allowed are %d and more", mtu, minIPv4MTU)
	}
	opts = opts.withDefaults()
	h := &Host{
		name:    opts.Name,
		opts:    opts,
		ipv6:    ep.MTU() >= minIPv6MTU,
		closed:  make(chan struct{}),
		sockets: make(map[*socket]struct{}),
	}
	h.link = &attachment{LinkEndpoint: ep, host: h}
	h.addresses.init()
	h.listeners.at = make(map[*socket]endpointAddress)
	h.stack = netstack.New(h.stackOptions())
	if err := h.configure(); err != nil {
		h.link.keep.Store(true)
		h.Close()
		return nil, err
	}
	ep.SetOnCloseAction(h.linkLost)
	h.stopNotices = h.subscribe(ep)
	return h, nil
}

// stackOptions chooses the protocols.
func (h *Host) stackOptions() netstack.Options {
	networks := []netstack.NetworkProtocolFactory{
		arp.NewProtocol,
		ipv4.NewProtocolWithOptions(ipv4.Options{IGMP: ipv4.IGMPOptions{Enabled: true}}),
	}
	if h.ipv6 {
		networks = append(networks, ipv6.NewProtocolWithOptions(ipv6.Options{
			NDPConfigs: ipv6.NDPConfigurations{HandleRAs: ipv6.HandlingRAsDisabled},
			DADConfigs: netstack.DADConfigurations{
				DupAddrDetectTransmits: uint8(max(h.opts.DADTransmits, 0)),
				RetransmitTimer:        h.opts.DADInterval,
			},
			MLD: ipv6.MLDOptions{Enabled: true},
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

// configure sets what the options ask for.
func (h *Host) configure() error {
	if err := h.tune(); err != nil {
		return err
	}
	if err := h.stack.CreateNICWithOptions(nicID, h.link, netstack.NICOptions{Name: h.name}); err != nil {
		return fmt.Errorf("stack: making interface %s: %s", h.name, err)
	}
	if err := h.addLinkLocal(); err != nil {
		return err
	}
	for _, p := range h.opts.Addresses {
		if err := h.AddAddress(p); err != nil {
			return err
		}
	}
	for _, r := range h.opts.allRoutes() {
		if err := h.AddRoute(r); err != nil {
			return err
		}
	}
	return nil
}

// addLinkLocal adds the IPv6 link-local address, where the link has a MAC to
// make it from.
func (h *Host) addLinkLocal() error {
	mac := h.link.LinkAddress()
	if !h.ipv6 || !header.IsValidUnicastEthernetAddress(mac) {
		return nil
	}
	return h.AddAddress(netipPrefix(header.LinkLocalAddr(mac), 64))
}

// subscribe has the host announce its addresses, and report its memberships,
// when the link says so.
func (h *Host) subscribe(ep netstack.LinkEndpoint) (stop func()) {
	stopPeers, stopMemberships := func() {}, func() {}
	if n, ok := ep.(link.Notifier); ok {
		stopPeers = n.SubscribeNotifyPeers(h.Announce)
	}
	if n, ok := ep.(link.MembershipNotifier); ok {
		stopMemberships = n.SubscribeResendMemberships(h.ReportMemberships)
	}
	return func() { stopPeers(); stopMemberships() }
}

// Stack returns the gVisor stack below the host, for what the host does not
// offer: statistics, packet filters, other protocols.
func (h *Host) Stack() *netstack.Stack { return h.stack }

// NICID returns the number of the host's interface in its gVisor stack.
func (h *Host) NICID() tcpip.NICID { return nicID }

// Name returns the interface's name.
func (h *Host) Name() string { return h.name }

// Close ends the host: it aborts all connections and listeners (peers are
// reset, waiting calls return net.ErrClosed), closes the link, and returns when
// no goroutine of the host, its stack and its link is left. It may be called
// many times and from many goroutines; all return when the work is done, and
// nil.
func (h *Host) Close() error {
	if !h.finish(net.ErrClosed) {
		<-h.closed
		return nil
	}
	if h.stopNotices != nil {
		h.stopNotices()
	}
	h.abortAll(net.ErrClosed)
	h.work.Wait()
	// The interface goes before the rest of the stack: RemoveNIC closes the
	// link with no lock of the stack held, so that the link may wait for its
	// goroutines, which may be inside the stack.
	h.stack.RemoveNIC(nicID)
	if !h.link.keep.Load() {
		h.link.Wait()
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
