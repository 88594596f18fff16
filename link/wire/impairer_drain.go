package wire

import (
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// drain sends on the frames that are due and has the timer set for the next. If
// another goroutine is at it, that one does it all.
func (im *impairer) drain() {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.draining {
		return
	}
	im.draining = true
	for {
		var batch [burstSize]*stack.PacketBuffer
		n := im.popDueLocked(batch[:])
		if n == 0 {
			break
		}
		im.mu.Unlock()
		// The writer was told that these were taken. If the receiver does not
		// keep up, they are lost here.
		taken := im.dir.queue.push(batch[:n])
		im.dir.to.stats.rxQueueFull.Add(uint64(n - taken))
		im.mu.Lock()
	}
	im.draining = false
	im.idle.Broadcast()
	im.setTimerLocked()
}

func (im *impairer) popDueLocked(batch []*stack.PacketBuffer) int {
	if len(im.held) == 0 {
		return 0
	}
	now := im.clock.NowMonotonic()
	n := 0
	for n < len(batch) && len(im.held) > 0 && !im.held[0].due.After(now) {
		batch[n] = im.held.pop()
		im.bytes -= batch[n].Size()
		n++
	}
	return n
}

// setTimerLocked has drain called when the next frame is due.
func (im *impairer) setTimerLocked() {
	if len(im.held) == 0 || im.closed {
		return
	}
	wait := im.held[0].due.Sub(im.clock.NowMonotonic())
	if im.timer == nil {
		im.timer = im.clock.AfterFunc(wait, im.drain)
		return
	}
	im.timer.Stop()
	im.timer.Reset(wait)
}

// close drops what is held, waits until nobody is in drain (unless that may be
// the caller, on a synchronous wire), and returns how many frames it dropped.
func (im *impairer) close() int {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.closed = true
	if im.timer != nil {
		im.timer.Stop()
	}
	n := len(im.held)
	for _, h := range im.held {
		h.frame.DecRef()
	}
	im.held, im.bytes = nil, 0
	for im.draining && !im.dir.queue.inline {
		im.idle.Wait()
	}
	return n
}
