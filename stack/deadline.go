package stack

import (
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// deadline is a moment after which calls time out. Calls wait on expired's
// channel; moving the deadline moves it for calls that wait already.
type deadline struct {
	clock tcpip.Clock

	mu sync.Mutex
	// The following are guarded by mu.
	timer tcpip.Timer
	// setting counts the calls of set, so that a timer that fires late sees
	// that it is no longer the one.
	setting uint64
	// passed is closed once the deadline has passed.
	passed chan struct{}

	// isPassed is whether passed is closed: for those who only ask.
	isPassed atomic.Bool
}

func (d *deadline) init(clock tcpip.Clock) {
	d.clock = clock
	d.passed = make(chan struct{})
}

// hasPassed reports whether the deadline has passed.
func (d *deadline) hasPassed() bool { return d.isPassed.Load() }

// expired returns a channel that is closed when the deadline passes.
func (d *deadline) expired() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

// set moves the deadline; the zero time means never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setting++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if t.IsZero() {
		d.reopen()
		return
	}
	wait := t.Sub(d.clock.Now())
	if wait <= 0 {
		d.pass()
		return
	}
	d.reopen()
	setting := d.setting
	d.timer = d.clock.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.setting == setting {
			d.pass()
		}
	})
}

// pass is called with mu held.
func (d *deadline) pass() {
	if !d.isPassed.Swap(true) {
		close(d.passed)
	}
}

// reopen is called with mu held.
func (d *deadline) reopen() {
	if d.isPassed.Swap(false) {
		d.passed = make(chan struct{})
	}
}
