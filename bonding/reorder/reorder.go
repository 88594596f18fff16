// Package reorder restores the order of TCP streams whose frames come by
// several links: the receive side of a bond in balance-rr. Two links that are
// drained by two goroutines deliver a stream out of order, and TCP then
// recovers from losses that did not happen.
//
// The rule is that of RFC 1990, section 4, for multilink: each link is first-in
// first-out, so a gap in the sequence is a delay only until every link in use
// for the flow has delivered something later; then the missing piece is lost,
// and what waits behind it goes on at once, so that TCP learns of the loss when
// it always would. A piece that is before the place where the stream stands is
// a retransmission, or came too late, and passes at once.
//
//	s := reorder.New(reorder.Options{Clock: clock, Deliver: up})
//	s.Receive(link, pkt) // by each link's receiving goroutine
//	s.Gone(mask)         // links that were released, or are down
//	s.Close()
//
// # Flows
//
// A flow is one direction of a TCP connection over IPv4 or IPv6, with its VLAN
// tags. It begins with the first frame seen, at that frame's place. The table of flows is bounded; the flow that was used longest ago makes room,
// and what it holds is delivered.
//
// # Acknowledgements
//
// Frames without a part of the sequence (pure acknowledgements) are never held:
// nothing tells whether one is missing. One that is older than one that another
// link has delivered says nothing new and is dropped, and counted: netstack takes
// the window from whatever comes last, and would overrun its peer, or stop.
//
// # Links in use
//
// A link is in use for a flow once it has delivered a piece of it; a new flow
// takes all links that deliver anything to the stage for such. A link
// that is silent while others go on (it is idle, or its sender no longer uses
// it) holds up a gap until the timer ends that, once: it is then out of use
// until it delivers a new piece of the flow. Where the links' delays differ by
// more than that, so that a link's pieces always come too late, each
// time that the timer had to end a gap doubles the number of late pieces that
// bring the link back: the flow goes on without order rather than in jerks.
//
// # Bounds
//
// A flow does not wait for a link that has been quiet for Options.Hold while others
// were not. Where all are quiet, or while the link delivers frames, of this flow
// or of others, it may only be late, and frames wait for longer, but four hold
// times at most. A timer runs at four times the rate of Hold while something
// waits, so the clock is read by no frame. Waiting frames take at most
// Options.Bytes of memory; a frame that there is no room for ends its flow's
// wait.
//
// # Locks
//
// Two links' frames of one flow have to be compared with each other, so their
// goroutines have to meet: each Receive of a TCP frame takes the lock of one of
// the table's sets (four flows) for some ten nanoseconds. No lock is
// held over Deliver, which may write to the bond and come back here. Order
// holds through delivery all the same, since one goroutine at a time delivers a
// flow: others leave it their frames and go.
//
// # Limits
//
// Links are told apart up to the sixteenth. A link must itself keep a flow's
// order: where it does not, gaps are taken for losses, as without the stage.
// IP fragments and IPv6 extension headers are not looked into. A flow that was
// thrown out of the table with frames held may see these overtaken.
package reorder

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// MaxLinks is how many links are told apart.
const MaxLinks = 16

// The defaults of Options, and the limits of Flows. DefaultHold is more than
// two of the time slices of 10 ms that Go gives a goroutine: so long may a link's
// goroutine wait on a machine whose processors are busy. With 2 and with 10 ms,
// four fast streams on two processors saw false losses, with 25 ms none. True
// losses seldom wait for it.
const (
	DefaultHold  = 25 * time.Millisecond
	DefaultBytes = 32 << 20
	DefaultFlows = 2048
	MaxFlows     = 1 << 16
)

// Options say how a Stage is made.
type Options struct {
	// Deliver takes a frame whose turn has come. It borrows the packet. It is
	// called with no lock held, by Receive, Gone, Close and the timer.
	Deliver func(*stack.PacketBuffer)
	// Clock times Hold. Nil is the real clock.
	Clock tcpip.Clock
	// Hold is how long a flow waits for a link that delivers nothing while others
	// do. A frame waits four times as long at most. 0 means 25 ms.
	Hold time.Duration
	// Bytes is how much memory waiting frames may take. 0 means 32 MiB.
	Bytes int
	// Flows is how many flows are known at once. 0 means 2048; other values
	// are brought to 4 to 65536, and up to a power of two. Each takes about
	// 250 bytes, and a connection two.
	Flows int
	// Counters count what the stage does. Nil has it count for itself.
	Counters *Counters
	// Seed keeps strangers from choosing flows that share a set of the table.
	// Zero means a random one.
	Seed uint64
}

