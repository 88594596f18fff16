// Package wire is a cable in memory. New gives its two ends, each a gVisor
// stack.LinkEndpoint that carries Ethernet frames to the other:
//
//	a, b, err := wire.New(wire.Options{})
//	...
//	s.CreateNIC(1, a)
//	t.CreateNIC(1, b)
//	...
//	a.Close()
//	b.Close()
//
// An end knows its state (link.StateEndpoint), its limits (link.MTUEndpoint)
// and filters by address as a network card does (link.FilterEndpoint).
//
// # Speed
//
// Both ends offer host GSO of 64 KiB, and such frames pass whole. Payload is
// not copied: both stacks read the same memory. The headers are copied, since
// the sender may write into its own again. Each direction has one bounded queue
// and one goroutine that takes all that waits at once.
//
// # Faults
//
// Impairments (rate, delay, jitter, loss, duplication, reordering, corruption,
// a cut in one direction) are set for each direction at any time with
// Endpoint.SetImpairments; carrier with Endpoint.SetCarrier; the administrative
// state with Endpoint.SetUp. They are free when off, and replay exactly for the
// same Options.Seed, order of frames, and clock.
//
// # The far side
//
// Switch is a learning switch of N ports, for tests that need to see what a
// switch sees.
//
// # Limits
//
// A frame with GSO is one frame to the impairments: it is lost, delayed or
// corrupted as a whole. A wire does not segment: a frame longer than the MTU
// whose packet asks for no GSO is dropped and counted. The goroutine, timer and
// queued frames of an end live until that end is closed, so close both.
package wire

import (
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/link"
)

// cable is what both ends share.
type cable struct {
	clock tcpip.Clock
	gso   bool // both ends allow it

	// mu guards the following, and orders changes of the ends' states.
	mu      sync.Mutex
	carrier bool
	speed   uint32
	duplex  link.Duplex
	ends    [2]*Endpoint
}

// New makes a wire and returns its two ends, up and with carrier. It returns an
// error that names every option that is out of range.
//
// Close both ends when done. An end needs no Close as long as no frame was sent
// to it.
func New(opts Options) (a, b *Endpoint, err error) {
	if err := opts.validate(); err != nil {
		return nil, nil, err
	}
	a, b = newWire(opts, false)
	return a, b, nil
}

// newWire is New with options that are valid. With inlineB, frames to end b are
// delivered by those who write them.
func newWire(opts Options, inlineB bool) (a, b *Endpoint) {
	opts.setDefaults()
	c := &cable{
		clock:   opts.Clock,
		gso:     !opts.DisableGSO && !opts.A.DisableGSO && !opts.B.DisableGSO,
		carrier: true,
		speed:   opts.Speed,
		duplex:  opts.Duplex,
	}
	a = newEndpoint(c, &opts, &opts.A)
	b = newEndpoint(c, &opts, &opts.B)
	a.in.init(a, &opts, 0, opts.Synchronous)
	b.in.init(b, &opts, 1, opts.Synchronous || inlineB)
	a.peer, b.peer = b, a
	c.ends = [2]*Endpoint{a, b}
	a.state.word.Store(c.stateWord(a))
	b.state.word.Store(c.stateWord(b))
	for _, e := range []struct {
		end  *Endpoint
		opts *EndOptions
	}{{a, &opts.A}, {b, &opts.B}} {
		if im := e.opts.Impairments; im != (Impairments{}) {
			e.end.changeImpairments(func(now *Impairments) { *now = im })
		}
	}
	return a, b
}
