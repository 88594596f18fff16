package bonding

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"bondstack/bonding/rcu"
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// instant is a moment of the bond's monotonic clock.
type instant time.Duration

func (i instant) add(d time.Duration) instant { return i + instant(d) }

// Bond makes several link endpoints one. It is made by New and used as a
// stack.LinkEndpoint. All methods may be called from any goroutine, but Release,
// Apply and Close not from within a write to a slave, and Enslave, Release, Try,
// Apply and Close not from within a function that the bond calls back: a
// subscriber's or the logger's.
type Bond struct {
	options Options // as resolved: Clock and Rand are set
	name    atomic.Pointer[string]
	clock   tcpip.Clock

	// snap and readers are all that WritePackets needs.
	snap    atomic.Pointer[snapshot]
	readers rcu.Domain
	rrCount atomic.Uint32 // balance-rr's turn; it outlives changes of slaves
	drops   dropCounters  // frames that no slave was there for
	// retiredGone is what released slaves have counted as dropTxLinkGone.
	retiredGone atomic.Uint64
	mtu         atomic.Uint32
	headers     atomic.Uint32 // MaxHeaderLength

	routes atomic.Pointer[usedRoutes] // of the stack above

	// Locks are taken from above downwards: those of a bond before those of the
	// links below it, in each bond configMu, then mu. What goes up (news, logs,
	// frames) goes by later, with no lock of this bond or of those above it.

	// configMu is held over a whole Enslave, Release or Close, so that they
	// run one at a time. Nobody takes it with a lock held but another bond's
	// configMu. Enslave takes enslaving between it and mu.
	configMu sync.Mutex

	// mu guards all that follows. It is never held while waiting for readers.
	// Of endpoints only what does not come back is called with it held: their
	// setters and what they know of themselves.
	mu          sync.Mutex
	config      config
	slaves      []*slave
	active      *slave
	primary     *slave
	takeOver    bool // the primary was set anew: it takes over once
	dispatcher  stack.NetworkDispatcher
	mac         tcpip.LinkAddress
	macFixed    bool // set by the user, or taken from a slave
	mtuFixed    bool
	carrier     bool
	promiscuous bool
	vlans       []vlanDevice // VLAN devices directly on the bond, in order of adding
	own         []ownAddress // received for besides mac
	copies      *copies
	reordering  reordering
	captures    []*Capture // replaced, not changed
	arp         arpMonitor
	lag         *aggregation // in 802.3ad, while a NIC has the bond
	balancer    *balancer    // in balance-tlb and balance-alb, while a NIC has the bond
	leaving     []*slave     // being released: their counters are in no other sum
	retired     totals       // counters of released slaves
	failovers   failoverLog
	hellos      *helloSet // nil: probe_interval is off, or no NIC has the bond
	flowMaps    flowMaps  // of xmit_hash_map consistent
	closed      bool
	onClose     func()

	timer    tcpip.Timer
	nextPass instant
	armed    instant // what the timer is set to
	notify   notifier
	resend   resender
	dirty    bool     // the snapshot is older than the state
	after    []func() // to run once no lock is held

	// setting is whether setters of slaves' endpoints are being called, with
	// mu held.
	setting atomic.Bool

	stateSubs      subscribers // link.StateEndpoint
	notifySubs     subscribers // link.Notifier
	membershipSubs subscribers // link.MembershipNotifier
	changeSubs     subscribers // link.ChangeReporter
	events         eventLog

	locked *LockedBond // nil: what a program has
}

var (
	_ stack.LinkEndpoint  = (*Bond)(nil)
	_ stack.GSOEndpoint   = (*Bond)(nil)
	_ link.StateEndpoint  = (*Bond)(nil)
	_ link.MTUEndpoint    = (*Bond)(nil)
	_ link.FilterEndpoint = (*Bond)(nil)
	_ link.Notifier       = (*Bond)(nil)

	_ link.TaggedGSOEndpoint = (*Bond)(nil)
)

