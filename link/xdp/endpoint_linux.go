package xdp

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"bondstack/link"
	"bondstack/link/internal/kernel"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var (
	_ stack.LinkEndpoint  = (*Endpoint)(nil)
	_ link.StateEndpoint  = (*Endpoint)(nil)
	_ link.FilterEndpoint = (*Endpoint)(nil)
	_ link.MTUEndpoint    = (*Endpoint)(nil)
)

// Endpoint is a link on a kernel interface. See the package comment.
type Endpoint struct {
	name    string
	options Options
	ns      *kernel.Namespace
	monitor *kernel.Monitor
	stats   counters
	filter  kernel.AddressFilter
	// attached is what received frames are delivered to; nil for nothing.
	attached atomic.Pointer[kernel.Attachment]

	// interfaceMTU is the interface's; frameMTU what a frame's place holds; mtu
	// what SetMTU asked for, 0 for none.
	interfaceMTU, frameMTU, mtu atomic.Uint32

	// openMu is held for writing to change what is open, and for reading over
	// its use. It has no sockets while there is no interface of
	// the name that is up.
	openMu sync.RWMutex
	open   opened

	// life's lock guards the following. It is never held over anything that waits.
	life kernel.Life
	// idle are the sockets that have no receiver yet.
	idle []*socket
	// failure is why the interface that is there could not be opened.
	failure error

	// filterMu is held over a change of the filter and of what the program
	// takes for it, which are to be the same.
	filterMu sync.Mutex

	// receivers counts the running ones. Only the monitor's goroutine waits
	// for them, or Close after that has ended.
	receivers sync.WaitGroup
}

// New makes an endpoint on the interface of a name in the network namespace of
// the calling thread. The error has ErrNoInterface in its chain where there is
// no such interface, and ErrNotSupported where the kernel cannot do what the
// options ask for; a want of rights is the kernel's own error (EPERM).
//
// The interface may be down; the link then comes up with it. Received frames
// wait in the rings from now on, until the endpoint is attached.
func New(name string, options Options) (*Endpoint, error) {
	e, err := newEndpoint(name, options)
	if err != nil {
		return nil, fmt.Errorf("xdp: interface %q: %w", name, err)
	}
	return e, nil
}

// newEndpoint is New with errors that do not name the interface.
func newEndpoint(name string, options Options) (*Endpoint, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	// What is opened here belongs to the caller's thread, which must stay so.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ns, err := kernel.AcquireNamespace()
	if err != nil {
		return nil, err
	}
	options = options.withDefaults()
	e := &Endpoint{
		name: name, options: options, ns: ns,
		monitor: kernel.NewMonitor(ns, name, options.PollInterval),
		open:    opened{membership: -1},
	}
	e.monitor.Follow = e.follow
	e.monitor.Activity = e.stats.activity
	e.monitor.ChangedMTU = e.interfaceMTU.Store
	if err := e.openFirst(); err != nil {
		ns.Release()
		return nil, err
	}
	return e, nil
}

// openFirst opens the interface for the first time and takes over its address
// and MTU. It runs on a thread in the endpoint's namespace.
func (e *Endpoint) openFirst() error {
	facts, err := kernel.LookUp(e.name)
	if err != nil {
		return err
	}
	e.filter.SetOwn(facts.MAC)
	e.interfaceMTU.Store(e.ns.Observe(e.name).MTU)
	e.frameMTU.Store(MaxMTU)
	err = e.openOn(facts.Index)
	if errors.Is(err, unix.ENETDOWN) {
		return nil // the monitor follows when it is up
	}
	if err != nil {
		return err
	}
	e.monitor.Bind(facts.Index)
	e.monitor.ReadSpeed()
	return nil
}

// Attach implements stack.LinkEndpoint. The first time it starts receiving.
// Attach(nil) returns at once; a frame that is being delivered may still arrive
// after it.
func (e *Endpoint) Attach(dispatcher stack.NetworkDispatcher) {
	if dispatcher == nil {
		e.attached.Store(nil)
		return
	}
	e.attached.Store(kernel.NewAttachment(dispatcher))
	e.life.Start(e.receiveLocked)
	e.monitor.Start()
}

