package main

import (
	"time"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/benchhtml"
)

// How often throughput is read for a page: in rounds, and while links are cut.
const (
	recordEvery    = 100 * time.Millisecond
	recordCutEvery = 25 * time.Millisecond
)

// recorder reads the counters of a rig while a round is timed, for a timeline. A nil
// recorder does nothing.
type recorder struct {
	timeline benchhtml.Timeline
	every    time.Duration
	began    time.Time // of the segment
	offset   float64   // of the segment, in seconds on the timeline
	stop     chan struct{}
	done     chan benchhtml.Segment
}

// record returns a recorder for a timeline, nil where there is no page.
func (s *benchSettings) record(title, text string, every time.Duration, b *bonding.Bond) *recorder {
	if s.page == nil {
		return nil
	}
	rec := &recorder{every: every}
	rec.timeline.Title, rec.timeline.Text = title, text
	for _, slave := range b.Status().Slaves {
		rec.timeline.Slaves = append(rec.timeline.Slaves, slave.Name)
	}
	return rec
}

// during records what a rig carries between next's begin and end.
func (rec *recorder) during(kind string, r *rig, next func(bool)) func(bool) {
	if rec == nil {
		return next
	}
	return func(on bool) {
		if on {
			rec.begin(kind, r)
			next(true)
			return
		}
		rec.end()
		next(false)
	}
}

// begin begins a segment.
func (rec *recorder) begin(kind string, r *rig) {
	rec.began = time.Now()
	rec.stop, rec.done = make(chan struct{}), make(chan benchhtml.Segment, 1)
	go rec.run(benchhtml.Segment{Kind: kind, Start: rec.offset}, r)
}

// run reads until it is told to stop.
func (rec *recorder) run(s benchhtml.Segment, r *rig) {
	tick := time.NewTicker(rec.every)
	defer tick.Stop()
	last, at := rec.read(r), 0.0
	for going := true; going; {
		select {
		case <-tick.C:
		case <-rec.stop:
			going = false
		}
		now, end := rec.read(r), time.Since(rec.began).Seconds()
		if end-at < rec.every.Seconds()/4 && len(s.Times) > 0 {
			continue // a tick came late: too short for a rate
		}
		bits := make([]float64, len(now))
		for i := range now {
			bits[i] = 8 * float64(grown(now[i], last[i])) / (end - at)
		}
		s.Times, s.Bits = append(s.Times, end), append(s.Bits, bits)
		last, at = now, end
	}
	rec.done <- s
}

// read returns the bytes that the slaves of the sending end have sent, or without a
// bond those that were received.
func (rec *recorder) read(r *rig) []uint64 {
	if r.bond == nil {
		return []uint64{uint64(r.received.Load())}
	}
	bytes := make([]uint64, len(rec.timeline.Slaves))
	for _, slave := range r.bond.Status().Slaves {
		for i, name := range rec.timeline.Slaves {
			if name == slave.Name {
				bytes[i] = slave.Counters.TxBytes
			}
		}
	}
	return bytes
}

// grown is how much a counter has grown; one that was taken out and came again has
// begun with 0.
func grown(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// end ends the segment.
func (rec *recorder) end() {
	close(rec.stop)
	s := <-rec.done
	rec.timeline.Segments = append(rec.timeline.Segments, s)
	if n := len(s.Times); n > 0 {
		rec.offset += s.Times[n-1]
	}
}

// keep puts the timeline on the page.
func (s *benchSettings) keep(rec *recorder) {
	if rec != nil {
		s.page.Timelines = append(s.page.Timelines, rec.timeline)
	}
}
