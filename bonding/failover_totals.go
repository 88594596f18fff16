package bonding

// FailoverTotals sums up all failovers of a bond, those too whose records are
// forgotten. Counts only grow.
type FailoverTotals struct {
	// Causes has how many failovers each cause had, those of none too.
	Causes map[FailoverCause]uint64 `json:"causes"`
	// Outage is of the failovers after which something was sent, Detection of
	// those whose slave was lost: see Failover.
	Outage    Durations `json:"outage"`
	Detection Durations `json:"detection"`
}

// Durations is a distribution of times.
type Durations struct {
	Count   uint64           `json:"count"`
	SumUs   int64            `json:"sum_us"`
	Buckets []DurationBucket `json:"buckets"` // by rising bounds
}

// DurationBucket counts the times up to its bound, so also those of the buckets
// before it.
type DurationBucket struct {
	UpToUs int64  `json:"up_to_us"`
	Count  uint64 `json:"count"`
}

// FailoverCauses are all causes.
var FailoverCauses = []FailoverCause{CauseCarrier, CauseMIIMon, CauseTransmit, CauseARP, CauseFastProbe, CauseLACP, CauseReleased,
	CauseDisabled, CauseDrain, CauseBackOff, CauseByHand, CausePrimary, CauseSelection, CauseReturned}

// durationBoundsUs are from 10 µs, a link in memory that tells, to 30 s, LACP at
// the slow rate and more.
var durationBoundsUs = [...]int64{10, 100, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7}

// failoverTotals are guarded by Bond.mu.
type failoverTotals struct {
	causes            map[FailoverCause]uint64
	outage, detection durationCounts
}

type durationCounts struct {
	count   uint64
	sumUs   int64
	buckets [len(durationBoundsUs)]uint64 // each without those before it
}

func (d *durationCounts) add(us int64) {
	d.count++
	d.sumUs += us
	for i, bound := range durationBoundsUs {
		if us <= bound {
			d.buckets[i]++
			return
		}
	}
}

// began counts a failover.
func (t *failoverTotals) began(f *Failover) {
	if t.causes == nil {
		t.causes = map[FailoverCause]uint64{}
	}
	t.causes[f.Cause]++
	if f.Cause.lost() {
		t.detection.add(f.DetectionUs)
	}
}

// over counts the outage of a failover that is final.
func (t *failoverTotals) over(f *Failover) {
	if f.OutageUs != nil {
		t.outage.add(*f.OutageUs)
	}
}

// totals returns the sums. list has the records as they are shown: the last may
// be open yet, and is not among the sums.
func (l *failoverLog) totals(list []Failover) FailoverTotals {
	sums := l.sums
	if n := len(l.list); n > 0 && !l.list[n-1].closed {
		sums.over(&list[n-1])
	}
	t := FailoverTotals{Causes: map[FailoverCause]uint64{}, Outage: sums.outage.show(), Detection: sums.detection.show()}
	for _, c := range FailoverCauses {
		t.Causes[c] = sums.causes[c]
	}
	return t
}

func (d *durationCounts) show() Durations {
	s := Durations{Count: d.count, SumUs: d.sumUs, Buckets: make([]DurationBucket, 0, len(durationBoundsUs))}
	var sum uint64
	for i, bound := range durationBoundsUs {
		sum += d.buckets[i]
		s.Buckets = append(s.Buckets, DurationBucket{bound, sum})
	}
	return s
}