// IsAttached implements stack.LinkEndpoint.
func (e *Endpoint) IsAttached() bool { return e.attached.Load() != nil }

// Close implements stack.LinkEndpoint. It ends all goroutines, waits for them,
// detaches the program and closes all descriptors; the link is down from then
// on. A subscriber that is being called is not waited for. It must not be called
// while holding a lock that delivering a frame takes, nor by who is delivered one.
func (e *Endpoint) Close() { e.life.End(e.close) }

// close ends the receivers, and closes what is open.
func (e *Endpoint) close() {
	e.attached.Store(nil)
	e.monitor.Stop()
	e.shut()
	e.ns.Release()
}

// SetOnCloseAction implements stack.LinkEndpoint.
func (e *Endpoint) SetOnCloseAction(action func()) { e.life.SetOnCloseAction(action) }

// Wait implements stack.LinkEndpoint. It waits for what Close ends, and for the
// subscribers that are being called; before Close it returns at once.
func (e *Endpoint) Wait() {
	if e.life.Wait() {
		<-e.monitor.Told()
	}
}

// MTU implements stack.LinkEndpoint: the interface's MTU or what a frame's
// place holds, or the smaller one that SetMTU asked for.
func (e *Endpoint) MTU() uint32 {
	_, limit := e.MTURange()
	if mtu := e.mtu.Load(); mtu != 0 && mtu < limit {
		return mtu
	}
	return limit
}

// SetMTU implements stack.LinkEndpoint. It does not change the interface's MTU;
// values outside MTURange change nothing.
func (e *Endpoint) SetMTU(mtu uint32) {
	if least, greatest := e.MTURange(); mtu >= least && mtu <= greatest {
		e.mtu.Store(mtu)
	}
}

// MTURange implements link.MTUEndpoint: from 68 to the interface's MTU, or to
// what a frame's place holds where that is less.
func (e *Endpoint) MTURange() (least, greatest uint32) {
	return kernel.MinMTU, min(e.interfaceMTU.Load(), e.frameMTU.Load())
}

// MaxHeaderLength implements stack.LinkEndpoint.
func (*Endpoint) MaxHeaderLength() uint16 { return header.EthernetMinimumSize }

// ARPHardwareType implements stack.LinkEndpoint.
func (*Endpoint) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// Capabilities implements stack.LinkEndpoint.
func (*Endpoint) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityResolutionRequired | stack.CapabilityRXChecksumOffload
}

// AddHeader implements stack.LinkEndpoint.
func (*Endpoint) AddHeader(pkt *stack.PacketBuffer) { kernel.AddEthernet(pkt) }

// ParseHeader implements stack.LinkEndpoint.
func (*Endpoint) ParseHeader(pkt *stack.PacketBuffer) bool { return kernel.ParseEthernet(pkt) }

// LinkState implements link.StateEndpoint. It asks the kernel, and takes a few
// microseconds; only while another process holds the kernel's lock on changes
// of interfaces it takes as long as that.
func (e *Endpoint) LinkState() link.State { return e.monitor.State() }

// SubscribeLinkState implements link.StateEndpoint.
func (e *Endpoint) SubscribeLinkState(f func()) (cancel func()) { return e.monitor.Subscribe(f) }

// Name returns the name of the interface.
func (e *Endpoint) Name() string { return e.name }

// Stats returns the counters as they are now.
func (e *Endpoint) Stats() Stats {
	e.openMu.RLock()
	e.countKernelDrops(e.open.sockets)
	e.openMu.RUnlock()
	return e.stats.snapshot()
}

// countKernelDrops adds what the kernel dropped since it was last asked. The
// sockets are kept open by the caller.
func (e *Endpoint) countKernelDrops(sockets []*socket) {
	for _, s := range sockets {
		d := s.kernelDrops()
		e.stats.rx.ringFull.Add(d.ringFull + d.noPlace)
		e.stats.rx.kernel.Add(d.other)
	}
}
