package reorder

import "math/bits"

const (
	// maxAge is how many hold times a frame waits at most while the links go on:
	// with the default less than TCP's least retransmission timeout of 200 ms.
	maxAge = 4
	// maxHeld bounds the frames that a flow holds, and so the search for one's
	// place. It is the window of a fast connection in frames of 1,500 bytes.
	maxHeld = 4096
	// maxWindow is the greatest window that TCP can scale to (RFC 7323, section
	// 2.3). A piece further ahead is of another stream than the one known.
	maxWindow = 1 << 30
	// idleBytes is how far a link in use may be behind: more than a sender that
	// takes turns leaves to the others.
	idleBytes = 16 << 20
	// lostPlace is how many pieces in a row may be behind the flow's place
	// before that is taken to be wrong: more than TCP sends again after a
	// timeout.
	lostPlace = 8192
	// maxStrikes bounds how many late pieces bring a link back: 2 to this.
	maxStrikes = 10
)

// flow is one direction of a TCP connection. The lock of its set guards it.
type flow struct {
	key  key
	live bool   // key is of a flow
	used uint64 // when last, in the set's count

	acks acks
	// placed is whether the flow has a place: not before the first piece.
	placed bool
	// next is the place: the number of the first byte that is neither delivered
	// nor given up.
	next uint32
	// gap is the place at which the flow waits, and since the tick of its last
	// move there.
	gap, since uint32
	// behind counts the pieces in a row that were before the place.
	behind uint32

	// last is, of each link in known, where the furthest piece ended that it
	// delivered. inUse are the links that a gap waits for.
	last         [MaxLinks]uint32
	known, inUse uint16
	// strikes counts the gaps that the timer ended since one was last filled;
	// patience is how many late pieces a link needs to come back.
	strikes  uint8
	patience uint16

	held       list
	ready      list // to be delivered, in order
	delivering bool // a goroutine delivers, and takes what gets ready
}

// begin starts a flow anew at a place, with the links that it may come by. What
// was held is ready.
func (f *flow) begin(at uint32, links uint16, c *Counters) {
	f.releaseAll(evicted, c)
	f.placed = true
	f.next, f.behind = at, 0
	f.known, f.inUse = links, links
	f.strikes, f.patience = 0, 0
	for i := range f.last {
		f.last[i] = at
	}
}

// place takes note of a piece that came by a link. It reports whether the piece
// goes on now: because it continues the stream, whose place is moved, or because
// it is behind the place. What waited for it becomes ready only by settle, since
// it comes after. seen are the links that a new flow may come by.
func (f *flow) place(link int, seg *segment, seen uint16, c *Counters) bool {
	if seg.begins || !f.placed || seg.seq-f.next > maxWindow && precedes(f.next, seg.seq) {
		f.begin(seg.seq, seen, c)
	}
	if seg.begins {
		f.acks = acks{}
	}
	f.heard(link, seg.end)
	switch {
	case !precedes(f.next, seg.end):
		c.late.Add(1)
		if f.behind++; f.behind > lostPlace {
			f.begin(seg.end, seen, c)
		}
	case !precedes(f.next, seg.seq):
		f.next, f.behind = seg.end, 0
	default:
		f.behind = 0
		return false
	}
	return true
}

// heard takes note of a link having delivered a piece of the flow.
func (f *flow) heard(link int, end uint32) {
	bit := uint16(1) << link
	switch {
	case f.inUse&bit == 0:
		if !f.returns(link, end) {
			return
		}
		f.known |= bit
		f.inUse |= bit
		f.last[link] = end
	case precedes(f.last[link], end):
		f.last[link] = end
	}
}

