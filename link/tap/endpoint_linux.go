package tap

import (
	"fmt"
	"sync"
	"sync/atomic"

	"bondstack/link"
	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var (
	_ stack.LinkEndpoint = (*Endpoint)(nil)
	_ stack.GSOEndpoint  = (*Endpoint)(nil)
	_ link.StateEndpoint = (*Endpoint)(nil)
	_ link.MTUEndpoint   = (*Endpoint)(nil)

	_ link.TaggedGSOEndpoint = (*Endpoint)(nil)
)

// Endpoint is a link to a TAP device. See the package comment.
type Endpoint struct {
	name    string
	options Options
	stats   counters
	// attached is what received frames are delivered to; nil for nothing.
	attached atomic.Pointer[kernel.Attachment]
	address  atomic.Pointer[tcpip.LinkAddress]
	device   device

	// queuesMu is held for writing to take the queues away, and for reading
	// over their use. queues is empty when the endpoint is closed.
	queuesMu sync.RWMutex
	queues   []*queue

	life kernel.Life

	// receivers counts the running ones.
	receivers sync.WaitGroup
	// gone is closed when the device is.
	gone     chan struct{}
	goneOnce sync.Once
}

// New makes a TAP device of a name, and an endpoint on its other end. The error
// has ErrName, ErrExists, ErrPermission or ErrNotSupported in its chain where one
// of these is the reason.
//
// Frames wait in the kernel until the endpoint is attached, up to the device's
// txqueuelen.
func New(name string, options Options) (*Endpoint, error) {
	e, err := open(name, options)
	if err != nil {
		return nil, fmt.Errorf("tap: device %q: %w", name, err)
	}
	return e, nil
}

// open is New with errors that do not name the device.
func open(name string, o Options) (*Endpoint, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Queues = max(o.Queues, 1)
	e := &Endpoint{name: name, options: o, gone: make(chan struct{})}
	err := inNamespace(o.Namespace, func() (err error) {
		if e.queues, err = openQueues(name, o); err != nil {
			return err
		}
		return e.device.open(name, e.queues[0].fd)
	})
	e.options.Namespace = nil // it may be closed now
	if err == nil {
		err = e.configure(o)
	}
	if err != nil {
		e.device.close()
		closeQueues(e.queues)
		return nil, err
	}
	e.device.follow()
	return e, nil
}

// configure gives the device what the options say.
func (e *Endpoint) configure(o Options) error {
	if o.DeviceAddress != "" {
		if err := e.SetDeviceAddress(o.DeviceAddress); err != nil {
			return err
		}
	}
	if o.MTU != 0 {
		if err := e.ChangeMTU(o.MTU); err != nil {
			return err
		}
	}
	address := o.Address
	if address == "" {
		own := []byte(e.DeviceAddress())
		own[0] = own[0]&^1 ^ 4 | 2 // another one, local, of one station
		address = tcpip.LinkAddress(own)
	}
	e.address.Store(&address)
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
}

// receiveLocked starts a receiver for each queue. life's lock is held.
func (e *Endpoint) receiveLocked() {
	for _, q := range e.queues {
		e.receivers.Add(1)
		go (&receiver{endpoint: e, queue: q}).run()
	}
}

// IsAttached implements stack.LinkEndpoint.
func (e *Endpoint) IsAttached() bool { return e.attached.Load() != nil }

// Close implements stack.LinkEndpoint. It ends all goroutines, waits for them,
// and closes all descriptors; the device is gone then. A subscriber that is being
// called is waited for, so it must not be called by one, nor by who is delivered
// a frame, nor while holding a lock that these take.
func (e *Endpoint) Close() { e.life.End(e.close) }

// close ends the receivers, and closes what is open.
func (e *Endpoint) close() {
	e.attached.Store(nil)
	for _, q := range e.queues { // nobody else changes them
		q.end()
	}
	e.receivers.Wait()
	e.device.close()
	e.queuesMu.Lock()
	queues := e.queues
	e.queues = nil
	e.queuesMu.Unlock()
	closeQueues(queues)
}

// SetOnCloseAction implements stack.LinkEndpoint.
func (e *Endpoint) SetOnCloseAction(action func()) { e.life.SetOnCloseAction(action) }

// Wait implements stack.LinkEndpoint. It waits for what Close ends; before Close
// it returns at once.
func (e *Endpoint) Wait() { e.life.Wait() }

// Gone returns a channel that is closed when somebody else has deleted the
// device. It tells while something is, or has been, attached.
func (e *Endpoint) Gone() <-chan struct{} { return e.gone }

// lost is called when a receiver finds the device gone.
func (e *Endpoint) lost() {
	e.goneOnce.Do(func() { close(e.gone) })
}

// Name returns the name that the device was made with.
func (e *Endpoint) Name() string { return e.name }

// LinkAddress implements stack.LinkEndpoint. It is this end's address.
func (e *Endpoint) LinkAddress() tcpip.LinkAddress { return *e.address.Load() }

// SetLinkAddress implements stack.LinkEndpoint. What is not the address of one
// station changes nothing.
func (e *Endpoint) SetLinkAddress(addr tcpip.LinkAddress) {
	if checkAddress(addr) == nil {
		e.address.Store(&addr)
	}
}

// MaxHeaderLength implements stack.LinkEndpoint.
func (*Endpoint) MaxHeaderLength() uint16 { return header.EthernetMinimumSize }

// ARPHardwareType implements stack.LinkEndpoint.
func (*Endpoint) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// Capabilities implements stack.LinkEndpoint.
func (e *Endpoint) Capabilities() stack.LinkEndpointCapabilities {
	if e.options.PassChecksums {
		return stack.CapabilityResolutionRequired
	}
	return stack.CapabilityResolutionRequired | stack.CapabilityRXChecksumOffload
}

// GSOMaxSize implements stack.GSOEndpoint.
func (e *Endpoint) GSOMaxSize() uint32 {
	if e.options.NoGSO {
		return 0
	}
	return vnet.GSOMaxSize
}

// SupportedGSO implements stack.GSOEndpoint.
func (e *Endpoint) SupportedGSO() stack.SupportedGSO {
	if e.options.NoGSO {
		return stack.GSONotSupported
	}
	return stack.HostGSOSupported
}

// TakesTaggedGSO implements link.TaggedGSOEndpoint: the kernel finds the headers
// behind VLAN tags.
func (*Endpoint) TakesTaggedGSO() bool { return true }

// AddHeader implements stack.LinkEndpoint.
func (*Endpoint) AddHeader(pkt *stack.PacketBuffer) { kernel.AddEthernet(pkt) }

// ParseHeader implements stack.LinkEndpoint.
func (*Endpoint) ParseHeader(pkt *stack.PacketBuffer) bool { return kernel.ParseEthernet(pkt) }

// Stats returns the counters as they are now.
func (e *Endpoint) Stats() Stats {
	s := e.stats.snapshot()
	s.RXDroppedKernel = e.device.dropped()
	return s
}
