package iperf3

import (
	"context"
	"math"
	"time"
)

// run has the streams run until the test is over and counts what they carry. The
// client's test ends by its settings; over ends a test too, with an error unless
// that is in order, and so does ctx. What is under way then still counts, until
// settle.
func (t *test) run(ctx context.Context, over <-chan error) error {
	quota, length := int64(math.MaxInt64), time.Duration(0) // a server is told of the end
	if t.client {
		quota, length = t.set.quota(), t.set.time
	}
	t.began = time.Now()
	t.rebase()
	t.out.columns(t)
	ended, err := false, error(nil)
	if t.set.omit == 0 {
		t.allow(quota)
		t.start()
	} else {
		t.allow(math.MaxInt64)
		t.start()
		if ended, err = t.phase(ctx, over, t.set.omit, t.set.omit, true); !ended {
			t.interval(true)
			t.began = time.Now()
			t.rebase()
			t.slavesAt = t.slaves()
			t.slavesLast = t.slavesAt
			t.allow(quota)
		}
	}
	if !ended {
		_, err = t.phase(ctx, over, length, t.set.time, false)
	}
	t.halt()
	if !t.client {
		t.closeSenders()
	}
	return err
}

// phase measures at intervals until its length is over, where that is not 0, or
// the test. No interval ends shortly before or after the expected end: the last
// one has that too.
func (t *test) phase(ctx context.Context, over <-chan error, length, expected time.Duration, omitted bool) (ended bool, err error) {
	var tick, end <-chan time.Time
	every := t.out.every()
	if every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		tick = ticker.C
	}
	if length > 0 {
		timer := time.NewTimer(length)
		defer timer.Stop()
		end = timer.C
	}
	for {
		select {
		case <-tick:
			if (expected - time.Since(t.began)).Abs() > every/20 {
				t.interval(omitted)
			}
		case <-end:
			return false, nil
		case <-t.reached:
			return true, nil
		case err := <-t.failed:
			return true, inOtherWords(err, over)
		case err := <-over:
			return true, err
		case <-ctx.Done():
			if t.client {
				return true, errClientEnded
			}
			return true, errServerEnded
		}
	}
}

// wordTimeout is how long the control connection may take to say why a stream ended.
const wordTimeout = 200 * time.Millisecond

// inOtherWords returns what the control connection says of the end of a stream: in
// order, or an error that tells more than that of the stream.
func inOtherWords(err error, over <-chan error) error {
	select {
	case word := <-over:
		return word
	case <-time.After(wordTimeout):
		return err
	}
}

// rebase has counting begin now.
func (t *test) rebase() {
	at := time.Since(t.began)
	for _, s := range t.streams {
		s.omitted = s.sample(at, t.mss)
		s.last, s.rtts = s.omitted, rtts{}
	}
	t.cpuAt = cpuNow()
}

// interval reports what was carried since the last one.
func (t *test) interval(omitted bool) {
	i := Interval{}
	empty := true
	at := time.Since(t.began)
	for _, s := range t.streams {
		at := at
		if s.until > 0 {
			at = s.until
		}
		now := s.sample(at, t.mss)
		got := now.since(s.last)
		empty = empty && got.bytes == 0
		row := s.row(s.last.at.Seconds(), at.Seconds(), got, s.sender)
		row.Omitted = &omitted
		row.state(now.tcp)
		s.rtts.add(now.tcp)
		s.last = now
		i.Streams = append(i.Streams, row)
	}
	if short := i.Streams[0].Seconds < t.out.every().Seconds()/20; short && empty && len(t.report.Intervals) > 0 {
		return
	}
	i.Sum, i.Reverse = t.sums(i.Streams)
	slaves := t.slaves()
	i.Bond = slavesReport(slaves, t.slavesLast)
	t.slavesLast = slaves
	t.report.add(i)
	t.out.interval(t, &i)
}

// settle ends counting, and counts the whole test at this end.
func (t *test) settle() {
	t.running.Store(false)
	if len(t.streams) == 0 {
		return
	}
	t.interval(false)
	t.cpu = cpuNow().since(t.cpuAt)
	for _, s := range t.streams {
		s.own = s.last.since(s.omitted)
	}
	t.report.Bond = slavesReport(t.slavesLast, t.slavesAt)
	if failed := t.failures(); failed > 0 {
		if t.report.Bond == nil {
			t.report.Bond = &Bond{Slaves: []SlaveShare{}}
		}
		t.report.Bond.NotSent = failed
	}
}

// failures counts the datagrams that the network did not take.
func (t *test) failures() (n uint64) {
	for _, s := range t.streams {
		n += s.own.failed
	}
	return n
}

// sums adds up the rows of the streams that connected first, and with both ways
// those of the others, which the server sends by.
func (t *test) sums(rows []Row) (first Row, reverse *Row) {
	n := t.set.parallel
	if t.set.bidir {
		back := sum(rows[n:])
		reverse = &back
	}
	return sum(rows[:n]), reverse
}
