package wire

import (
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
)

var (
	_ stack.LinkEndpoint = (*Endpoint)(nil)
	_ stack.GSOEndpoint  = (*Endpoint)(nil)
	_ link.MTUEndpoint   = (*Endpoint)(nil)

	_ link.TaggedGSOEndpoint = (*Endpoint)(nil)
)

// Endpoint is one end of a wire. Its methods may be called at any time by any
// goroutine.
type Endpoint struct {
	cable  *cable
	peer   *Endpoint
	mtu    atomic.Uint32
	state  linkState
	filter filter
	stats  counters

	// in holds the frames on their way to this end.
	in direction
	// dispatcher is what Attach was given, nil when detached.
	dispatcher atomic.Pointer[stack.NetworkDispatcher]
	// unsure is set once frames that were corrupted may have been delivered to
	// this end, and stays set: it cannot say that checksums are right.
	unsure atomic.Bool

	// spread are the ends that a switch passes this end's frames on to. It is
	// set before any frame flows.
	spread []*Endpoint

	holds bool // EndOptions.HoldUnattached

	// mu guards onClose.
	mu      sync.Mutex
	onClose func()
	// changed is signaled, with mu held, when a dispatcher that is waited for may
	// have come.
	changed sync.Cond
}

func newEndpoint(c *cable, opts *Options, own *EndOptions) *Endpoint {
	e := &Endpoint{cable: c, holds: own.HoldUnattached}
	e.changed.L = &e.mu
	e.mtu.Store(opts.MTU)
	e.filter.init(own.Address, own.Promiscuous)
	e.state.up = true
	return e
}

// doubt has the end, and those that its frames are passed on to, no longer claim
// that received checksums are right.
func (e *Endpoint) doubt() {
	e.unsure.Store(true)
	for _, other := range e.spread {
		other.unsure.Store(true)
	}
}

// MTU implements stack.LinkEndpoint.
func (e *Endpoint) MTU() uint32 { return e.mtu.Load() }

// SetMTU implements stack.LinkEndpoint. It sets the MTU of this end alone: of
// the frames that it sends and of those that it takes. What is out of range is
// ignored: read back with MTU.
func (e *Endpoint) SetMTU(mtu uint32) {
	if mtu >= MinMTU && mtu <= MaxMTU {
		e.mtu.Store(mtu)
	}
}

// MTURange implements link.MTUEndpoint.
func (*Endpoint) MTURange() (least, greatest uint32) { return MinMTU, MaxMTU }

// MaxHeaderLength implements stack.LinkEndpoint.
func (*Endpoint) MaxHeaderLength() uint16 { return ethernetSize }

// ARPHardwareType implements stack.LinkEndpoint.
func (*Endpoint) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// Capabilities implements stack.LinkEndpoint. Received checksums need no
// verification, since memory corrupts nothing, until the other end has once
// been told to corrupt frames.
func (e *Endpoint) Capabilities() stack.LinkEndpointCapabilities {
	if e.unsure.Load() {
		return stack.CapabilityResolutionRequired
	}
	return stack.CapabilityResolutionRequired | stack.CapabilityRXChecksumOffload
}

// SupportedGSO implements stack.GSOEndpoint.
func (e *Endpoint) SupportedGSO() stack.SupportedGSO {
	if e.cable.gso {
		return stack.HostGSOSupported
	}
	return stack.GSONotSupported
}

// GSOMaxSize implements stack.GSOEndpoint.
func (e *Endpoint) GSOMaxSize() uint32 {
	if e.cable.gso {
		return gsoMaxSize
	}
	return 0
}

// TakesTaggedGSO implements link.TaggedGSOEndpoint.
func (*Endpoint) TakesTaggedGSO() bool { return true }

// AddHeader implements stack.LinkEndpoint. The source is the address that the
// end has now, whatever the route remembers.
func (e *Endpoint) AddHeader(pkt *stack.PacketBuffer) {
	header.Ethernet(pkt.LinkHeader().Push(ethernetSize)).Encode(&header.EthernetFields{
		SrcAddr: e.LinkAddress(),
		DstAddr: pkt.EgressRoute.RemoteLinkAddress,
		Type:    pkt.NetworkProtocolNumber,
	})
}

// ParseHeader implements stack.LinkEndpoint.
func (*Endpoint) ParseHeader(pkt *stack.PacketBuffer) bool {
	_, ok := pkt.LinkHeader().Consume(ethernetSize)
	return ok
}

// Attach implements stack.LinkEndpoint. Attach(nil) does not wait: one frame
// whose delivery has begun may still be under way when it returns.
func (e *Endpoint) Attach(d stack.NetworkDispatcher) {
	if d == nil {
		e.dispatcher.Store(nil)
		return
	}
	e.dispatcher.Store(&d)
	e.wakeHolder()
}

// awaitDispatcher returns what is attached, and waits for it where frames are
// held until then. It returns nil where there is none, or the end is closed.
func (e *Endpoint) awaitDispatcher() *stack.NetworkDispatcher {
	if !e.holds {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.dispatcher.Load() == nil && e.state.word.Load()&stateClosed == 0 {
		e.changed.Wait()
	}
	return e.dispatcher.Load()
}

// wakeHolder has awaitDispatcher look again.
func (e *Endpoint) wakeHolder() {
	if e.holds {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed.Broadcast()
	}
}

// IsAttached implements stack.LinkEndpoint.
func (e *Endpoint) IsAttached() bool { return e.dispatcher.Load() != nil }

// Wait implements stack.LinkEndpoint. It returns at once: Close has waited for
// all there is, and gVisor calls Wait with locks held that a delivery under way
// may need.
func (*Endpoint) Wait() {}

// SetOnCloseAction implements stack.LinkEndpoint.
func (e *Endpoint) SetOnCloseAction(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onClose = f
}

// Close implements stack.LinkEndpoint. The end is down from then on and a write
// returns ErrClosedForSend; the other end has no carrier. Frames that wait to be
// delivered to this end are dropped and counted; those that it has sent still
// arrive.
//
// Close waits for a delivery under way, unless the wire is synchronous, so it
// must not be called from within one, nor with a lock held that one may need.
// Further calls do nothing.
func (e *Endpoint) Close() {
	e.mu.Lock()
	action := e.onClose
	e.onClose = nil
	e.mu.Unlock()
	if action != nil {
		action()
	}
	e.cable.change(func() { e.state.closed, e.state.up = true, false })
	e.wakeHolder()
	e.in.close()
}
