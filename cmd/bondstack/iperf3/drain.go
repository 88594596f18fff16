package iperf3

import "time"

// How long a receiver waits for what was under way at the end of the test: in all,
// and since the last that came.
const (
	drainMost = time.Second
	drainIdle = 100 * time.Millisecond
	drainPoll = 2 * time.Millisecond
)

// drain waits until every stream that this end receives by is complete, or nothing
// comes any more. The time of a stream ends with the last that came.
func (t *test) drain(complete func(*stream) bool) {
	began := time.Since(t.began)
	for last := began; ; time.Sleep(drainPoll) {
		now := time.Since(t.began)
		all := true
		for _, s := range t.streams {
			if s.sender {
				continue
			}
			done := complete(s)
			if n := s.bytes.Load(); n != s.drained {
				s.drained, s.until, last = n, now, now
			}
			all = all && done
		}
		if all || now-last > drainIdle || now-began > drainMost {
			return
		}
	}
}

// allCame reports whether all has come that the sender has sent by its results.
func allCame(s *stream) bool { return s.bytes.Load()-s.omitted.bytes >= s.peer.bytes }

// closed reports whether the sender has closed the stream behind all that it has
// sent. Datagrams have no such end.
func closed(s *stream) bool { return s.datagrams || s.ended.Load() }
