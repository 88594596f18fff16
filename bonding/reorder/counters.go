package reorder

import "sync/atomic"

// reason is why a frame that was held went on.
type reason uint8

const (
	filled  reason = iota // what it waited for came
	lost                  // all links have delivered something later
	expired               // the time was up
	gone                  // a link was released, or is down
	noRoom                // there was no room for more
	evicted               // the flow ended, began anew, or made room for another
	numReasons
)

// Counters count what a Stage does, for as long as their owner likes: several
// Stages may have them, one after the other. The zero value is ready.
type Counters struct {
	held     atomic.Uint64
	released [numReasons]atomic.Uint64
	gaps     atomic.Uint64
	late     atomic.Uint64
	overflow atomic.Uint64
	unknown  atomic.Uint64

	staleAcks atomic.Uint64
}

// Counts are the values of Counters at one moment. All count frames, but for
// Gaps. Held is the sum of the six that follow it and of what waits now.
type Counts struct {
	// Held were put aside until what was sent before them came.
	Held uint64 `json:"held"`
	// Filled went on since it came.
	Filled uint64 `json:"filled"`
	// Lost went on since all links had delivered something later.
	Lost uint64 `json:"lost"`
	// Expired went on since their time was up.
	Expired uint64 `json:"expired"`
	// LinkGone went on since a link was released, or is down.
	LinkGone uint64 `json:"link_gone"`
	// Flushed went on since there was no room for more.
	Flushed uint64 `json:"flushed"`
	// Evicted went on since their flow ended, began anew, or made room for
	// another.
	Evicted uint64 `json:"evicted"`
	// Gaps counts the pieces of streams that were taken for lost.
	Gaps uint64 `json:"gaps"`
	// Late came behind their flow's place: they were sent again, or were given
	// up too early. They were passed on at once.
	Late uint64 `json:"late"`
	// Overflow were passed on out of order, since there was no room.
	Overflow uint64 `json:"overflow"`
	// Unknown were passed on without a place in the table, since all flows that
	// could have made room were being delivered.
	Unknown uint64 `json:"unknown"`
	// StaleAcks are pure acknowledgements that were dropped, since a newer one
	// had come by another link.
	StaleAcks uint64 `json:"stale_acks"`
}

// Counts returns the present values.
func (c *Counters) Counts() Counts {
	return Counts{
		Held:     c.held.Load(),
		Filled:   c.released[filled].Load(),
		Lost:     c.released[lost].Load(),
		Expired:  c.released[expired].Load(),
		LinkGone: c.released[gone].Load(),
		Flushed:  c.released[noRoom].Load(),
		Evicted:  c.released[evicted].Load(),
		Gaps:     c.gaps.Load(),
		Late:     c.late.Load(),
		Overflow: c.overflow.Load(),
		Unknown:  c.unknown.Load(),

		StaleAcks: c.staleAcks.Load(),
	}
}
