package iperf3

import (
	"time"

	"bondstack/stack"
)

// sample is what a stream has carried up to a moment.
type sample struct {
	at          time.Duration // since the start of the test
	bytes       uint64
	packets     uint64
	lost        int64
	outOfOrder  uint64
	jitter      float64 // seconds, at the moment
	failed      uint64  // datagrams that the network did not take
	retransmits *uint64 // nil: unknown
	tcp         *tcpState
}

// tcpState is what a sending stream's TCP tells.
type tcpState struct {
	cwnd        uint64 // bytes
	rtt, rttVar time.Duration
}

// totals is what one end counted on a stream, without what was omitted.
type totals struct {
	bytes       uint64
	seconds     float64
	packets     uint64
	lost        int64
	outOfOrder  uint64
	jitter      float64
	failed      uint64
	retransmits *uint64
}

// since returns what came between two samples.
func (s sample) since(old sample) totals {
	t := totals{bytes: s.bytes - old.bytes, seconds: (s.at - old.at).Seconds(), packets: s.packets - old.packets,
		lost: s.lost - old.lost, outOfOrder: s.outOfOrder - old.outOfOrder, jitter: s.jitter, failed: s.failed - old.failed}
	if s.retransmits != nil {
		n := *s.retransmits
		if old.retransmits != nil {
			n -= *old.retransmits
		}
		t.retransmits = &n
	}
	return t
}

// informer is a connection that knows the state of its sending side.
type informer interface{ Info() stack.TCPInfo }

var _ informer = (*stack.TCPConn)(nil)

// sample reads the stream's counters.
func (s *stream) sample(at time.Duration, mss int) sample {
	now := sample{at: at, bytes: s.bytes.Load(), packets: s.packets.Load(), failed: s.failed.Load()}
	if s.datagrams && !s.sender {
		s.mu.Lock()
		a := s.arrivals
		s.mu.Unlock()
		now.packets, now.lost, now.outOfOrder, now.jitter = a.packets, a.lost, a.outOfOrder, a.jitter
	}
	if known, ok := s.conn.(informer); ok && s.sender && !s.datagrams {
		info := known.Info()
		now.retransmits = &info.Retransmits
		now.tcp = &tcpState{uint64(info.CongestionWindow) * uint64(mss), info.RTT, info.RTTVar}
	}
	return now
}

// rtts gathers the round-trip times and windows of a stream.
type rtts struct {
	maxCwnd       uint64
	min, max, sum time.Duration
	n             int
}

func (r *rtts) add(t *tcpState) {
	if t == nil {
		return
	}
	if r.n == 0 || t.rtt < r.min {
		r.min = t.rtt
	}
	r.max, r.maxCwnd = max(r.max, t.rtt), max(r.maxCwnd, t.cwnd)
	r.sum += t.rtt
	r.n++
}
