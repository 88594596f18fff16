package bonding

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// The bounds of captures.
const (
	// MaxCaptures is how many may run on a bond at once.
	MaxCaptures = 4
	// MaxSnapLen is the longest frame that can be kept: a GSO packet of 64 KiB with
	// its Ethernet header and tags.
	MaxSnapLen = gsoMaxSize + 128
	// captureBytes is the memory of a capture for frames that wait to be read.
	captureBytes = 16 << 20
	// maxCaptureFrames bounds their number, whatever their size.
	maxCaptureFrames = 4096
)

// CaptureOptions say what is captured.
type CaptureOptions struct {
	// Slaves names those at which frames are captured, as they are sent and
	// received by their links, LACPDUs and probes among them. Empty: at all, those
	// that join later too.
	Slaves []string
	// Bond captures between the bond and its user instead: what the stack sends and
	// is given.
	Bond bool
	// SnapLen is how many bytes of a frame are kept, 1 to MaxSnapLen. Default
	// MaxSnapLen, and then 255 frames can wait to be read; with less, up to 4096.
	SnapLen int
}

// Captured is a frame of a capture.
type Captured struct {
	// Time is when it was sent or received.
	Time time.Time
	// Slave is where; empty for the bond.
	Slave string
	// Out is whether it was sent.
	Out bool
	// Length is the frame's, from its destination MAC, and Data what was kept of
	// it. It is good until the next call of Next.
	Length int
	Data   []byte
}

// Capture is a capture that runs. The data path copies each frame into room that was
// set aside at the beginning, and drops it from the capture, counted, where the reader
// is behind: it never waits.
type Capture struct {
	bond    *Bond
	options CaptureOptions
	ring    *captureRing
	slaves  map[*slave]string // the reader's
	closed  atomic.Bool
}

// Capture begins to capture. It returns an error for a slave that is not there, for
// options out of range, and beyond MaxCaptures.
func (b *Bond) Capture(o CaptureOptions) (*Capture, error) {
	if o.SnapLen == 0 {
		o.SnapLen = MaxSnapLen
	}
	switch {
	case o.SnapLen < 1 || o.SnapLen > MaxSnapLen:
		return nil, fmt.Errorf("capture on %s: %w: snaplen %d: allowed are 1 to %d", b.Name(), ErrInvalid, o.SnapLen, MaxSnapLen)
	case o.Bond && len(o.Slaves) > 0:
		return nil, fmt.Errorf("capture on %s: %w: the bond itself and slaves are two captures", b.Name(), ErrInvalid)
	}
	c := &Capture{bond: b, options: o, slaves: map[*slave]string{}}
	var err error
	b.control(func(instant) { err = b.beginCapture(c) })
	if err != nil {
		return nil, err
	}
	return c, nil
}

// beginCapture is Capture with the lock held.
func (b *Bond) beginCapture(c *Capture) error {
	switch {
	case b.closed:
		return ErrClosed
	case len(b.captures) == MaxCaptures:
		return fmt.Errorf("capture on %s: %w: %d captures run, which is the most", b.Name(), ErrPrecondition, MaxCaptures)
	}
	for _, name := range c.options.Slaves {
		if !slices.ContainsFunc(b.slaves, func(s *slave) bool { return s.name == name }) {
			return &SlaveError{"capture", name, "the slaves are " + (&change{slaves: b.slaves}).slaveNames(), ErrNoSlave}
		}
	}
	c.ring = newCaptureRing(c.options.SnapLen)
	b.captures = append(slices.Clone(b.captures), c)
	b.tapSlaves()
	return nil
}

// Close ends the capture. Next then returns false. It may be called at any time, and
// again.
func (c *Capture) Close() {
	if !c.end() {
		return
	}
	b := c.bond
	b.control(func(instant) {
		b.captures = slices.DeleteFunc(slices.Clone(b.captures), func(other *Capture) bool { return other == c })
		b.tapSlaves()
	})
}

