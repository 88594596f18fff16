package bonding

import "time"

// arpTiming is what the ARP monitor's decisions are made by, besides the slave.
type arpTiming struct {
	now       instant
	interval  time.Duration
	missedMax uint32
}

func (t arpTiming) at(now instant) arpTiming {
	t.now = now
	return t
}

// fresh is Linux's "within k intervals": with half an interval of slack, and
// from one interval before.
func (t arpTiming) fresh(at instant, k uint32) bool {
	half := t.interval / 2
	limit := longest / 2
	if t.interval < limit/time.Duration(k+1) {
		limit = time.Duration(k)*t.interval + half
	}
	age := time.Duration(t.now - at)
	return age >= -t.interval && age <= limit
}

// arpSight is what the ARP monitor judges a slave by.
type arpSight struct {
	link       linkState // as the monitor took it for last
	backup     bool
	barred     bool    // disabled, or a write just found the link gone: no evidence brings it back
	lastRx     instant // of the last evidence; where all targets count, of the target that was heard least lately
	lastTx     instant // of the last probe
	lastLinkUp instant // since when it is in use
}

// judgeBalanced is the variant of balance-rr, balance-xor and broadcast, in which
// every slave is probed in every interval.
func (t arpTiming) judgeBalanced(s arpSight) linkState {
	switch {
	case s.link != linkUp:
		if !s.barred && t.fresh(s.lastTx, 1) && t.fresh(s.lastRx, 1) {
			return linkUp
		}
	case !t.fresh(s.lastTx, t.missedMax) || !t.fresh(s.lastRx, t.missedMax):
		return linkDown
	}
	return s.link
}

// judgeBackup is the variant of active-backup. searching is whether there is no
// active slave, and one after the other is tried.
func (t arpTiming) judgeBackup(s arpSight, searching bool) linkState {
	switch {
	case s.link != linkUp && !s.barred && t.fresh(s.lastRx, 1):
		return linkUp
	case s.link == linkBack: // it was tried, and nothing was heard
		return linkFail
	case s.link != linkUp || t.fresh(s.lastLinkUp, 2):
		return s.link
	case s.backup && !searching && !t.fresh(s.lastRx, t.missedMax+1):
		return linkDown
	case !s.backup && (!t.fresh(s.lastTx, t.missedMax) || !t.fresh(s.lastRx, t.missedMax)):
		return linkDown
	}
	return s.link
}

// nextCandidate is which of n slaves is tried after the one of index last (-1:
// none was, and the search begins after the first): the next that is usable, in
// order, wrapping; -1 where none is.
func nextCandidate(n, last int, usable func(int) bool) int {
	last = max(last, 0)
	for i := 1; i <= n; i++ {
		if next := (last + i) % n; usable(next) {
			return next
		}
	}
	return -1
}
