package sandbox

import (
	"slices"
	"syscall"
	"time"
)

// How far apart two processes may tell of a signal that both got at once, on a busy
// machine.
const (
	// gotWithin is how long this process waits for its own part, and so how late
	// a signal is handed on.
	gotWithin = 200 * time.Millisecond
	// toldWithin is how long it waits for the first process's part.
	toldWithin = 3 * time.Second
)

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
	other := func(o half) bool { return o.signal == h.signal && o.told != h.told }
	if i := slices.IndexFunc(p.waiting, other); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	p.waiting = append(p.waiting, h)
}

// due returns the signals that the first process alone got, as is known now, and
// how long it is until more may be known.
func (p *pairs) due(now time.Time) (alone []syscall.Signal, next time.Duration) {
	next = idle
	p.waiting = slices.DeleteFunc(p.waiting, func(h half) bool {
		within := toldWithin
		if h.told {
			within = gotWithin
		}
		left := within - now.Sub(h.at)
		switch {
		case left > 0:
			next = min(next, left)
		case h.told:
			alone = append(alone, h.signal)
		}
		return left <= 0
	})
	return alone, next
}
