package bonding

import (
	"strings"
	"time"
)

// FailoverCause is why a slave no longer carries what it carried.
type FailoverCause string

// The causes of a failover.
const (
	CauseCarrier   FailoverCause = "carrier"          // the link told that it is down
	CauseMIIMon    FailoverCause = "miimon"           // a pass of the monitor found it down
	CauseTransmit  FailoverCause = "transmit error"   // a write found the link gone
	CauseARP       FailoverCause = "arp monitor"      // no target answered
	CauseFastProbe FailoverCause = "fast probe"       // the peer of probe_interval fell silent, or does not hear us
	CauseLACP      FailoverCause = "lacp"             // the partner or the aggregator no longer has the port
	CauseReleased  FailoverCause = "released"         // the slave left the bond
	CauseDisabled  FailoverCause = "disabled"         // SetSlaveEnabled
	CauseDrain     FailoverCause = "drain"            // Drain
	CauseBackOff   FailoverCause = "flap back-off"    // the slave is held back by flap_backoff
	CauseByHand    FailoverCause = "by hand"          // active_slave was set
	CausePrimary   FailoverCause = "primary returned" // the primary took over from a slave that still served
	CauseSelection FailoverCause = "selection"        // the selection preferred another slave
	CauseReturned  FailoverCause = "link returned"    // the first slave after a time without any
)

// lost reports whether the slave was lost, rather than put aside.
func (c FailoverCause) lost() bool {
	switch c {
	case CauseCarrier, CauseMIIMon, CauseTransmit, CauseARP, CauseFastProbe:
		return true
	}
	return false
}

// Failover is the record of one change of the active slave or, in the modes
// that spread, of one slave that no longer sends. Times are in microseconds, and
// count from the beginning of the failure: the moment that the link told of it,
// or the last moment at which the slave was known to be good (a pass of the
// monitor that found its link up, the last frame that a probe knows of, the write
// that failed). A slave that is put aside while it is good has no failure: its
// times count from the change.
type Failover struct {
	// Seq counts the failovers of the bond, from 1.
	Seq   uint64        `json:"seq"`
	Time  time.Time     `json:"time"` // of the change
	Cause FailoverCause `json:"cause"`
	// From is the slave that no longer serves; empty where none did, and then
	// the times count from the failure of the last that had.
	From string `json:"from"`
	// To are the slaves that serve now: the active one, or those that share the
	// traffic, with commas. It is empty where there is none.
	To string `json:"to"`
	// DetectionUs is from the beginning of the failure to the change, delays
	// such as downdelay included.
	DetectionUs int64 `json:"detection_us"`
	// FirstTxUs and FirstRxUs are from the beginning of the failure to the first
	// frame sent and received by those who serve now; null while there is none.
	FirstTxUs *int64 `json:"first_tx_us"`
	FirstRxUs *int64 `json:"first_rx_us"`
	// OutageUs is the time without a slave to send by: that to the first frame
	// sent. A host that has nothing to send makes it longer; null while nothing
	// was sent.
	OutageUs *int64 `json:"outage_us"`
	// FramesLost counts the frames that the bond had to drop since the last
	// failover was over, because no slave was there or its link was gone. What
	// was lost behind a link that took it is not known to the bond.
	FramesLost uint64 `json:"frames_lost"`
}

// failoverRing is how many failovers are remembered.
const failoverRing = 64

// failoverLog is a bond's record of failovers. It is guarded by Bond.mu.
type failoverLog struct {
	list  []failoverRecord // the oldest first
	seq   uint64
	lost  uint64        // Bond.lostFrames when the last failover was over
	why   FailoverCause // of the change under way, where the slaves do not tell
	told  *slave        // whose link told of the change under way
	first *firstFrames  // of the last failover, until both are known
	sums  failoverTotals
}

// failoverRecord is a Failover with what its status is made of.
type failoverRecord struct {
	Failover
	start     instant
	lostSince uint64       // Bond.lostFrames at the beginning
	gone      *slave       // whose failed write was the cause: others may have sent in its place
	first     *firstFrames // nil: nobody serves
	closed    bool         // FramesLost is final
}

// recordFailovers compares what served with what serves from here on.
func (b *Bond) recordFailovers(old, next *snapshot, now instant) {
	l := &b.failovers
	why, to := l.why, next.serving
	l.why = ""
	if old == nil || b.dispatcher == nil || b.closed {
		return
	}
	from := old.serving
	for _, s := range from {
		if !contains(to, s) {
			l.add(b, s, to, b.causeOf(s, to, why), now)
		}
	}
	if len(from) == 0 && len(to) > 0 && len(l.list) > 0 && l.list[len(l.list)-1].To == "" {
		if why == "" {
			why = CauseReturned
		}
		l.add(b, nil, to, why, now)
	}
}

// serves returns the slaves whose loss is a failover: the active one where the
// mode has one, else those that share the traffic.
func (s *snapshot) serves(mode *modeInfo) []*slave {
	switch {
	case !mode.primary:
		return s.usable
	case s.active == nil:
		return nil
	}
	return []*slave{s.active}
}

func contains(list []*slave, s *slave) bool {
	for _, other := range list {
		if other == s {
			return true
		}
	}
	return false
}

