package iperf3

import "time"

// row is what a stream carried in a time, as the end knows it that has sent or
// that has received.
func (s *stream) row(start, end float64, t totals, sent bool) Row {
	r := Row{Socket: s.socket, Start: start, End: end, Seconds: end - start, Bytes: t.bytes, Sender: s.sender}
	r.setRate()
	switch {
	case s.datagrams && sent:
		r.Packets = &t.packets
	case s.datagrams:
		r.Packets, r.Lost, r.OutOfOrder = &t.packets, &t.lost, &t.outOfOrder
		jitter := t.jitter * 1000
		r.Jitter = &jitter
		r.setLostPercent()
	case sent:
		r.Retransmits = t.retransmits
	}
	return r
}

func (r *Row) setRate() {
	if r.Seconds > 0 {
		r.Bits = 8 * float64(r.Bytes) / r.Seconds
	}
}

func (r *Row) setLostPercent() {
	percent := 0.0
	if *r.Packets > 0 {
		percent = 100 * float64(*r.Lost) / float64(*r.Packets)
	}
	r.LostPercent = &percent
}

// lossless says of the datagrams of a sender that none was lost there.
func (r *Row) lossless() {
	if r.Packets != nil {
		r.Jitter, r.Lost, r.LostPercent = new(float64), new(int64), new(float64)
	}
}

// state adds what TCP tells, where it does.
func (r *Row) state(t *tcpState) {
	if t != nil {
		r.Cwnd, r.RTT, r.RTTVar = &t.cwnd, micros(t.rtt), micros(t.rttVar)
	}
}

// states adds what TCP told in the whole test.
func (r *Row) states(g *rtts) {
	if g.n > 0 {
		r.MaxCwnd, r.MaxRTT, r.MinRTT, r.MeanRTT = &g.maxCwnd, micros(g.max), micros(g.min), micros(g.sum/time.Duration(g.n))
	}
}

func micros(d time.Duration) *int64 {
	us := d.Microseconds()
	return &us
}

// sum adds up rows, of at least one, in the time of the first.
func sum(rows []Row) Row {
	first := rows[0]
	total := Row{Start: first.Start, Seconds: first.Seconds, Sender: first.Sender, Omitted: first.Omitted}
	var jitter float64
	for _, r := range rows {
		total.End, total.Seconds = max(total.End, r.End), max(total.Seconds, r.Seconds)
		total.Bytes += r.Bytes
		addTo(&total.Retransmits, r.Retransmits)
		addTo(&total.Packets, r.Packets)
		addTo(&total.Lost, r.Lost)
		addTo(&total.OutOfOrder, r.OutOfOrder)
		if r.Jitter != nil {
			jitter += *r.Jitter / float64(len(rows))
			total.Jitter = &jitter
		}
	}
	total.setRate()
	if total.Lost != nil {
		total.setLostPercent()
	}
	return total
}

// addTo adds a figure where it is known.
func addTo[N int64 | uint64](total **N, n *N) {
	if n == nil {
		return
	}
	if *total == nil {
		*total = new(N)
	}
	**total += *n
}

// conclude reports the whole test, with what both ends know.
func (t *test) conclude() {
	e := &t.report.End
	var sent, received, both []Row
	for _, s := range t.streams {
		from, to := s.own, s.peer
		if !s.sender {
			from, to = to, from
		}
		x, y := s.row(0, from.seconds, from, true), s.row(0, to.seconds, to, false)
		sent, received = append(sent, x), append(received, y)
		if !t.set.udp {
			x.states(&s.rtts)
			e.Streams = append(e.Streams, StreamEnd{Sender: &x, Receiver: &y})
			continue
		}
		z := y // what came of what was sent
		z.Start, z.End, z.Seconds, z.Bytes, z.Bits = x.Start, x.End, x.Seconds, x.Bytes, x.Bits
		both = append(both, z)
		e.Streams = append(e.Streams, StreamEnd{UDP: &z})
	}
	e.SumSent, e.ReverseSent = t.sumsOf(sent)
	e.SumReceived, e.ReverseReceived = t.sumsOf(received)
	if t.set.udp {
		e.Sum, e.SumReverse = t.sumsOf(both)
		for _, r := range []*Row{e.SumSent, e.ReverseSent} {
			if r != nil {
				r.lossless()
				r.Sender = true
			}
		}
		for _, r := range []*Row{e.SumReceived, e.ReverseReceived} {
			if r != nil {
				r.Sender = false
			}
		}
	}
	e.CPU = &CPU{t.cpu.total, t.cpu.user, t.cpu.system, t.peerCPU.total, t.peerCPU.user, t.peerCPU.system}
}

func (t *test) sumsOf(rows []Row) (first, reverse *Row) {
	one, reverse := t.sums(rows)
	return &one, reverse
}
