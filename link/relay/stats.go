package relay

import "sync/atomic"

// Stats counts what a relay has done since it was made.
type Stats struct {
	TCP Counts `json:"tcp"`
	UDP Counts `json:"udp"`
}

// Counts are those of one kind of flow.
type Counts struct {
	// Open is how many flows there are now.
	Open int64 `json:"open"`
	// Opened is how many there were in all, those included that failed.
	Opened uint64 `json:"opened"`
	// Failed counts the flows whose far side could not be reached.
	Failed uint64 `json:"failed"`
	// Limited counts the connections, and datagrams that would have begun an
	// association, that were refused since there were too many.
	Limited uint64 `json:"limited"`
	// TimedOut counts the flows that were idle for too long.
	TimedOut uint64 `json:"timed_out"`
	// Resets counts the connections that broke: each side's reset is one of
	// the other.
	Resets uint64 `json:"resets"`
	// ToFar and ToNear count the bytes of payload that were passed on.
	ToFar  uint64 `json:"to_far_bytes"`
	ToNear uint64 `json:"to_near_bytes"`
	// Dropped counts datagrams that could not be passed on: more than 16 while
	// an association was being opened, those that waited for one that could not
	// be, and those that a socket refused.
	Dropped uint64 `json:"dropped"`
	// Ended counts datagrams that were under way when their association ended.
	Ended uint64 `json:"dropped_ended"`
}

type counters struct {
	open                                      atomic.Int64
	opened, failed, limited, timedOut, resets atomic.Uint64
	toFar, toNear, dropped, ended             atomic.Uint64
}

func (c *counters) read() Counts {
	return Counts{
		Open: c.open.Load(), Opened: c.opened.Load(), Failed: c.failed.Load(), Limited: c.limited.Load(),
		TimedOut: c.timedOut.Load(), Resets: c.resets.Load(),
		ToFar: c.toFar.Load(), ToNear: c.toNear.Load(), Dropped: c.dropped.Load(), Ended: c.ended.Load(),
	}
}

// Stats returns the counters. Each is right by itself; together they are of
// slightly different moments.
func (r *Relay) Stats() Stats { return Stats{TCP: r.tcp.read(), UDP: r.udp.read()} }
