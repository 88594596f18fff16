package reorder

import (
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// ticker counts half hold times while frames wait. A frame that remembers the
// count when it came has waited for more than a half when it has grown by two,
// and for at most a whole.
type ticker struct {
	period time.Duration
	tick   func(now uint32) (more bool)
	now    atomic.Uint32

	running atomic.Bool
	timer   tcpip.Timer // set by whoever turned running on
}

func (t *ticker) init(clock tcpip.Clock, hold time.Duration, tick func(uint32) bool) {
	t.period, t.tick = max(hold/2, 1), tick
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
