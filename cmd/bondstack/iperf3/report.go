package iperf3

import (
	"runtime"
	"time"
)

// Report is what iperf3 prints with -J, and the share of a bond's slaves.
type Report struct {
	Start     Start      `json:"start"`
	Intervals []Interval `json:"intervals"`
	End       End        `json:"end"`
	Bond      *Bond      `json:"bondstack,omitempty"` // of the whole test
	Error     string     `json:"error,omitempty"`
	// LeftOut counts the intervals that were too many to keep.
	LeftOut int `json:"intervals_left_out,omitempty"`

	rows int
}

// Start says what was tested.
type Start struct {
	Connected []Connected `json:"connected"`
	Version   string      `json:"version"`
	System    string      `json:"system_info"`
	Timestamp Timestamp   `json:"timestamp"`
	To        *Peer       `json:"connecting_to,omitempty"`       // of a client
	From      *Peer       `json:"accepted_connection,omitempty"` // of a server
	Cookie    string      `json:"cookie"`
	MSS       int         `json:"tcp_mss_default,omitempty"`
	Rate      uint64      `json:"target_bitrate"`
	Test      TestStart   `json:"test_start"`
}

// Connected is a stream.
type Connected struct {
	Socket     int    `json:"socket"`
	LocalHost  string `json:"local_host"`
	LocalPort  int    `json:"local_port"`
	RemoteHost string `json:"remote_host"`
	RemotePort int    `json:"remote_port"`
}

// Timestamp is when a test began.
type Timestamp struct {
	Time    string `json:"time"`
	Seconds int64  `json:"timesecs"`
}

// Peer is the other end of the control connection.
type Peer struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

// TestStart are the settings of a test.
type TestStart struct {
	Protocol string `json:"protocol"` // TCP or UDP
	Streams  int    `json:"num_streams"`
	Block    int    `json:"blksize"`  // bytes
	Omit     int    `json:"omit"`     // seconds
	Duration int    `json:"duration"` // seconds
	Bytes    uint64 `json:"bytes"`
	Blocks   uint64 `json:"blocks"`
	Reverse  int    `json:"reverse"`
	Bidir    int    `json:"bidir"`
	TOS      int    `json:"tos"`
	Rate     uint64 `json:"target_bitrate"`
}

// Interval is what was carried in one.
type Interval struct {
	Streams []Row `json:"streams"`
	Sum     Row   `json:"sum"`
	Reverse *Row  `json:"sum_bidir_reverse,omitempty"`
	Bond    *Bond `json:"bondstack,omitempty"`
}

// Row is what a stream, or several, carried in a time. What is not known, or not of
// the protocol or the direction, is left out.
type Row struct {
	Socket      int      `json:"socket,omitempty"`
	Start       float64  `json:"start"`   // seconds
	End         float64  `json:"end"`     // seconds
	Seconds     float64  `json:"seconds"` // between the two
	Bytes       uint64   `json:"bytes"`
	Bits        float64  `json:"bits_per_second"`
	Retransmits *uint64  `json:"retransmits,omitempty"`
	Cwnd        *uint64  `json:"snd_cwnd,omitempty"`     // bytes
	RTT         *int64   `json:"rtt,omitempty"`          // microseconds
	RTTVar      *int64   `json:"rttvar,omitempty"`       // microseconds
	MaxCwnd     *uint64  `json:"max_snd_cwnd,omitempty"` // bytes
	MaxRTT      *int64   `json:"max_rtt,omitempty"`      // microseconds
	MinRTT      *int64   `json:"min_rtt,omitempty"`      // microseconds
	MeanRTT     *int64   `json:"mean_rtt,omitempty"`     // microseconds
	Jitter      *float64 `json:"jitter_ms,omitempty"`
	Lost        *int64   `json:"lost_packets,omitempty"`
	Packets     *uint64  `json:"packets,omitempty"`
	LostPercent *float64 `json:"lost_percent,omitempty"`
	OutOfOrder  *uint64  `json:"out_of_order,omitempty"`
	Omitted     *bool    `json:"omitted,omitempty"`
	Sender      bool     `json:"sender"` // this end sends
}

// End is what was carried in the whole test. It is empty for one that failed.
type End struct {
	Streams         []StreamEnd `json:"streams,omitempty"`
	Sum             *Row        `json:"sum,omitempty"` // of datagrams
	SumSent         *Row        `json:"sum_sent,omitempty"`
	SumReceived     *Row        `json:"sum_received,omitempty"`
	SumReverse      *Row        `json:"sum_bidir_reverse,omitempty"`
	ReverseSent     *Row        `json:"sum_sent_bidir_reverse,omitempty"`
	ReverseReceived *Row        `json:"sum_received_bidir_reverse,omitempty"`
	CPU             *CPU        `json:"cpu_utilization_percent,omitempty"`
}

// StreamEnd is a stream at both ends: Sender and Receiver with TCP, and UDP with
// datagrams.
type StreamEnd struct {
	Sender   *Row `json:"sender,omitempty"`
	Receiver *Row `json:"receiver,omitempty"`
	UDP      *Row `json:"udp,omitempty"`
}

// CPU is the use of CPU of both ends in percent of one CPU.
type CPU struct {
	HostTotal    float64 `json:"host_total"`
	HostUser     float64 `json:"host_user"`
	HostSystem   float64 `json:"host_system"`
	RemoteTotal  float64 `json:"remote_total"`
	RemoteUser   float64 `json:"remote_user"`
	RemoteSystem float64 `json:"remote_system"`
}

// maxRows is how many rows of streams a report keeps.
const maxRows = 1 << 17

// add keeps an interval, if there are not too many.
func (r *Report) add(i Interval) {
	if r.rows += len(i.Streams); r.rows > maxRows {
		r.LeftOut++
		return
	}
	r.Intervals = append(r.Intervals, i)
}

// begin reports what is tested.
func (t *test) begin(cookie string, to, from *Peer) {
	now := time.Now()
	s := t.set
	protocol := "TCP"
	if s.udp {
		protocol = "UDP"
	}
	start := &t.report.Start
	*start = Start{Connected: []Connected{}, Version: "iperf " + compatible, System: "bondstack " + runtime.GOOS + " " + runtime.GOARCH,
		Timestamp: Timestamp{now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), now.Unix()}, To: to, From: from,
		Cookie: cookie, Rate: s.rate}
	start.Test = TestStart{Protocol: protocol, Streams: s.parallel, Block: s.block, Omit: int(s.omit / time.Second),
		Duration: int(s.time / time.Second), Bytes: s.bytes, Blocks: s.blocks, Reverse: bit(s.reverse), Bidir: bit(s.bidir), Rate: s.rate}
	if !s.udp {
		start.MSS = t.mss
	}
	for _, st := range t.streams {
		c := Connected{Socket: st.socket}
		c.LocalHost, c.LocalPort = addrPort(st.local)
		c.RemoteHost, c.RemotePort = addrPort(st.remote)
		start.Connected = append(start.Connected, c)
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
