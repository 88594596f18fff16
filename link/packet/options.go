package packet

import (
	"errors"
	"fmt"
	"time"

	"bondstack/link/internal/kernel"
)

// Limits and defaults of Options.
const (
	// MaxQueues is the greatest Options.Queues.
	MaxQueues = 64
	// DefaultReceiveBuffer holds some 200 frames of 64 KiB in the kernel's
	// accounting: the receive window of several fast connections.
	DefaultReceiveBuffer = 16 << 20
	// DefaultSendBuffer bounds what waits in the interface's own queues.
	DefaultSendBuffer = 4 << 20
	// DefaultPollInterval makes it a millisecond, on average, until a lost
	// carrier is known. The kernel holds its news of a carrier back so that
	// there is one a second at most: the second cut of a veth pair within a
	// second was told 1.0 s late. An idle
	// endpoint uses about a hundredth of a processor for it.
	DefaultPollInterval = 2 * time.Millisecond
	// MaxBuffer is the greatest size of a socket buffer: the kernel doubles it
	// and counts in 32 bits with a sign.
	MaxBuffer = 1<<30 - 1
)

// Errors that callers branch on.
var (
	// ErrNotSupported is in the chain of the error that New returns where the
	// system cannot do what was asked: no packet sockets (not Linux), or no
	// TCX for Options.Exclusive (Linux before 6.6).
	ErrNotSupported = errors.New("not supported")
	// ErrNoInterface is in the chain of the error that New returns where there
	// is no interface of the name in the namespace. It may come later.
	ErrNoInterface = kernel.ErrNoInterface
)

// Options are what an Endpoint can be told when it is made. The zero value is
// a good one.
type Options struct {
	// Queues is the number of sockets, each with its own receiving goroutine.
	// The kernel spreads received flows over them by hash (fan-out), and sent
	// packets are spread by stack.PacketBuffer.Hash. From 1 to MaxQueues; 0
	// means 1.
	Queues int
	// ReceiveBuffer is the size in bytes asked of the kernel for each socket's
	// receive buffer; frames beyond it are dropped by the kernel and counted.
	// 0 means DefaultReceiveBuffer. Without CAP_NET_ADMIN the kernel caps it;
	// Info says what is in force.
	ReceiveBuffer int
	// SendBuffer is the same for sent frames that wait in the kernel. 0 means
	// DefaultSendBuffer.
	SendBuffer int
	// PollInterval is how often the endpoint itself reads the interface's
	// carrier bit, beside the kernel's events, while frames flow; while none do
	// it is a fifth as often. 0 means DefaultPollInterval, negative none.
	PollInterval time.Duration
	// NoGSO has the endpoint offer no segmentation offload to the stack above,
	// which then sends frames no longer than the MTU. Received frames of up to
	// 64 KiB are delivered whole all the same.
	NoGSO bool
	// NoRing has received frames be queued by the kernel, and received by system
	// calls, where otherwise those of up to the MTU come by a ring of 8 MiB
	// (PACKET_RX_RING) for each socket.
	NoRing bool
	// Exclusive keeps received frames from the host's own stack: all of them,
	// also those for the host's addresses on this interface. They are dropped
	// at ingress, after the packet sockets have had their copy, by a program
	// that goes with the endpoint, or with the process even when it is killed.
	// New returns an error with ErrNotSupported where the kernel cannot do so.
	Exclusive bool
	// SetHardwareAddress has SetLinkAddress change the address of the kernel's
	// interface too, and Close restore it. Without it the interface keeps its
	// own address, and the endpoint uses another by promiscuous reception.
	SetHardwareAddress bool

	// passed is a descriptor of the socket that FromDescriptor was given; 0
	// for none. It is the endpoint's.
	passed int
}

// wantsRing reports whether sockets are to have rings. One that was passed may be
// somebody else's too, and the ring would be that one's.
func (o Options) wantsRing() bool { return !o.NoRing && o.passed == 0 }

// Validate returns an error that names every option whose value is not
// allowed, and what is.
func (o Options) Validate() error {
	var errs []error
	if o.Queues < 0 || o.Queues > MaxQueues {
		errs = append(errs, fmt.Errorf("queues %d is not allowed: 1 to %d, or 0 for 1", o.Queues, MaxQueues))
	}
	for _, b := range []struct {
		name string
		size int
	}{{"receive buffer", o.ReceiveBuffer}, {"send buffer", o.SendBuffer}} {
		if b.size < 0 || b.size > MaxBuffer {
			errs = append(errs, fmt.Errorf("%s %d is not allowed: 1 to %d bytes, or 0 for the default", b.name, b.size, MaxBuffer))
		}
	}
	return errors.Join(errs...)
}

// withDefaults returns the options with every zero replaced by what it means.
func (o Options) withDefaults() Options {
	if o.Queues == 0 {
		o.Queues = 1
	}
	if o.ReceiveBuffer == 0 {
		o.ReceiveBuffer = DefaultReceiveBuffer
	}
	if o.SendBuffer == 0 {
		o.SendBuffer = DefaultSendBuffer
	}
	if o.PollInterval == 0 {
		o.PollInterval = DefaultPollInterval
	}
	return o
}

// Info says what is in force on an endpoint at this moment.
type Info struct {
	// Index is the index of the interface that the sockets are bound to, 0
	// while there is none.
	Index int
	// Queues is the number of sockets.
	Queues int
	// ReceiveBuffer and SendBuffer are the sizes in bytes that the kernel
	// counts against, for each socket. The kernel doubles what it is asked
	// for, to cover its own overhead.
	ReceiveBuffer, SendBuffer int
	// Ring is whether frames are received by rings.
	Ring bool
	// Exclusive is whether received frames are kept from the host's stack.
	Exclusive bool
}
