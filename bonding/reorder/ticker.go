package reorder

import (
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// ticksPerHold is how finely the hold time is counted. What remembers the count
// of a moment knows when it has grown by this that the hold time is over, or at
// most a tick from it.
const ticksPerHold = 4

// ticker counts fractions of the hold time while frames wait.
type ticker struct {
	period time.Duration
	tick   func(now uint32) (more bool)
	now    atomic.Uint32

	running atomic.Bool
	timer   tcpip.Timer // set by whoever turned running on
}

func (t *ticker) init(clock tcpip.Clock, hold time.Duration, tick func(uint32) bool) {
	t.period, t.tick = max(hold/ticksPerHold, 1), tick
	t.timer = clock.AfterFunc(time.Hour, t.fire)
	t.timer.Stop()
}

// start has the ticker run until there is nothing more to wait for.
func (t *ticker) start() {
	if t.running.Load() || !t.running.CompareAndSwap(false, true) {
		return
	}
	t.timer.Reset(t.period)
}

func (t *ticker) fire() {
	if t.tick(t.now.Add(1)) {
		t.timer.Reset(t.period)
		return
	}
	t.running.Store(false)
	// What was held just now found the ticker running.
	if t.tick(t.now.Load()) {
		t.start()
	}
}
