package tlb

import (
	"math"
	"slices"
	"time"
)

// enough is how much nearer to a fair share the worst candidate must come for
// flows to be moved, as a part of that share. A move may reorder a flow's
// packets, so it has to be worth it.
const enough = 0.05

// flow is an entry that carried something.
type flow struct {
	entry int
	rate  int64
	at    int // its candidate, -1 for none
}

// LooseRate returns the bytes a second that went by no entry over the elapsed
// time, which is the table's period.
func (t *Table) LooseRate(elapsed time.Duration) int64 { return rate(t.loose.Load(), elapsed) }

// rate is bytes over a time, in bytes a second, at least 1 where there are any.
func rate(bytes int64, elapsed time.Duration) int64 {
	if bytes <= 0 {
		return 0
	}
	return max(int64(float64(bytes)/max(elapsed.Seconds(), 1e-3)), 1)
}

// Next returns the table of the next period. elapsed is how long t was in use.
// among are the members of the new period that may be given flows, with what
// they carry beside their entries; was[i] is the member of t that among[i] takes
// the place of, nil for a new one. Entries that carried nothing are assigned to
// nobody.
func (t *Table) Next(elapsed time.Duration, among []Candidate, was []*Member) *Table {
	next := New()
	flows := t.flows(elapsed, was)
	var sum int64
	for _, f := range flows {
		next.entries[f.entry].rate = f.rate
		sum += f.rate
	}
	if len(flows) > 0 {
		next.guess = max(sum/int64(len(flows)), 1)
	}
	if len(among) == 0 {
		return next
	}
	for _, f := range arrange(flows, among) {
		c := among[f.at].Member
		next.entries[f.entry].member.Store(c)
		c.load.Add(f.rate)
	}
	return next
}

// flows returns the entries that carried something, the heaviest first.
func (t *Table) flows(elapsed time.Duration, was []*Member) []flow {
	var list []flow
	for i := range t.entries {
		e := &t.entries[i]
		bytes := e.bytes.Load()
		if bytes <= 0 {
			continue
		}
		at := -1
		if m := e.member.Load(); m != nil {
			at = slices.Index(was, m)
		}
		list = append(list, flow{i, rate(bytes, elapsed), at})
	}
	slices.SortStableFunc(list, func(a, b flow) int { return int(max(min(b.rate-a.rate, 1), -1)) })
	return list
}

// arrange returns the flows with a place for each: where they are, if that is
// about as even as placing them all anew.
func arrange(flows []flow, among []Candidate) []flow {
	stay, stayUneven := place(flows, among, true)
	move, moveUneven := place(flows, among, false)
	if moveUneven < stayUneven-enough {
		return move
	}
	return stay
}

// place gives each flow, in order, to the candidate that is used least then;
// with stay only those that have no place. It returns how uneven that is: the
// greatest distance of a candidate's load from its fair share, as a part of
// that share.
func place(flows []flow, among []Candidate, stay bool) (placed []flow, uneven float64) {
	placed = slices.Clone(flows)
	loads := make([]float64, len(among))
	for i := range among {
		loads[i] = float64(among[i].Member.Load())
	}
	if stay {
		for _, f := range placed {
			if f.at >= 0 {
				loads[f.at] += float64(f.rate)
			}
		}
	}
	for k := range placed {
		f := &placed[k]
		if stay && f.at >= 0 {
			continue
		}
		f.at = leastUsed(loads, among, float64(f.rate), f.at)
		loads[f.at] += float64(f.rate)
	}
	return placed, unevenness(loads, among)
}

// leastUsed returns the candidate that is used least once it has taken a flow;
// of equals the one that has it already, else the first.
func leastUsed(loads []float64, among []Candidate, rate float64, present int) int {
	best, bestUse := 0, math.Inf(1)
	for i := range among {
		use := (loads[i] + rate) / among[i].weight()
		if use < bestUse || use == bestUse && i == present {
			best, bestUse = i, use
		}
	}
	return best
}

func unevenness(loads []float64, among []Candidate) float64 {
	var load, weight float64
	for i := range among {
		load += loads[i]
		weight += among[i].weight()
	}
	worst := 0.0
	for i := range among {
		if fair := load * among[i].weight() / weight; fair > 0 {
			worst = max(worst, math.Abs(loads[i]/fair-1))
		}
	}
	return worst
}
