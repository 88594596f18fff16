package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/qdisc/fifo"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
)

// Interface is one link of a Host, with its addresses and routes. A host has one
// from its beginning, and further ones by AddLink: VLAN devices on the first link,
// for instance. What the host sends leaves by the interface that the routes say,
// and what comes for an address is taken on the interface that has it.
type Interface struct {
	host *Host
	id   tcpip.NICID
	name string
	link *attachment
	// lost is set when the link was closed or detached by somebody else, or
	// the interface by its user.
	lost atomic.Bool
	// stop ends the subscriptions to the link. It is set before the interface
	// is known to others.
	stop func()
	// leaser and advertised are nil where DHCP and SLAAC are not wanted; they are
	// set before the interface is connected.
	leaser     *leaser
	advertised *advertised
}

// LinkOptions say how a link becomes a host's interface. The zero value of each
// field is its default.
type LinkOptions struct {
	// Addresses, Gateway, Gateway6 and Routes are as those of HostOptions, for
	// this link. A gateway is for everything that no route of any link
	// reaches; of two the first one given is taken.
	Addresses []netip.Prefix
	Gateway   netip.Addr
	Gateway6  netip.Addr
	Routes    []Route
	// DHCP and SLAAC are as those of HostOptions.
	DHCP, SLAAC bool
}

// AddLink gives the host another link, as an interface of a name of its own. The
// link is the host's from then on: Close of the host or of the interface closes
// it. The error names the interface and the reason; then the link is detached
// again, and still the caller's.
func (h *Host) AddLink(name string, ep netstack.LinkEndpoint, opts LinkOptions) (*Interface, error) {
	o := HostOptions{Name: name, Addresses: opts.Addresses, Gateway: opts.Gateway, Gateway6: opts.Gateway6, Routes: opts.Routes, DHCP: opts.DHCP, SLAAC: opts.SLAAC}
	if name == "" {
		return nil, errors.New("stack: a further link needs a name")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := checkLink(ep); err != nil {
		return nil, err
	}
	if mtu := ep.MTU(); h.ipv6 && mtu < minIPv6MTU {
		return nil, fmt.Errorf("stack: link's MTU %d is too small for a host with IPv6: allowed are %d and more", mtu, minIPv6MTU)
	}
	leave, ok := h.enter()
	if !ok {
		return nil, fmt.Errorf("stack: link %s: %w", name, h.ended())
	}
	defer leave()
	i := &Interface{host: h, name: name, stop: func() {}}
	i.link = &attachment{LinkEndpoint: ep, iface: i}
	if err := h.know(i); err != nil {
		return nil, err
	}
	if err := i.configure(o); err != nil {
		i.link.keep.Store(true)
		i.remove()
		return nil, err
	}
	i.connect()
	return i, nil
}

// checkLink checks what can be known of a link before it is used.
func checkLink(ep netstack.LinkEndpoint) error {
	if ep == nil {
		return errors.New("stack: link is nil")
	}
	if ep.IsAttached() {
		return fmt.Errorf("stack: link %s is attached to a stack already", ep.LinkAddress())
	}
	if mtu := ep.MTU(); mtu < minIPv4MTU {
		return fmt.Errorf("stack: link's MTU %d is too small: allowed are %d and more", mtu, minIPv4MTU)
	}
	return nil
}

// know takes an interface into the host's list, and numbers it.
func (h *Host) know(i *Interface) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, other := range h.interfaces {
		if other.name == i.name {
			return fmt.Errorf("stack: link %s: the host has an interface of that name", i.name)
		}
	}
	h.lastNIC++
	i.id = h.lastNIC
	h.interfaces = append(slices.Clone(h.interfaces), i)
	return nil
}

// makeNIC makes the interface's NIC, disabled, with a queue of some packets before
// the link. NICs close their queues.
func (i *Interface) makeNIC(queue int) tcpip.Error {
	o := netstack.NICOptions{Name: i.name, Disabled: true}
	if queue > 0 {
		o.QDisc = fifo.New(i.link, 1, queue)
	}
	err := i.host.stack.CreateNICWithOptions(i.id, i.link, o)
	if err != nil && o.QDisc != nil {
		o.QDisc.Close()
	}
	return err
}

// configure makes the interface in the host's netstack, with what the options ask
// for.
func (i *Interface) configure(o HostOptions) error {
	if err := i.makeNIC(o.TransmitQueue); err != nil {
		return fmt.Errorf("stack: making interface %s: %s", i.name, err)
	}
	if o.SLAAC {
		if err := i.startSLAAC(); err != nil {
			return err
		}
	}
	if err := i.host.stack.EnableNIC(i.id); err != nil {
		return fmt.Errorf("stack: enabling interface %s: %s", i.name, err)
	}
	if err := i.addLinkLocal(); err != nil {
		return err
	}
	for _, p := range o.Addresses {
		if err := i.AddAddress(p); err != nil {
			return err
		}
	}
	for _, r := range o.allRoutes() {
		if err := i.AddRoute(r); err != nil {
			return err
		}
	}
	if o.DHCP {
		if err := i.startDHCP(); err != nil {
			return fmt.Errorf("stack: DHCP on %s: %w", i.name, err)
		}
	}
	return nil
}