// Stage restores the order of the streams of one bond. All methods may be
// called from any goroutine; but each link's frames of one flow must come from
// one goroutine at a time, or their order is lost before it gets here.
type Stage struct {
	deliver  func(*stack.PacketBuffer)
	counters *Counters
	maxBytes int64
	table    table

	seen   atomic.Uint32           // links that have delivered anything
	active [MaxLinks]atomic.Uint32 // the tick at which each did so last
	closed atomic.Bool
	ticker ticker

	_     [64]byte // what follows is written by every goroutine
	bytes atomic.Int64
}

// New makes a Stage. It has no goroutine.
func New(o Options) *Stage {
	if o.Clock == nil {
		o.Clock = tcpip.NewStdClock()
	}
	if o.Hold <= 0 {
		o.Hold = DefaultHold
	}
	if o.Bytes <= 0 {
		o.Bytes = DefaultBytes
	}
	if o.Flows <= 0 {
		o.Flows = DefaultFlows
	}
	if o.Counters == nil {
		o.Counters = new(Counters)
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	s := &Stage{deliver: o.Deliver, counters: o.Counters, maxBytes: int64(o.Bytes)}
	s.table.init(min(o.Flows, MaxFlows), o.Seed)
	s.ticker.init(o.Clock, o.Hold, s.expire)
	return s
}

// Receive takes a frame that a link delivered, whose link header is consumed and
// whose checksums are good, and delivers it and those that waited for it, or
// keeps it for later. It borrows the packet. link counts from zero.
func (s *Stage) Receive(link int, pkt *stack.PacketBuffer) {
	var seg segment
	if uint(link) >= MaxLinks || s.closed.Load() {
		s.deliver(pkt)
		return
	}
	s.note(link)
	if !seg.parse(pkt) {
		s.deliver(pkt)
		return
	}
	set := s.table.set(&seg.key)
	set.mu.Lock()
	f := set.flowLocked(s, &seg)
	if f == nil {
		set.mu.Unlock()
		s.deliver(pkt)
		return
	}
	s.takeLocked(set, f, link, &seg, pkt)
	set.mu.Unlock()
}

// note takes note of a link having delivered a frame. It seldom writes: ticks are
// few.
func (s *Stage) note(link int) {
	if bit := uint32(1) << link; s.seen.Load()&bit == 0 {
		s.seen.Or(bit)
	}
	if now := s.ticker.now.Load(); s.active[link].Load() != now {
		s.active[link].Store(now)
	}
}

// takeLocked finds out whether a frame goes on now, and has it do so.
func (s *Stage) takeLocked(set *set, f *flow, link int, seg *segment, pkt *stack.PacketBuffer) {
	switch {
	case seg.reset:
		f.giveUp(s.counters)
		s.passLocked(set, f, pkt)
	case seg.pure:
		if f.acks.old(link, seg) {
			s.counters.staleAcks.Add(1)
			return
		}
		s.passLocked(set, f, pkt)
	case f.place(link, seg, uint16(s.seen.Load()), s.counters):
		s.passLocked(set, f, pkt)
	case s.holdLocked(f, seg, pkt):
		set.waiting.Store(true)
		s.ticker.start()
		s.settleLocked(set, f, lost)
	default:
		f.overflow(seg, s.counters)
		s.passLocked(set, f, pkt)
	}
}

// holdLocked keeps a frame that is ahead of its flow's place, if there is room.
func (s *Stage) holdLocked(f *flow, seg *segment, pkt *stack.PacketBuffer) bool {
	size := int64(pkt.MemSize())
	if f.held.n >= maxHeld || s.bytes.Load()+size > s.maxBytes {
		return false
	}
	n := s.keep(pkt, size)
	n.seq, n.end, n.tick = seg.seq, seg.end, s.ticker.now.Load()
	f.held.insert(n)
	s.counters.held.Add(1)
	return true
}
