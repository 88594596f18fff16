package stack

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// What anybody on the link can cause is logged at most so often.
const (
	limitLines = 20
	limitTime  = 10 * time.Second
)

// lineLimit counts lines of the log of one cause. It is not safe for several
// goroutines.
type lineLimit struct {
	began        tcpip.MonotonicTime
	said, unsaid int
}

// allow reports whether a line may be logged, and how many were not since the last
// one.
func (l *lineLimit) allow(now tcpip.MonotonicTime) (unsaid int, ok bool) {
	if l.said == 0 || now.Sub(l.began) >= limitTime {
		l.began, l.said = now, 0
	}
	if l.said == limitLines {
		l.unsaid++
		return 0, false
	}
	l.said++
	unsaid, l.unsaid = l.unsaid, 0
	return unsaid, true
}