// New makes a bond without slaves. It has no goroutine of its own: monitors run
// on the clock's timers, and only while a NIC has the bond. The error names
// every option that is wrong.
func New(o Options) (*Bond, error) {
	c, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("new bond: %w", err)
	}
	if o.Name == "" {
		o.Name = "bond0"
	}
	if o.Clock == nil {
		o.Clock = tcpip.NewStdClock()
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	b := &Bond{options: o, clock: o.Clock, config: c, mac: o.LinkAddress, mtuFixed: o.MTU != 0}
	b.SetName(o.Name)
	b.macFixed = b.mac != ""
	if !b.macFixed {
		b.mac = randomAddress(o.Rand)
	}
	b.mtu.Store(defaultMTU)
	if b.mtuFixed {
		b.mtu.Store(o.MTU)
	}
	b.headers.Store(ethernetHeader)
	b.control(func(instant) {
		b.dirty = true
		if c.monitors() == 0 {
			b.warn(unmonitored)
		}
	})
	return b, nil
}

// Name returns the bond's name.
func (b *Bond) Name() string { return *b.name.Load() }

// Mode returns the bond's mode.
func (b *Bond) Mode() Mode {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config.mode
}

// now is the monotonic clock's present moment. It is never zero, so that zero
// can mean "not set".
func (b *Bond) now() instant {
	return instant(b.clock.NowMonotonic().Sub(tcpip.MonotonicTime{})) + 1
}

// control runs f as one change: with the lock held, followed by one swap of the
// snapshot if the state differs, and by what has to happen outside the lock. The
// caller holds no lock but configMu.
func (b *Bond) control(f func(now instant)) {
	b.mu.Lock()
	now := b.now()
	f(now)
	b.settle(now)
	after := b.after
	b.after = nil
	b.mu.Unlock()
	for _, do := range after {
		do()
	}
}

// fromAbove is control for what those above call: a stack, a VLAN trunk, a bond
// or a table of devices, with locks of their own held. What has to happen outside
// of all locks is left to a timer's goroutine.
func (b *Bond) fromAbove(f func(now instant)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	f(now)
	b.settle(now)
	if len(b.after) > 0 {
		b.clock.AfterFunc(0, func() { b.control(func(instant) {}) })
	}
}

// settle brings what follows from the state up to date.
func (b *Bond) settle(now instant) {
	b.updateHellos(now)
	b.updateStandBack(now)
	b.updateAggregation(now)
	b.updateBalancer(now)
	b.updateARPMonitor(now)
	if b.updateStandBack(now) {
		b.updateAggregation(now)
	}
	b.updateCarrier(now)
	b.announce(now)
	b.resendMemberships(now)
	b.queueProbes()
	b.updateCopies(now)
	b.updateReorder()
	if b.dirty {
		b.dirty = false
		next := b.build()
		b.recordFailovers(b.snap.Load(), next, now)
		next.mark(&b.failovers)
		b.publish(next)
	}
	b.arm(now)
}

// later has f run once mu is free, and no lock of those above is held.
func (b *Bond) later(f func()) { b.after = append(b.after, f) }

// Close detaches every slave, waits for its goroutines, and closes it: who
// removes a NIC is rid of the links below it. A released slave is not closed,
// nor one that is a device of a table: that is given back as Release does it.
// Close implements stack.LinkEndpoint; gVisor calls it, with no lock held, when
// the NIC is removed. A second call does nothing.
func (b *Bond) Close() {
	b.configMu.Lock()
	var slaves []*slave
	var onClose func()
	b.control(func(now instant) {
		if b.closed {
			return
		}
		b.closed = true
		b.dispatcher, b.nextPass = nil, 0
		b.notify.stop()
		slaves = b.slaves
		b.leaving = slaves
		for _, s := range slaves {
			s.released = true
		}
		b.slaves, b.active, b.primary = nil, nil, nil
		b.dirty = true
		onClose, b.onClose = b.onClose, nil
		b.later(b.events.close)
		for _, c := range b.captures {
			c.end()
		}
	})
	for _, s := range slaves {
		s.sendControls() // a farewell that nobody has begun to send yet
	}
	b.readers.Synchronize() // and one that somebody has
	for _, s := range slaves {
		s.detached.Store(true)
	}
	b.readers.Synchronize()
	for _, s := range slaves {
		s.detach()
		if s.device == nil {
			s.ep.Close()
		}
	}
	b.retire()
	for _, s := range slaves {
		if s.device != nil {
			b.restore(s)
			s.device.giveBack()
		}
	}
	b.configMu.Unlock() // RemoveNIC, which may be called here, comes back
	if onClose != nil {
		onClose()
	}
}

// Wait implements stack.LinkEndpoint. The bond has no goroutines, and those of
// its slaves are waited for in Release and Close: gVisor calls Wait with the
// stack's lock held, which a receiving goroutine may be waiting for.
func (b *Bond) Wait() {}
