package packet

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"bondstack/link"
	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var (
	_ stack.LinkEndpoint      = (*Fdbased)(nil)
	_ stack.GSOEndpoint       = (*Fdbased)(nil)
	_ link.StateEndpoint      = (*Fdbased)(nil)
	_ link.MTUEndpoint        = (*Fdbased)(nil)
	_ stack.NetworkDispatcher = (*relay)(nil)
)

// Fdbased is gVisor's fdbased endpoint on packet sockets of its own, with the
// state of its link: the baseline that Endpoint is measured against, and a way
// to have what is known of fdbased. It keeps fdbased's limits, as of the
// version in go.mod:
//
//   - It stops receiving for good when the interface goes down, is renamed or
//     deleted; LinkState then says that the link is down for good.
//   - It loses VLAN tags, verifies no checksums, and drops unicast frames for
//     any address but its own.
//   - Each one leaves two eventfds a queue and a few goroutines behind when it
//     is closed.
//
// What fdbased does while it holds its own lock, this wrapper does not:
// Attach(nil) only unpublishes, and it can be attached again.
type Fdbased struct {
	stack.LinkEndpoint
	name    string
	ns      *kernel.Namespace
	monitor *kernel.Monitor
	relay   relay
	sockets []*socket
	mtu     uint32
	// done is closed when Close has closed everything.
	done chan struct{}

	// mu guards the following.
	mu              sync.Mutex
	started, closed bool
	onClose         func()
}

// relay stands between fdbased, which is attached once, and what the wrapper
// is attached to.
type relay struct {
	attached atomic.Pointer[kernel.Attachment]
	// delivered counts the packets that came.
	delivered atomic.Uint64
}

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (r *relay) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	r.delivered.Add(1)
	if a := r.attached.Load(); a != nil {
		a.Dispatcher.DeliverNetworkPacket(protocol, pkt)
	}
}

// DeliverLinkPacket implements stack.NetworkDispatcher.
func (r *relay) DeliverLinkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	if a := r.attached.Load(); a != nil {
		a.Dispatcher.DeliverLinkPacket(protocol, pkt)
	}
}

// OpenFdbased makes a Fdbased on the interface of a name in the network
// namespace of the calling thread. Of the options, Exclusive and
// SetHardwareAddress are not allowed. Errors are as those of New.
func OpenFdbased(name string, options Options) (*Fdbased, error) {
	f, err := openFdbased(name, options)
	if err != nil {
		return nil, fmt.Errorf("packet: fdbased on interface %q: %w", name, err)
	}
	return f, nil
}

// openFdbased is OpenFdbased with errors that do not name the interface.
func openFdbased(name string, options Options) (*Fdbased, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if options.Exclusive || options.SetHardwareAddress {
		return nil, errors.New("the exclusive and hardware address options are not allowed: fdbased has neither")
	}
	runtime.LockOSThread() // what is opened here belongs to the caller's thread
	defer runtime.UnlockOSThread()
	ns, err := kernel.AcquireNamespace()
	if err != nil {
		return nil, err
	}
	options = options.withDefaults()
	f := &Fdbased{name: name, ns: ns, monitor: kernel.NewMonitor(ns, name, options.PollInterval), done: make(chan struct{})}
	f.monitor.Activity = f.relay.delivered.Load
	if err := f.open(options); err != nil {
		closeSockets(f.sockets)
		ns.Release()
		return nil, err
	}
	f.monitor.ReadSpeed()
	return f, nil
}

