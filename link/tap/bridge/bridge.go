package bridge

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"bondstack/link"
	"bondstack/link/tap"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Device is the kernel device: a *tap.Endpoint that was made with PassChecksums.
type Device interface {
	stack.LinkEndpoint
	link.StateEndpoint
	link.Routes
	SetDeviceAddress(tcpip.LinkAddress) error
	ChangeMTU(uint32) error
	SetCarrier(bool) error
	SetSpeed(speed uint32, duplex link.Duplex) error
	// Promiscuous reports whether the device wants frames for any address.
	Promiscuous() bool
	// Forwards reports whether the namespace is an IPv6 router on the device.
	Forwards() bool
	// Addresses returns the addresses that the namespace has on the device,
	// and SubscribeAddresses has f called when they may have changed.
	Addresses() ([]tap.Address, error)
	SubscribeAddresses(f func()) (cancel func())
}

// Options are the options of New. All may be left out.
type Options struct {
	// Logger is told of what the device does not take. Default: nobody.
	Logger *slog.Logger
	// Clock tells the age of what was seen. Default: the system's.
	Clock tcpip.Clock
}

// Bridge joins a device with a link. See the package comment.
type Bridge struct {
	device Device
	below  stack.LinkEndpoint
	log    *slog.Logger
	stats  counters
	seen   *seenTable
	// addresses are those of the namespace, as it told last.
	addresses atomic.Pointer[[]tap.Address]
	// cancels end the subscriptions.
	cancels []func()

	// mu guards the following, and is held over calls to the device, so that
	// the last change is the one that stays.
	mu     sync.Mutex
	closed bool
	shown  shown
}

// shown is what the device was told to show.
type shown struct {
	address     tcpip.LinkAddress
	mtu         uint32
	state       link.State
	promiscuous bool
	// complaint is what the device did not take, as logged last.
	complaint string
}

// New joins a device with the link below it, to neither of which anything is
// attached. The error says what of the link's the device does not take. The
// bridge closes neither.
func New(device Device, below stack.LinkEndpoint, o Options) (*Bridge, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = tcpip.NewStdClock()
	}
	b := &Bridge{device: device, below: below, log: o.Logger, seen: newSeenTable(o.Clock)}
	b.shown.state = link.State{Carrier: true} // as devices are made; their speed is made up
	if device.IsAttached() || below.IsAttached() {
		return nil, errors.New("bridge: the device or the link is attached to something else")
	}
	b.readAddresses()
	if err := b.follow(); err != nil {
		return nil, err
	}
	b.subscribe()
	below.Attach((*fromBelow)(b))
	device.Attach((*fromDevice)(b))
	b.sync() // for what changed meanwhile
	return b, nil
}

// subscribe asks both sides for their news.
func (b *Bridge) subscribe() {
	also := func(cancel func()) { b.cancels = append(b.cancels, cancel) }
	also(b.device.SubscribeLinkState(b.sync))
	also(b.device.SubscribeAddresses(b.readAddresses))
	if l, ok := b.below.(link.StateEndpoint); ok {
		also(l.SubscribeLinkState(b.sync))
	}
	if l, ok := b.below.(link.ChangeReporter); ok {
		also(l.SubscribeChanges(b.sync))
	}
	if l, ok := b.below.(link.Notifier); ok {
		also(l.SubscribeNotifyPeers(b.Announce))
	}
	if l, ok := b.below.(link.MembershipNotifier); ok {
		also(l.SubscribeResendMemberships(b.ReportMemberships))
	}
	if l, ok := b.below.(link.RouteUser); ok {
		also(l.UseRoutes((*routes)(b)))
	}
}

// Close parts the device from the link. A frame that is under way may still pass;
// who closes device and link next waits for it. Close is idempotent.
func (b *Bridge) Close() {
	b.mu.Lock()
	already := b.closed
	b.closed = true
	b.mu.Unlock()
	if already {
		return
	}
	for _, cancel := range b.cancels {
		cancel()
	}
	b.device.Attach(nil)
	b.below.Attach(nil)
}

