package lacp

import "time"

// The limit of PDUs: no more than three in any Fast_Periodic_Time (IEEE
// 802.1AX, 6.4.16). The window is a little longer, since a driver may be late
// with the first of them and early with the fourth.
const (
	limitCount  = 3
	limitWindow = time.Second + 20*time.Millisecond
)

// limiter lets three things happen in any window.
type limiter struct {
	last [limitCount]time.Duration // instants, the oldest at next
	next uint8
	full bool // last has three
}

// from is the instant from which the next one may happen.
func (l *limiter) from() time.Duration {
	if !l.full {
		return 0
	}
	return l.last[l.next] + limitWindow
}

func (l *limiter) allow(now time.Duration) bool { return now >= l.from() || !l.full }

func (l *limiter) note(now time.Duration) {
	l.last[l.next] = now
	l.next++
	if l.next == limitCount {
		l.next, l.full = 0, true
	}
}