// open opens the sockets and makes gVisor's endpoint on them. It runs on a
// thread in the endpoint's namespace.
func (f *Fdbased) open(options Options) error {
	facts, err := kernel.LookUp(f.name)
	if err != nil {
		return err
	}
	var fds []int
	for range options.Queues {
		s, err := newSocket(options)
		if err != nil {
			return err
		}
		f.sockets = append(f.sockets, s)
		fds = append(fds, s.fd)
		if err := s.setFilter(ignoreOutgoing); err != nil {
			return err
		}
		if options.NoGSO {
			if err := s.omitVirtio(); err != nil {
				return err
			}
		}
		if err := s.bind(facts.Index); err != nil {
			return err
		}
	}
	if err := f.sockets[0].join(facts.Index); err != nil {
		return err
	}
	f.mtu = f.ns.Observe(f.name).MTU
	f.monitor.Bind(facts.Index)
	gso := uint32(vnet.GSOMaxSize)
	if options.NoGSO {
		gso = 0
	}
	f.LinkEndpoint, err = fdbased.New(&fdbased.Options{
		FDs:                fds,
		MTU:                f.mtu,
		EthernetHeader:     true,
		Address:            tcpip.LinkAddress(facts.MAC[:]),
		GSOMaxSize:         gso,
		PacketDispatchMode: fdbased.RecvMMsg,
		RXChecksumOffload:  true,
		ClosedFunc:         f.stopped,
	})
	return err
}

// stopped is called when fdbased has stopped receiving, at an error or at the
// end.
func (f *Fdbased) stopped(tcpip.Error) {
	f.monitor.Bind(0)
	f.monitor.Wake()
}

// Attach implements stack.LinkEndpoint. The first time it starts receiving.
func (f *Fdbased) Attach(dispatcher stack.NetworkDispatcher) {
	if dispatcher == nil {
		f.relay.attached.Store(nil)
		return
	}
	f.relay.attached.Store(kernel.NewAttachment(dispatcher))
	f.mu.Lock()
	if !f.started && !f.closed {
		f.started = true
		f.LinkEndpoint.Attach(&f.relay)
	}
	f.mu.Unlock()
	f.monitor.Start()
}

// IsAttached implements stack.LinkEndpoint.
func (f *Fdbased) IsAttached() bool { return f.relay.attached.Load() != nil }

// Close implements stack.LinkEndpoint, as that of Endpoint does. No one may be
// in WritePackets, nor come.
func (f *Fdbased) Close() {
	f.mu.Lock()
	already := f.closed
	f.closed = true
	started, action := f.started, f.onClose
	f.onClose = nil
	f.mu.Unlock()
	if already {
		<-f.done
		return
	}
	f.relay.attached.Store(nil)
	f.monitor.Stop()
	if started {
		f.LinkEndpoint.Attach(nil) // waits for its receivers
	}
	closeSockets(f.sockets)
	f.ns.Release()
	close(f.done)
	if action != nil {
		action()
	}
}

// SetOnCloseAction implements stack.LinkEndpoint.
func (f *Fdbased) SetOnCloseAction(action func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onClose = action
}

// Wait implements stack.LinkEndpoint, as that of Endpoint does.
func (f *Fdbased) Wait() {
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	if closed {
		<-f.done
		<-f.monitor.Told()
	}
}

// SetMTU implements stack.LinkEndpoint; values outside MTURange change nothing.
func (f *Fdbased) SetMTU(mtu uint32) {
	if least, greatest := f.MTURange(); mtu >= least && mtu <= greatest {
		f.LinkEndpoint.SetMTU(mtu)
	}
}

// MTURange implements link.MTUEndpoint: from 68 to the MTU that the interface
// had when the endpoint was made.
func (f *Fdbased) MTURange() (least, greatest uint32) { return kernel.MinMTU, f.mtu }

// GSOMaxSize implements stack.GSOEndpoint.
func (f *Fdbased) GSOMaxSize() uint32 { return f.LinkEndpoint.(stack.GSOEndpoint).GSOMaxSize() }

// SupportedGSO implements stack.GSOEndpoint.
func (f *Fdbased) SupportedGSO() stack.SupportedGSO {
	return f.LinkEndpoint.(stack.GSOEndpoint).SupportedGSO()
}

// LinkState implements link.StateEndpoint.
func (f *Fdbased) LinkState() link.State { return f.monitor.State() }

// SubscribeLinkState implements link.StateEndpoint.
func (f *Fdbased) SubscribeLinkState(do func()) (cancel func()) { return f.monitor.Subscribe(do) }

// Name returns the name of the interface.
func (f *Fdbased) Name() string { return f.name }