// sync has the device follow the link, and says what it did not take.
func (b *Bridge) sync() { _ = b.follow() }

// follow is sync with what the device did not take. That is logged once.
func (b *Bridge) follow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	err := b.followLocked()
	complaint := ""
	if err != nil {
		complaint = err.Error()
	}
	if complaint != "" && complaint != b.shown.complaint {
		b.log.Warn("the device does not follow the link", "reason", err)
	}
	b.shown.complaint = complaint
	return err
}

// followLocked sets what differs. The carrier comes last when it is found, and
// first when it is lost.
func (b *Bridge) followLocked() error {
	state := link.StateOf(b.below)
	state.Carrier = state.Usable()
	var errs []error
	set := func(differs bool, change func() error, done func()) {
		if !differs {
			return
		}
		if err := change(); err != nil {
			errs = append(errs, err)
			return
		}
		done()
	}
	s := &b.shown
	carrier := func() {
		set(state.Carrier != s.state.Carrier,
			func() error { return b.device.SetCarrier(state.Carrier) }, func() { s.state.Carrier = state.Carrier })
	}
	if !state.Carrier {
		carrier()
	}
	address, mtu := b.below.LinkAddress(), b.below.MTU()
	set(address != s.address, func() error { return b.device.SetDeviceAddress(address) }, func() { s.address = address })
	set(mtu != s.mtu, func() error { return b.device.ChangeMTU(mtu) }, func() { s.mtu = mtu })
	set(state.Speed != s.state.Speed || state.Duplex != s.state.Duplex,
		func() error { return b.device.SetSpeed(state.Speed, state.Duplex) },
		func() { s.state.Speed, s.state.Duplex = state.Speed, state.Duplex })
	if filter, ok := b.below.(link.FilterEndpoint); ok {
		want := b.device.Promiscuous()
		set(want != s.promiscuous, func() error { return filter.SetPromiscuous(want) }, func() { s.promiscuous = want })
	}
	if state.Carrier {
		carrier()
	}
	return errors.Join(errs...)
}

// readAddresses reads the addresses of the namespace, and forgets what was seen
// of those that it no longer has.
func (b *Bridge) readAddresses() {
	list, err := b.device.Addresses()
	if err != nil {
		return // the device is gone
	}
	was := b.addresses.Swap(&list)
	if was == nil {
		return
	}
	for _, a := range *was {
		if !slices.ContainsFunc(list, func(now tap.Address) bool { return now.Addr == a.Addr }) {
			b.seen.forget(a.Addr)
		}
	}
}

// routes are what the bridge tells the link of the namespace.
type routes Bridge

var _ link.Routes = (*routes)(nil)

// Route implements link.Routes.
func (r *routes) Route(target netip.Addr) (link.Way, bool) { return r.device.Route(target) }

// Owns implements link.Routes. It asks nobody.
func (r *routes) Owns(addr netip.Addr) bool {
	list := r.addresses.Load()
	return list != nil && slices.ContainsFunc(*list, func(a tap.Address) bool { return a.Addr == addr.Unmap() })
}

// Stats counts what a bridge did since it was made. What the device and the link
// did not take is in their own counters.
type Stats struct {
	// Out and In are the frames from the device, and from the link.
	Out, In uint64
	// OutMalformed counts frames from the device whose headers do not fit what
	// the kernel says of their segmentation or checksum.
	OutMalformed uint64
	// Completed counts checksums that were completed here.
	Completed uint64
	// Announcements and Reports count what was asked for by the link.
	Announcements, Reports uint64
}

// counters are the live ones.
type counters struct {
	out, malformed, completed, announcements, reports atomic.Uint64
	_                                                 [64]byte
	in                                                atomic.Uint64
}

// Stats returns the counters as they are now.
func (b *Bridge) Stats() Stats {
	c := &b.stats
	return Stats{
		Out: c.out.Load(), In: c.in.Load(), OutMalformed: c.malformed.Load(), Completed: c.completed.Load(),
		Announcements: c.announcements.Load(), Reports: c.reports.Load(),
	}
}
