package drill

import (
	"context"
	"net/netip"
	"time"

	"bondstack/stack"
)

const (
	// askEvery is the distance of echo requests, lookEvery that of looks for
	// answers.
	askEvery  = 5 * time.Millisecond
	lookEvery = time.Millisecond
	// unreached is for how long a peer has to be silent at the end to count as not
	// reached; a slow one gets some round trips.
	unreached = 20 * askEvery
)

// peer is a host that is asked.
type peer struct {
	addr   netip.Addr
	pinger *stack.Pinger
	rtt    time.Duration

	sent, answered uint64
	before         uint64    // answers before the round
	last           time.Time // of the last answer
	inCut, after   gap       // the longest of those that began in the cut, and when it was over
}

// gap is a time between two answers.
type gap struct {
	length time.Duration
	end    time.Time
}

// begin begins a round: what came before does not count.
func (p *peer) begin(now time.Time) {
	n := p.pinger.Counts().Received
	p.sent, p.answered, p.before = 0, n, n
	p.last, p.inCut, p.after = now, gap{}, gap{}
}

// ask sends a request. One that cannot be sent is lost.
func (p *peer) ask() {
	p.sent++
	_ = p.pinger.Send()
}

// look takes the answers that have come. restored is when the cut ended, zero before.
func (p *peer) look(now, restored time.Time) {
	n := p.pinger.Counts().Received
	if n == p.answered {
		return
	}
	g := &p.inCut
	if !restored.IsZero() && !p.last.Before(restored) {
		g = &p.after
	}
	if length := now.Sub(p.last); length > g.length {
		*g = gap{length, now}
	}
	p.answered, p.last = n, now
}

// result sums up a round. end is when the last request was sent.
func (p *peer) result(cut, restored, end time.Time) PeerResult {
	r := PeerResult{Peer: p.addr, RTTUs: p.rtt.Microseconds(), Sent: p.sent}
	r.Lost = p.sent - min(p.sent, p.answered-p.before)
	silent := end.Sub(p.last) > max(unreached, 4*p.rtt)
	if !silent || !p.last.Before(restored) {
		r.GapUs = us(p.inCut.length)
		r.ReachedAgainUs = us(max(p.inCut.end.Sub(cut), 0))
	}
	if !silent {
		r.ReturnGapUs = us(p.after.length)
	}
	return r
}

func us(d time.Duration) *int64 {
	n := d.Microseconds()
	return &n
}

// watch asks the peers and looks for their answers until done returns true, or the
// context ends.
func watch(ctx context.Context, peers []*peer, restored time.Time, done func(now time.Time) bool) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	next := time.Now()
	for {
		now := time.Now()
		for _, p := range peers {
			p.look(now, restored)
		}
		if done(now) {
			return nil
		}
		if !now.Before(next) {
			for _, p := range peers {
				p.ask()
			}
			next = next.Add(askEvery)
			if next.Before(now) { // this goroutine was late: no burst makes up for it
				next = now.Add(askEvery)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// await looks for answers that are on their way yet, and asks nothing.
func await(ctx context.Context, peers []*peer, restored time.Time) {
	end := time.Now()
	wait := unreached
	for _, p := range peers {
		wait = max(wait, 2*p.rtt)
	}
	for ctx.Err() == nil && time.Since(end) < wait {
		open := false
		now := time.Now()
		for _, p := range peers {
			p.look(now, restored)
			open = open || p.answered-p.before < p.sent
		}
		if !open {
			return
		}
		time.Sleep(lookEvery)
	}
}
