package linktest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
)

var (
	_ stack.LinkEndpoint  = (*Recorder)(nil)
	_ stack.GSOEndpoint   = (*Recorder)(nil)
	_ link.StateEndpoint  = (*Recorder)(nil)
	_ link.MTUEndpoint    = (*Recorder)(nil)
	_ link.FilterEndpoint = (*Recorder)(nil)
)

// RecorderOptions says what a Recorder is like. The zero value is MTU 1,500 of 68
// to 65,521, no GSO, 10 Gbit/s full duplex, up with carrier.
type RecorderOptions struct {
	// MTU is in bytes. Zero is 1,500.
	MTU uint32
	// MinMTU and MaxMTU are the range that SetMTU accepts. Zero is 68 and
	// 65,521.
	MinMTU, MaxMTU uint32
	// Address is the MAC address. Empty is DefaultAddress.
	Address tcpip.LinkAddress
	// GSO has the link offer host GSO of 64 KiB.
	GSO bool
	// Capabilities are those beside CapabilityResolutionRequired.
	Capabilities stack.LinkEndpointCapabilities
	// State is the first state. The zero value is up with carrier, 10,000
	// Mbit/s, full duplex.
	State link.State
}

// Written is a frame that was written to a Recorder.
type Written struct {
	// Frame is the whole frame, a copy.
	Frame []byte
	// GSO is what the packet asked of the link.
	GSO stack.GSO
	// Call is the number of the WritePackets call that wrote it, from 1.
	Call int
}

// Calls are the calls that a Recorder has seen.
type Calls struct {
	// Attach and Detach count Attach with a dispatcher and with nil.
	Attach, Detach int
	// Wait and Close count those calls.
	Wait, Close int
	// Write counts WritePackets, those that failed included.
	Write int
	// MTUs and Addresses are the arguments of SetMTU and SetLinkAddress in
	// order, those that were out of range included.
	MTUs      []uint32
	Addresses []tcpip.LinkAddress
	// Promiscuous are the arguments of SetPromiscuous in order.
	Promiscuous []bool
	// Filter is how often each address is added at the moment.
	Filter map[tcpip.LinkAddress]int
}

// WriteStep says what a WritePackets call does.
type WriteStep struct {
	// Take is how many packets the call takes at most.
	Take int
	// Err is what the call returns when it was given more than Take packets,
	// and also when Take is 0.
	Err tcpip.Error
}

// Recorder is a link that keeps what is written to it and does what a test tells
// it to.
type Recorder struct {
	base
	minMTU, maxMTU uint32

	// mu guards the following.
	mu      sync.Mutex
	changed sync.Cond // written or calls
	written []Written
	calls   Calls
	script  []WriteStep
	failing tcpip.Error
	onWrite func(stack.PacketBufferList)
	state   link.State
	// subscribers is replaced, never changed in place.
	subscribers []*func()
}

// NewRecorder returns a Recorder.
func NewRecorder(opts RecorderOptions) *Recorder {
	r := &Recorder{minMTU: opts.MinMTU, maxMTU: opts.MaxMTU, state: opts.State}
	r.init(opts.MTU, opts.Address, opts.Capabilities, opts.GSO)
	r.changed.L = &r.mu
	r.calls.Filter = make(map[tcpip.LinkAddress]int)
	if r.minMTU == 0 {
		r.minMTU = 68
	}
	if r.maxMTU == 0 {
		r.maxMTU = 65521
	}
	if r.state == (link.State{}) {
		r.state = link.State{Up: true, Carrier: true, Speed: 10000, Duplex: link.DuplexFull}
	}
	return r
}

// WritePackets implements stack.LinkEndpoint. It follows the script, if there is
// one, and else takes all packets.
func (r *Recorder) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	r.mu.Lock()
	hook := r.onWrite
	r.mu.Unlock()
	if hook != nil {
		hook(pkts)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Broadcast()
	r.calls.Write++
	list := pkts.AsSlice()
	take, err := r.nextLocked(len(list))
	for _, pkt := range list[:take] {
		v := pkt.ToView()
		r.written = append(r.written, Written{
			Frame: append([]byte{}, v.AsSlice()...),
			GSO:   pkt.GSOOptions,
			Call:  r.calls.Write,
		})
		v.Release()
	}
	return take, err
}

// nextLocked returns how many of n packets to take and what to return.
func (r *Recorder) nextLocked(n int) (take int, err tcpip.Error) {
	if r.failing != nil {
		return 0, r.failing
	}
	if len(r.script) == 0 {
		return n, nil
	}
	step := r.script[0]
	r.script = r.script[1:]
	if step.Take >= n && step.Take > 0 {
		return n, nil
	}
	return step.Take, step.Err
}

// Script appends what the next WritePackets calls do, one step a call. After the
// last step calls take everything again.
func (r *Recorder) Script(steps ...WriteStep) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = append(r.script, steps...)
}

// Fail has every WritePackets call return err and take nothing, until it is
// called with nil.
func (r *Recorder) Fail(err tcpip.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = err
}

// OnWrite has f called in every WritePackets call before anything is recorded,
// with no lock held. f may block, to hold a writer inside. Nil ends it.
func (r *Recorder) OnWrite(f func(stack.PacketBufferList)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onWrite = f
}

// Written returns the frames written so far, in order.
func (r *Recorder) Written() []Written {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.written)
}

// Drain returns the frames written so far and forgets them.
func (r *Recorder) Drain() []Written {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.written
	r.written = nil
	return w
}

// Await waits until n frames have been written, those drained not counted, and
// returns them all. It fails the test when they do not come.
func (r *Recorder) Await(tb testing.TB, n int) []Written {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	await(tb, &r.changed, func() bool { return len(r.written) >= n }, func() string {
		return fmt.Sprintf("%d frames to be written, saw %d", n, len(r.written))
	})
	return slices.Clone(r.written)
}

// Calls returns the calls seen so far.
func (r *Recorder) Calls() Calls {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls.clone()
}

// AwaitCalls waits until ok returns true for the calls seen, and fails the test,
// naming what, when it never does. ok must not call methods of the Recorder.
func (r *Recorder) AwaitCalls(tb testing.TB, what string, ok func(Calls) bool) {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	await(tb, &r.changed, func() bool { return ok(r.calls.clone()) }, func() string {
		return fmt.Sprintf("%s, saw calls %+v", what, r.calls)
	})
}