// addLinkLocal adds the IPv6 link-local address, where the link has a MAC to
// make it from.
func (i *Interface) addLinkLocal() error {
	mac := i.link.LinkAddress()
	if !i.host.ipv6 || !header.IsValidUnicastEthernetAddress(mac) {
		return nil
	}
	return i.AddAddress(netipPrefix(header.LinkLocalAddr(mac), 64))
}

// connect has the interface hear of the link's end, announce its addresses and
// report its memberships when the link says so, and the link know the ways of the
// stack.
func (i *Interface) connect() {
	ep := i.link.LinkEndpoint
	ep.SetOnCloseAction(i.linkLost)
	var stops []func()
	if n, ok := ep.(link.Notifier); ok {
		stops = append(stops, n.SubscribeNotifyPeers(i.pathChanged))
	}
	if n, ok := ep.(link.MembershipNotifier); ok {
		stops = append(stops, n.SubscribeResendMemberships(i.ReportMemberships))
	}
	if u, ok := ep.(link.RouteUser); ok {
		stops = append(stops, u.UseRoutes(ways{i}))
	}
	i.stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// pathChanged announces the interface's addresses, and has those that others gave it
// be made sure of, since the link may lead elsewhere.
func (i *Interface) pathChanged() {
	i.Announce()
	if i.leaser != nil {
		signal(i.leaser.path)
	}
	if i.advertised != nil {
		i.advertised.solicit()
	}
}

// Name returns the interface's name.
func (i *Interface) Name() string { return i.name }

// NICID returns the interface's number in the host's gVisor stack.
func (i *Interface) NICID() tcpip.NICID { return i.id }

// first returns the interface that the host was made with.
func (h *Host) first() *Interface { return h.Interfaces()[0] }

// Interfaces returns the host's interfaces in the order of adding; the one that
// it was made with is the first.
func (h *Host) Interfaces() []*Interface {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.interfaces
}

// AwaitAddresses waits until none of the interface's addresses is tentative and it has
// a lease where it is to have one. Its errors are those of Host.AwaitAddresses.
func (i *Interface) AwaitAddresses(ctx context.Context) error {
	err := i.host.await(ctx, i.unsettled)
	if err != nil {
		return fmt.Errorf("stack: addresses of %s: %w", i.name, err)
	}
	return nil
}

// Close ends the interface: it aborts the connections and listeners at its
// addresses, and closes the link. For the interface that the host was made with it
// is Close of the host. A second call does nothing.
func (i *Interface) Close() error {
	h := i.host
	if i == h.first() {
		return h.Close()
	}
	leave, ok := h.enter()
	if !ok {
		return nil // Close of the host does it
	}
	defer leave()
	i.lost.Store(true)
	i.abortSockets()
	i.remove()
	return nil
}

// remove takes the interface out of the host and the stack.
func (i *Interface) remove() {
	h := i.host
	h.mu.Lock()
	at := slices.Index(h.interfaces, i)
	if at >= 0 {
		h.interfaces = slices.Delete(slices.Clone(h.interfaces), at, at+1)
	}
	h.mu.Unlock()
	if at < 0 {
		return
	}
	i.withdraw()
	h.addresses.removeAll(i)
}

// withdraw takes the interface out of the stack, and waits for its link.
func (i *Interface) withdraw() {
	i.stop()
	i.lost.Store(true)
	if i.leaser != nil {
		i.leaser.socket.abort(net.ErrClosed)
	}
	i.host.stack.RemoveNIC(i.id)
	if !i.link.keep.Load() {
		i.link.Wait()
	}
}

// linkLost is called when the link was removed from the stack or closed by
// someone else. The stack's lock may be held, so the work is done elsewhere.
func (i *Interface) linkLost() {
	h := i.host
	if i.id == firstNIC {
		h.linkLost()
		return
	}
	if i.lost.Swap(true) {
		return
	}
	if leave, ok := h.enter(); ok {
		go func() {
			defer leave()
			i.abortSockets()
		}()
	}
}

// abortSockets ends the sockets that are at an address of the interface.
func (i *Interface) abortSockets() {
	h := i.host
	own := i.Addresses()
	h.mu.Lock()
	sockets := make([]*socket, 0, len(h.sockets))
	for s := range h.sockets {
		sockets = append(sockets, s)
	}
	h.mu.Unlock()
	for _, s := range sockets {
		local, err := s.ep.GetLocalAddress()
		at := fromAddress(local.Addr)
		if err == nil && slices.ContainsFunc(own, func(a Address) bool { return a.Prefix.Addr() == at }) {
			s.abort(errLinkGone)
		}
	}
}
