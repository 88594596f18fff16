package iperf3

import (
	"fmt"
	"io"
)

// results are what one end tells the other after the test.
type results struct {
	CPUTotal   number          `json:"cpu_util_total"`
	CPUUser    number          `json:"cpu_util_user"`
	CPUSystem  number          `json:"cpu_util_system"`
	Retransmit number          `json:"sender_has_retransmits"` // 1: it sends and counts them; 0: it sends and does not; -1: it sends not
	Congestion string          `json:"congestion_used,omitempty"`
	Streams    []streamResults `json:"streams"`
}

// streamResults are what one end counted on a stream. Datagrams count from the
// beginning, also in the time to omit; bytes do not.
type streamResults struct {
	ID             int     `json:"id"`
	Bytes          number  `json:"bytes"`
	Retransmits    number  `json:"retransmits"` // -1: unknown
	Jitter         number  `json:"jitter"`      // seconds
	Errors         number  `json:"errors"`      // datagrams lost
	OmittedErrors  *number `json:"omitted_errors,omitempty"`
	Packets        number  `json:"packets"`
	OmittedPackets *number `json:"omitted_packets,omitempty"`
	Start          number  `json:"start_time"`
	End            number  `json:"end_time"` // seconds
}

// results returns what this end tells the other.
func (t *test) results() results {
	r := results{CPUTotal: number(t.cpu.total), CPUUser: number(t.cpu.user), CPUSystem: number(t.cpu.system), Retransmit: -1}
	for _, s := range t.streams {
		one := streamResults{ID: s.id, Bytes: number(s.own.bytes), Retransmits: -1, Jitter: number(s.own.jitter),
			Errors: number(s.own.lost + s.omitted.lost), Packets: number(s.own.packets + s.omitted.packets), End: number(s.own.seconds)}
		if t.set.omit > 0 && t.set.udp {
			lost, packets := number(s.omitted.lost), number(s.omitted.packets)
			one.OmittedErrors, one.OmittedPackets = &lost, &packets
		}
		if s.sender {
			r.Retransmit = max(r.Retransmit, 0)
			if s.own.retransmits != nil {
				r.Retransmit, one.Retransmits = 1, number(*s.own.retransmits)
			}
		}
		r.Streams = append(r.Streams, one)
	}
	return r
}

// readResults receives the other end's results.
func (t *test) readResults(r io.Reader) error {
	var got results
	if err := readMessage(r, maxResults(len(t.streams)), &got); err != nil {
		return fmt.Errorf("results of the other end: %w", err)
	}
	return t.takeResults(&got)
}

// takeResults checks the other end's results and notes them at each stream.
func (t *test) takeResults(got *results) error {
	if len(got.Streams) != len(t.streams) {
		return fmt.Errorf("results of the other end are of %d streams, want %d", len(got.Streams), len(t.streams))
	}
	t.peerCPU = cpuUse{float64(got.CPUTotal), float64(got.CPUUser), float64(got.CPUSystem)}
	byID := map[int]*streamResults{}
	for i := range got.Streams {
		byID[got.Streams[i].ID] = &got.Streams[i]
	}
	for _, s := range t.streams {
		r := byID[s.id]
		if r == nil {
			return fmt.Errorf("results of the other end have no stream %d", s.id)
		}
		s.peer = r.totals(s.omitted)
		if got.Retransmit != 1 {
			s.peer.retransmits = nil
		}
	}
	return nil
}

// totals returns the results without what was omitted: as the peer says, or, where
// it does not, as this end counted.
func (r *streamResults) totals(omitted sample) totals {
	lost, packets := number(omitted.lost), number(omitted.packets)
	if r.OmittedErrors != nil {
		lost = *r.OmittedErrors
	}
	if r.OmittedPackets != nil {
		packets = *r.OmittedPackets
	}
	t := totals{seconds: max(float64(r.End-r.Start), 0)}
	t.bytes, _ = r.Bytes.whole(1 << 63)
	t.packets, _ = max(r.Packets-packets, 0).whole(1 << 63)
	t.lost = int64(min(max(r.Errors-lost, -1<<62), 1<<62))
	t.jitter = float64(r.Jitter)
	if n, ok := r.Retransmits.whole(1 << 62); ok {
		t.retransmits = &n
	}
	return t
}
