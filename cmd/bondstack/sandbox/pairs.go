package sandbox

import (
	"slices"
	"syscall"
	"time"
)

// pairWithin is how far apart two processes may tell of a signal that both got at
// once. It is also how late a signal is handed on.
const pairWithin = 200 * time.Millisecond

// idle is how long to wait where nothing is due.
const idle = time.Hour

// pairs tells a signal to a process group, which two of its processes get, from
// one to the first of them alone, of which it is told.
type pairs struct{ waiting []half }

// half is what one of the two processes got, where the other has not, or not yet.
type half struct {
	signal syscall.Signal
	told   bool // got by the first process
	at     time.Time
}

// got notes a signal that this process got.
func (p *pairs) got(s syscall.Signal, now time.Time) { p.add(half{s, false, now}) }

// told notes one that the first process got.
func (p *pairs) told(s syscall.Signal, now time.Time) { p.add(half{s, true, now}) }

// add adds a half, or takes away its other half.
func (p *pairs) add(h half) {
	other := func(o half) bool {
		return o.signal == h.signal && o.told != h.told && h.at.Sub(o.at) <= pairWithin
	}
	if i := slices.IndexFunc(p.waiting, other); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	p.waiting = append(p.waiting, h)
}

// due returns the signals that the first process alone got, as is known now, and
// how long it is until more may be known.
func (p *pairs) due(now time.Time) (alone []syscall.Signal, next time.Duration) {
	for len(p.waiting) > 0 {
		h := p.waiting[0] // the oldest
		if left := pairWithin - now.Sub(h.at); left > 0 {
			return alone, left
		}
		if h.told {
			alone = append(alone, h.signal)
		}
		p.waiting = p.waiting[1:]
	}
	return alone, idle
}
