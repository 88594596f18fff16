package drill

import (
	"net/netip"
	"time"

	"bondstack/bonding"
)

// The phases of a drill, in order; those from Cutting to Back come in each round.
const (
	Cutting  = "cutting"  // the slave is taken away
	Restored = "restored" // it was given back
	Back     = "back"     // it is used as before, or was waited for in vain
	Finished = "finished" // the line has the result
	Failed   = "failed"   // the line has the error
)

// Line is a line of the answer.
type Line struct {
	Phase  string  `json:"phase"`
	Round  int     `json:"round,omitempty"` // from 1
	Result *Result `json:"result,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// Result is what a drill has found. Its JSON form is stable: fields are added, never
// changed. Times are in microseconds.
type Result struct {
	Bond  string         `json:"bond"`
	Mode  bonding.Mode   `json:"mode"`
	Slave string         `json:"slave"`
	How   bonding.CutHow `json:"how"`
	// Meaning says in a sentence what kind of failure that is.
	Meaning string  `json:"meaning"`
	ForMs   int64   `json:"for_ms"`
	Rounds  []Round `json:"rounds"`
	// LongestGapUs is the longest time without an answer from a peer, of all peers
	// and rounds; null where a peer did not come back, or none was asked.
	LongestGapUs *int64 `json:"longest_gap_us"`
	// Lost is how many echo requests were not answered, of all that were sent.
	Lost uint64 `json:"lost"`
	Sent uint64 `json:"sent"`
	// Unreached are peers that did not answer any more at the end of a round.
	Unreached []netip.Addr `json:"unreached"`
}

// Round is one cut.
type Round struct {
	// Time is when the slave was cut.
	Time time.Time `json:"time"`
	// Served is whether the slave sent data for the bond until then.
	Served bool `json:"served"`
	// Noticed is whether the bond stopped using the slave during the cut.
	Noticed bool `json:"noticed"`
	// Back is whether the slave was used again after the cut as before.
	Back bool `json:"back"`
	// DiscardedTx and DiscardedRx are the frames that a silenced slave did not pass.
	DiscardedTx uint64 `json:"discarded_tx"`
	DiscardedRx uint64 `json:"discarded_rx"`
	// FramesLost are those that the bond had to drop for want of a slave.
	FramesLost uint64 `json:"frames_lost"`
	// Failovers are the bond's own records.
	Failovers []bonding.Failover `json:"failovers"`
	Peers     []PeerResult       `json:"peers"`
}

// PeerResult is how a peer was reached in a round.
type PeerResult struct {
	Peer netip.Addr `json:"peer"`
	// RTTUs is a round trip before the cut.
	RTTUs int64  `json:"rtt_us"`
	Sent  uint64 `json:"sent"` // echo requests
	Lost  uint64 `json:"lost"` // those that were not answered
	// GapUs is the longest time between two answers that began in the cut, and
	// ReturnGapUs the longest one that began when the slave was back: as long as the
	// distance of requests, 5 ms, where nothing was lost. Null: it did not end.
	GapUs       *int64 `json:"gap_us"`
	ReturnGapUs *int64 `json:"return_gap_us"`
	// ReachedAgainUs is from the cut to the end of its longest gap.
	ReachedAgainUs *int64 `json:"reached_again_us"`
}

// sum completes a result.
func (r *Result) sum() {
	longest, known := int64(0), false
	seen := map[netip.Addr]bool{}
	r.Unreached = []netip.Addr{}
	for _, round := range r.Rounds {
		for _, p := range round.Peers {
			known = true
			r.Sent += p.Sent
			r.Lost += p.Lost
			for _, gap := range []*int64{p.GapUs, p.ReturnGapUs} {
				switch {
				case gap != nil:
					longest = max(longest, *gap)
				case !seen[p.Peer]:
					seen[p.Peer] = true
					r.Unreached = append(r.Unreached, p.Peer)
				}
			}
		}
	}
	if known && len(r.Unreached) == 0 {
		r.LongestGapUs = &longest
	}
}

// Outage returns the outage that a limit is for: the longest gap, and without peers
// that of the bond's own records. ok is false where it has not ended.
func (r *Result) Outage() (d time.Duration, ok bool) {
	us := int64(0)
	for _, round := range r.Rounds {
		if len(round.Peers) > 0 {
			continue
		}
		for _, f := range round.Failovers {
			if f.OutageUs != nil {
				us = max(us, *f.OutageUs)
			}
		}
	}
	if r.LongestGapUs != nil {
		us = max(us, *r.LongestGapUs)
	}
	return time.Duration(us) * time.Microsecond, len(r.Unreached) == 0
}