// returns reports whether a piece shows that a link is in use again: one that is
// new on that link, since a piece sent again may come by any; and late ones only
// when there were enough, since a link that is later than the hold time would
// stop the flow each time. The number that is known of a link may be from long
// ago, and mean nothing.
func (f *flow) returns(link int, end uint32) bool {
	last := f.last[link]
	fresh := f.known&(1<<link) == 0 || f.next-last+idleBytes > 2*idleBytes
	if !fresh && !precedes(last, end) {
		return false
	}
	if late := !precedes(f.next, end); late && f.patience > 0 {
		f.patience--
		return false
	}
	return true
}

// lost reports whether the gap at the flow's place is a loss: every link in use
// has delivered a piece from behind the gap, and being first-in first-out would
// have delivered the missing one before.
func (f *flow) lost() bool {
	for m := f.inUse; m != 0; m &= m - 1 {
		link := bits.TrailingZeros16(m)
		if precedes(f.next, f.last[link]) {
			continue
		}
		if f.next-f.last[link] <= idleBytes {
			return false
		}
		f.inUse &^= 1 << link
	}
	return true
}

// settle makes ready what no longer waits, by reason of what has just come to
// pass or because the gap before it is a loss.
func (f *flow) settle(why reason, now uint32, c *Counters) {
	for n := f.held.first; n != nil; n = f.held.first {
		if precedes(f.next, n.seq) {
			if !f.lost() {
				break
			}
			if why == filled {
				why = lost
			}
		}
		f.release(why, c)
	}
	if f.held.first != nil && f.gap != f.next {
		f.gap, f.since = f.next, now
	}
}

// expire ends a wait in which the place has stood still for the hold time: those
// of the quiet links that it waits for are out of use, for settle to see. A frame
// that is too old goes on in any case, with those before it.
func (f *flow) expire(now uint32, quiet uint16, c *Counters) {
	if f.held.first == nil {
		return
	}
	old := f.held.last
	for old != nil && now-old.tick < maxAge*ticksPerHold {
		old = old.prev
	}
	switch {
	case old != nil:
		f.dismiss(f.lagging())
	case now-f.since >= ticksPerHold:
		f.dismiss(f.lagging() & quiet)
	}
	for old != nil {
		if f.held.first == old {
			old = nil
		}
		f.release(expired, c)
	}
}

// release makes the first held frame ready, and moves the place behind it.
func (f *flow) release(why reason, c *Counters) {
	n := f.held.pop()
	if precedes(f.next, n.seq) {
		c.gaps.Add(1)
	}
	if precedes(f.next, n.end) {
		f.next = n.end
	}
	if why == filled {
		f.strikes = 0
	}
	f.ready.push(n)
	c.released[why].Add(1)
}

func (f *flow) releaseAll(why reason, c *Counters) {
	for f.held.first != nil {
		f.release(why, c)
	}
}

// lagging returns the links in use that have delivered nothing from behind the
// gap at the flow's place.
func (f *flow) lagging() (links uint16) {
	for m := f.inUse; m != 0; m &= m - 1 {
		if link := bits.TrailingZeros16(m); !precedes(f.next, f.last[link]) {
			links |= 1 << link
		}
	}
	return links
}

// dismiss takes links out of use. The first time one comes back with its next new
// piece; after that it needs ever more of them.
func (f *flow) dismiss(links uint16) {
	if links == 0 {
		return
	}
	f.inUse &^= links
	f.patience = 1<<f.strikes - 1
	f.strikes = min(f.strikes+1, maxStrikes)
}

// overflow gives up the gap before a piece that there is no room for.
func (f *flow) overflow(seg *segment, c *Counters) {
	f.dismiss(f.lagging())
	f.releaseAll(noRoom, c)
	c.overflow.Add(1)
	if precedes(f.next, seg.end) {
		f.next = seg.end
	}
}

// giveUp ends a flow.
func (f *flow) giveUp(c *Counters) {
	f.releaseAll(evicted, c)
	f.live, f.placed, f.acks = false, false, acks{}
}

// gone takes links out of use for good.
func (f *flow) gone(links uint16) {
	f.inUse &^= links
	f.known &^= links
}
