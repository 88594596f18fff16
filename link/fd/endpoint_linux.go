package fd

import (
	"fmt"
	"sync"
	"sync/atomic"

	"bondstack/link"
	"bondstack/link/internal/kernel"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var (
	_ stack.LinkEndpoint = (*Endpoint)(nil)
	_ link.StateEndpoint = (*Endpoint)(nil)
	_ link.MTUEndpoint   = (*Endpoint)(nil)
)

// Endpoint is a link on a descriptor. See the package comment.
type Endpoint struct {
	kind Kind
	// prefix is the size of the header before each frame, which is all zero.
	prefix   int
	stats    counters
	attached atomic.Pointer[kernel.Attachment]
	address  atomic.Pointer[tcpip.LinkAddress]
	mtu      atomic.Uint32
	// lost is whether the other end is gone, ending whether this one ends, and
	// refused whether the other end refused a frame for good.
	lost, ending, refused atomic.Bool
	// wakeup is an eventfd: readable when the receiver is to look at these.
	wakeup int

	// fdMu is held for writing to close fd, and for reading over its use.
	fdMu sync.RWMutex
	fd   int // -1 when closed

	// life's lock guards the following. It is never held over anything that waits.
	life        kernel.Life
	subscribers map[*func()]struct{}

	receiver sync.WaitGroup
}

// New makes an endpoint on a descriptor of kind TAP or Socket. The error has
// ErrNotALink in its chain where it is neither.
func New(fd int, options Options) (*Endpoint, error) {
	e, err := open(fd, options)
	if err != nil {
		return nil, fmt.Errorf("fd: %w", err)
	}
	return e, nil
}

func open(fd int, options Options) (*Endpoint, error) {
	kind, prefix, err := probe(fd)
	if err != nil {
		return nil, err
	}
	if kind == Packet {
		return nil, fmt.Errorf("%w: descriptor %d is a packet socket, which is for package packet", ErrNotALink, fd)
	}
	if options, err = options.withDefaults(); err != nil {
		return nil, err
	}
	e := &Endpoint{kind: kind, prefix: prefix, fd: -1, wakeup: -1, subscribers: map[*func()]struct{}{}}
	e.address.Store(&options.Address)
	e.mtu.Store(options.MTU)
	if err := e.take(fd); err != nil {
		e.closeDescriptors()
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	return e, nil
}

// take takes a copy of the descriptor that does not block.
func (e *Endpoint) take(fd int) (err error) {
	if e.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return err
	}
	if err := unix.SetNonblock(e.fd, true); err != nil {
		return err
	}
	if e.prefix > 0 { // the kernel is to send whole frames
		if err := unix.IoctlSetInt(e.fd, unix.TUNSETOFFLOAD, 0); err != nil {
			return fmt.Errorf("take the offloads back: %w", err)
		}
	}
	e.wakeup, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return err
}

func (e *Endpoint) closeDescriptors() {
	for _, fd := range []int{e.fd, e.wakeup} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	e.fd, e.wakeup = -1, -1
}

// Kind is what the descriptor is.
func (e *Endpoint) Kind() Kind { return e.kind }

// Stats returns the counters as they are now.
func (e *Endpoint) Stats() Stats { return e.stats.snapshot() }

// Attach implements stack.LinkEndpoint. The first time it starts receiving.
// Attach(nil) returns at once; a frame that is being delivered may still arrive
// after it.
func (e *Endpoint) Attach(dispatcher stack.NetworkDispatcher) {
	if dispatcher == nil {
		e.attached.Store(nil)
		return
	}
	e.attached.Store(kernel.NewAttachment(dispatcher))
	e.life.Start(func() {
		e.receiver.Add(1)
		go e.receive()
	})
}

// IsAttached implements stack.LinkEndpoint.
func (e *Endpoint) IsAttached() bool { return e.attached.Load() != nil }

// Close implements stack.LinkEndpoint. It ends all goroutines, waits for them,
// and closes the endpoint's descriptors. It must not be called by who is
// delivered a frame, nor while holding a lock that this takes.
func (e *Endpoint) Close() { e.life.End(e.close) }

// close ends the receivers, and closes what is open.
func (e *Endpoint) close() {
	e.attached.Store(nil)
	e.ending.Store(true)
	e.wake()
	e.receiver.Wait()
	e.fdMu.Lock()
	e.closeDescriptors()
	e.fdMu.Unlock()
}

// wake has the receiver look. It is called twice at most, for which an eventfd has
// room.
func (e *Endpoint) wake() { unix.Write(e.wakeup, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// SetOnCloseAction implements stack.LinkEndpoint.
func (e *Endpoint) SetOnCloseAction(action func()) { e.life.SetOnCloseAction(action) }

// Wait implements stack.LinkEndpoint. It waits for what Close ends; before Close
// it returns at once.
func (e *Endpoint) Wait() { e.life.Wait() }

// LinkState implements link.StateEndpoint. The link is up until its other end is
// gone.
func (e *Endpoint) LinkState() link.State {
	up := !e.lost.Load() && !e.ending.Load()
	return link.State{Up: up, Carrier: up, Speed: link.SpeedUnknown, Duplex: link.DuplexUnknown}
}

// SubscribeLinkState implements link.StateEndpoint. f is called, with no lock
// held, when the other end is gone.
func (e *Endpoint) SubscribeLinkState(f func()) (cancel func()) {
	e.life.Lock()
	defer e.life.Unlock()
	e.subscribers[&f] = struct{}{}
	return func() {
		e.life.Lock()
		defer e.life.Unlock()
		delete(e.subscribers, &f)
	}
}

// lose makes the link down for good. It is only called by the receiver.
func (e *Endpoint) lose() {
	e.lost.Store(true)
	e.life.Lock()
	var list []*func()
	for f := range e.subscribers {
		list = append(list, f)
	}
	e.life.Unlock()
	for _, f := range list {
		(*f)()
	}
}

// MTU implements stack.LinkEndpoint.
func (e *Endpoint) MTU() uint32 { return e.mtu.Load() }

// SetMTU implements stack.LinkEndpoint. Values outside MTURange change nothing.
func (e *Endpoint) SetMTU(mtu uint32) {
	if mtu >= minMTU && mtu <= MaxMTU {
		e.mtu.Store(mtu)
	}
}

// MTURange implements link.MTUEndpoint: 68 to 65521. Whether the other end takes
// as much is for whoever sets it to know.
func (*Endpoint) MTURange() (least, greatest uint32) { return minMTU, MaxMTU }

// LinkAddress implements stack.LinkEndpoint.
func (e *Endpoint) LinkAddress() tcpip.LinkAddress { return *e.address.Load() }

// SetLinkAddress implements stack.LinkEndpoint. What is not the address of one
// station changes nothing.
func (e *Endpoint) SetLinkAddress(addr tcpip.LinkAddress) {
	if _, err := kernel.ParseMAC(addr); err == nil {
		e.address.Store(&addr)
	}
}

// MaxHeaderLength implements stack.LinkEndpoint.
func (*Endpoint) MaxHeaderLength() uint16 { return header.EthernetMinimumSize }

// ARPHardwareType implements stack.LinkEndpoint.
func (*Endpoint) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// Capabilities implements stack.LinkEndpoint.
func (*Endpoint) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityResolutionRequired
}

// AddHeader implements stack.LinkEndpoint.
func (*Endpoint) AddHeader(pkt *stack.PacketBuffer) { kernel.AddEthernet(pkt) }

// ParseHeader implements stack.LinkEndpoint.
func (*Endpoint) ParseHeader(pkt *stack.PacketBuffer) bool { return kernel.ParseEthernet(pkt) }
