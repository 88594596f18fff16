package reorder

const (
	// ackReach is how far an acknowledgement may be behind another and still be
	// taken for an older one of the same stream.
	ackReach = 64 << 20
	// maxStale is how many acknowledgements in a row may be taken for older
	// ones, before the one that they are behind is taken to be wrong: one made
	// up by a stranger must not end a connection.
	maxStale = 64
)

// acks is what is known of the acknowledgements of a flow.
type acks struct {
	known  bool
	link   uint8 // that delivered the newest
	stale  uint8 // how many in a row were older
	window uint16
	ack    uint32
}

// old reports whether a pure acknowledgement is older than one that another link
// has delivered: it has a lesser number, or offers a lesser window with the same
// one, which a receiver does not take back (RFC 9293, section 3.8.6). It says
// nothing new. But netstack would believe it what it says of the window: it
// would send more than the receiver can take, or stop at a window of zero that
// is long open again.
func (a *acks) old(link int, seg *segment) bool {
	behind := precedes(seg.ack, a.ack) || seg.ack == a.ack && seg.window < a.window
	if behind && a.known && uint8(link) != a.link && a.ack-seg.ack <= ackReach && a.stale < maxStale {
		a.stale++
		return true
	}
	*a = acks{known: true, link: uint8(link), window: seg.window, ack: seg.ack}
	return false
}
