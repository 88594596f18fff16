package dedup

// entry is what a table knows of one key. The counts of the slaves lie beside
// the entries, in the shard.
//
// All counts are of arrivals of this key, modulo 2^32. Those that matter lie
// between floor and delivered; a slave's count outside of that is out of date
// and stands for floor.
type entry struct {
	key uint64
	// epoch is the last one in which the key arrived.
	epoch uint32
	// delivered is how many arrivals were no copies: the greatest count.
	delivered uint32
	// previous is what delivered was at the start of epoch.
	previous uint32
	// floor is what delivered was at the start of the epoch before. What was
	// delivered up to then and has not come on a slave since is lost there.
	floor uint32

	// next is the next entry with the same chain, 0 at its end.
	next uint16
	// newer and older are the neighbours in the order of the last delivery.
	newer, older uint16
	// forgets counts the calls of Forget that it has caught up with, modulo 2^16.
	forgets uint16
}

// age brings the entry to an epoch. An epoch in the past, as seen by a
// goroutine that has not noticed the change yet, counts as the present one.
func (e *entry) age(epoch uint32) {
	passed := int32(epoch - e.epoch)
	switch {
	case passed <= 0:
		return
	case passed == 1:
		e.floor, e.previous = e.previous, e.delivered
	default:
		e.floor, e.previous = e.delivered, e.delivered
	}
	e.epoch = epoch
}

// arrive counts one arrival on a slave whose count is *count, and reports
// whether it is a copy.
func (e *entry) arrive(count *uint32) bool {
	window := e.delivered - e.floor
	had := *count - e.floor
	if had > window {
		had = 0
	}
	had++
	*count = e.floor + had
	if had <= window {
		return true
	}
	e.delivered = *count
	return false
}