// end has Next return false. It reports whether it was the first to do so.
func (c *Capture) end() bool {
	if c.closed.Swap(true) {
		return false
	}
	c.ring.rouse()
	return true
}

// tapSlaves tells the slaves who captures at them, and has the snapshot tell who
// captures at the bond.
func (b *Bond) tapSlaves() {
	b.dirty = true
	for _, s := range b.slaves {
		b.tap(s)
	}
}

// tap tells a slave who captures at it.
func (b *Bond) tap(s *slave) {
	var at []*Capture
	for _, c := range b.captures {
		if !c.options.Bond && (len(c.options.Slaves) == 0 || slices.Contains(c.options.Slaves, s.name)) {
			at = append(at, c)
		}
	}
	if at == nil && !s.silenced {
		s.taps.Store(nil)
		return
	}
	s.taps.Store(&taps{captures: at, silent: s.silenced})
}

// taps is who else has what a slave sends and receives. It does not change.
type taps struct {
	captures []*Capture
	// silent has all frames discarded: see Cut.
	silent bool
}

// take records packets, or discards them, and then nobody else has them.
func (t *taps) take(at *slave, out bool, pkts ...*stack.PacketBuffer) (discarded bool) {
	if t.silent {
		reason := dropRxSilenced
		if out {
			reason = dropTxSilenced
		}
		at.counters.drop(reason, len(pkts))
		return true
	}
	record(t.captures, at, out, pkts...)
	return false
}

// Dropped returns how many frames the capture had no room for.
func (c *Capture) Dropped() uint64 { return c.ring.dropped.Load() }

// Next returns the next frame. ok is false when the capture or the bond was closed, or
// the context has ended. Only one goroutine may call it.
func (c *Capture) Next(ctx context.Context) (frame Captured, ok bool) {
	for !c.closed.Load() {
		if r := c.ring.next(); r != nil {
			return Captured{Time: r.at, Slave: c.nameOf(r.slave), Out: r.out, Length: r.length, Data: r.data}, true
		}
		if !c.ring.await(ctx) {
			return Captured{}, false
		}
	}
	return Captured{}, false
}

// nameOf returns the name that a slave has when its first frame is read.
func (c *Capture) nameOf(s *slave) string {
	if s == nil {
		return ""
	}
	name, known := c.slaves[s]
	if !known {
		c.bond.mu.Lock()
		name = s.name
		c.bond.mu.Unlock()
		if len(c.slaves) >= 1024 { // of slaves that come and go
			clear(c.slaves)
		}
		c.slaves[s] = name
	}
	return name
}

// record copies a list of packets to the captures.
func record(taps []*Capture, at *slave, out bool, pkts ...*stack.PacketBuffer) {
	now := time.Now()
	for _, c := range taps {
		for _, pkt := range pkts {
			c.ring.put(now, at, out, pkt)
		}
	}
}

// tapped has the snapshot record what passes between the bond and its user.
func (s *snapshot) tapped(captures []*Capture) {
	var taps []*Capture
	for _, c := range captures {
		if c.options.Bond {
			taps = append(taps, c)
		}
	}
	if taps == nil {
		return
	}
	write := s.write
	s.write = func(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
		record(taps, nil, true, pkts.AsSlice()...)
		return write(s, pkts, stripe)
	}
	if s.dispatcher != nil {
		s.dispatcher, s.list = &tappedDispatcher{s.dispatcher, taps}, nil
	}
}

// tappedDispatcher records what the bond's user is given.
type tappedDispatcher struct {
	stack.NetworkDispatcher
	taps []*Capture
}

var _ stack.NetworkDispatcher = (*tappedDispatcher)(nil)

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (d *tappedDispatcher) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	record(d.taps, nil, false, pkt)
	d.NetworkDispatcher.DeliverNetworkPacket(protocol, pkt)
}