// causeOf says why a slave no longer serves. What was done on purpose comes
// before what the slave's state tells.
func (b *Bond) causeOf(s *slave, to []*slave, why FailoverCause) FailoverCause {
	switch {
	case s.released:
		return CauseReleased
	case s.disabled:
		return CauseDisabled
	case s.goneUntil != 0:
		return CauseTransmit
	case !s.state.Usable() && s.loss.told:
		return CauseCarrier
	case !s.state.Usable():
		return CauseMIIMon
	case b.foundBy(s, monitorProbe):
		return CauseFastProbe
	case b.foundBy(s, monitorARP):
		return CauseARP
	case s.standsBack && s.draining:
		return CauseDrain
	case s.standsBack:
		return CauseBackOff
	case s.loss.why != "" && s.link == linkDown:
		return s.loss.why
	case why != "":
		return why
	case b.config.mode == IEEE8023AD:
		return CauseLACP
	case len(to) > 0 && to[0] == b.primary:
		return CausePrimary
	}
	return CauseSelection
}

// foundBy reports whether a monitor has found the slave to be down.
func (b *Bond) foundBy(s *slave, m monitor) bool {
	return s.link != linkUp && b.config.monitors().has(m) && s.verdicts[m] == linkDown
}

// add begins a record; from is nil after a time without any slave.
func (l *failoverLog) add(b *Bond, from *slave, to []*slave, cause FailoverCause, now instant) {
	r := failoverRecord{start: now, lostSince: l.lost}
	l.seq++
	r.Seq, r.Time, r.Cause = l.seq, b.clock.Now(), cause
	r.From, r.To = from.displayName(""), slaveNames(to)
	lost := b.lostFrames(b.slaves)
	if n := len(l.list); n > 0 {
		last := &l.list[n-1]
		last.close(l, lost)
		r.lostSince = l.lost
		if from == nil {
			r.start, r.lostSince = last.start, last.lostSince
		}
	}
	if from != nil && cause.lost() && from.loss.at != 0 {
		r.start = from.loss.at
	}
	if cause == CauseARP && b.lastEvidence(from) > 0 {
		r.start = b.lastEvidence(from)
	}
	if cause == CauseTransmit {
		r.gone = from
	}
	r.DetectionUs = (now - r.start).us()
	l.sums.began(&r.Failover)
	l.first = nil
	if len(to) > 0 {
		l.first = &firstFrames{}
		r.first = l.first
	}
	if len(l.list) == failoverRing {
		l.list = append(l.list[:0], l.list[1:]...)
	}
	l.list = append(l.list, r)
}

// close makes a record final, since another follows.
func (r *failoverRecord) close(l *failoverLog, lost uint64) {
	if r.closed {
		return
	}
	if r.first != nil && r.first.tx.Load() != 0 {
		lost = r.first.lost.Load() - 1
	}
	r.Failover = r.show(lost)
	r.closed, r.first, r.gone = true, nil, nil
	l.sums.over(&r.Failover)
	l.lost = max(l.lost, lost)
}

// show is the record as it is known now; lost is the present sum of lost
// frames.
func (r *failoverRecord) show(lost uint64) Failover {
	f := r.Failover
	if r.closed {
		return f
	}
	if r.first != nil {
		tx := instant(r.first.tx.Load())
		if tx != 0 {
			lost = r.first.lost.Load() - 1
		}
		if at := r.rescued(); at != 0 && (tx == 0 || at < tx) {
			tx = at
		}
		f.FirstTxUs = sinceStart(tx, r.start)
		f.OutageUs = f.FirstTxUs
		f.FirstRxUs = sinceStart(instant(r.first.rx.Load()), r.start)
	}
	f.FramesLost = lost - min(lost, r.lostSince)
	return f
}

// rescued is when another slave sent in place of the one whose write failed,
// perhaps before the control side knew of it.
func (r *failoverRecord) rescued() instant {
	if r.gone == nil {
		return 0
	}
	return instant(r.gone.counters.rescuedAt.Load())
}

func sinceStart(at, start instant) *int64 {
	if at == 0 {
		return nil
	}
	us := max(at-start, 0).us()
	return &us
}

func (i instant) us() int64 { return time.Duration(i).Microseconds() }

// show returns all records, the oldest first.
func (l *failoverLog) show(lost uint64) []Failover {
	list := make([]Failover, len(l.list))
	for i := range l.list {
		list[i] = l.list[i].show(lost)
	}
	return list
}

// lostFrames counts the frames that were dropped because nothing was there to
// send them by. The data path may call it.
func (b *Bond) lostFrames(slaves []*slave) uint64 {
	lost := b.drops[dropTxNoSlave].Load() + b.retiredGone.Load()
	for _, s := range slaves {
		lost += s.counters.drops[dropTxLinkGone].Load()
	}
	return lost
}

func slaveNames(slaves []*slave) string {
	names := make([]string, len(slaves))
	for i, s := range slaves {
		names[i] = s.name
	}
	return strings.Join(names, ",")
}

// loss is what is known of how a slave was lost.
type loss struct {
	seen instant // the last pass that found it good
	at   instant // the beginning of the loss
	told bool    // the link told of it
	// why is the cause where a monitor found it that asks others than the link.
	why FailoverCause
}

// noteLoss keeps when a slave's link was good for the last time.
func (s *slave) noteLoss(was bool, now instant) {
	switch {
	case s.usable():
		s.loss.seen = now
	case was && (s == s.bond.failovers.told || s.loss.seen == 0):
		s.loss = loss{seen: s.loss.seen, at: now, told: true}
	case was:
		s.loss = loss{seen: s.loss.seen, at: s.loss.seen}
	}
}

// noteGone keeps when a write found the slave's link gone.
func (s *slave) noteGone() {
	s.loss.at, s.loss.told = instant(s.counters.goneAt.Load()), true
}
