package iperf3

import "time"

// pacerTick is the shortest time that a sender sleeps: what is due meanwhile
// follows at once.
const pacerTick = time.Millisecond

// pacer spreads a stream's blocks over time.
type pacer struct {
	rate  uint64 // bits a second, 0: no limit
	burst int    // blocks that go at once
}

// wait returns for how long to wait before the block of that number (from 0), when
// so many bytes were sent in the time since the start.
func (p pacer) wait(blocks, sent uint64, since time.Duration) time.Duration {
	if p.rate == 0 || p.burst > 1 && blocks%uint64(p.burst) != 0 {
		return 0
	}
	due := time.Duration(float64(sent) * 8 / float64(p.rate) * float64(time.Second))
	if due <= since {
		return 0
	}
	return max(due-since, pacerTick)
}
