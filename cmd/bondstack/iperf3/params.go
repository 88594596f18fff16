package iperf3

import (
	"math"
	"time"
)

// The limits that iperf3 has, beside those of the server.
const (
	maxParallel   = 128
	maxTime       = 86400 // seconds
	maxOmit       = 60    // seconds
	maxBlock      = 1 << 20
	maxBurst      = 1000
	minDatagram   = 16
	maxDatagram   = 65507
	defaultBlock  = 128 << 10
	defaultUDP    = 1 << 20 // bits a second
	maxRate       = 1 << 50 // bits a second
	maxTestAmount = 1 << 62 // bytes or blocks
)

// params are the parameters of a test on the wire. The client sends them.
type params struct {
	TCP      truth  `json:"tcp,omitempty"`
	UDP      truth  `json:"udp,omitempty"`
	SCTP     truth  `json:"sctp,omitempty"`
	Omit     number `json:"omit"`
	Time     number `json:"time"`
	Num      number `json:"num"`        // bytes
	Blocks   number `json:"blockcount"` // of Len bytes
	Parallel number `json:"parallel"`
	Reverse  truth  `json:"reverse,omitempty"`
	Bidir    truth  `json:"bidirectional,omitempty"`
	Len      number `json:"len"`
	Rate     number `json:"bandwidth,omitempty"` // bits a second
	Burst    number `json:"burst,omitempty"`
	Pacing   number `json:"pacing_timer,omitempty"`
	Counters number `json:"udp_counters_64bit,omitempty"`
	NoDelay  truth  `json:"nodelay,omitempty"`
	Version  string `json:"client_version,omitempty"`

	// What is not honoured; it is told of.
	MSS        number `json:"MSS,omitempty"`
	Window     number `json:"window,omitempty"`
	TOS        number `json:"TOS,omitempty"`
	FlowLabel  number `json:"flowlabel,omitempty"`
	Congestion string `json:"congestion,omitempty"`
	FqRate     number `json:"fqrate,omitempty"`
	Output     truth  `json:"get_server_output,omitempty"`
}

// settings are the parameters of a test, checked.
type settings struct {
	udp            bool
	omit, time     time.Duration // time is 0 where bytes or blocks end the test
	bytes, blocks  uint64        // 0: no such end
	parallel       int
	reverse, bidir bool
	block          int    // bytes
	rate           uint64 // bits a second, 0: no limit
	burst          int    // blocks at once
	counters64     bool
	noDelay        bool
}

// wire returns the settings as parameters.
func (s *settings) wire() params {
	p := params{
		TCP: truth(!s.udp), UDP: truth(s.udp),
		Omit: number(s.omit / time.Second), Time: number(s.time / time.Second), Num: number(s.bytes), Blocks: number(s.blocks),
		Parallel: number(s.parallel), Reverse: truth(s.reverse), Bidir: truth(s.bidir), Len: number(s.block),
		Rate: number(s.rate), Burst: number(s.burst), Pacing: 1000, NoDelay: truth(s.noDelay), Version: compatible,
	}
	if s.counters64 {
		p.Counters = 1
	}
	return p
}

// compatible is the version of iperf3 whose protocol this is.
const compatible = "3.12"

// settings checks the parameters. A test may take at most so long.
func (p *params) settings(longest time.Duration) (*settings, error) {
	s := &settings{udp: bool(p.UDP), reverse: bool(p.Reverse), bidir: bool(p.Bidir), noDelay: bool(p.NoDelay), counters64: p.Counters != 0}
	if p.SCTP || p.TCP == p.UDP {
		return nil, faultf(faultNotHere, "a test is of either TCP or UDP")
	}
	var err error
	read := func(n number, most uint64, f fault, name string) uint64 {
		v, ok := n.whole(most)
		if !ok && err == nil {
			err = faultf(f, "%s is %v, allowed are 0 to %d", name, float64(n), most)
		}
		return v
	}
	seconds := min(uint64(longest/time.Second), maxTime)
	s.omit = time.Duration(read(p.Omit, maxOmit, faultOmit, "omit")) * time.Second
	s.time = time.Duration(read(p.Time, seconds, faultDuration, "time")) * time.Second
	s.bytes = read(p.Num, maxTestAmount, faultConditions, "num")
	s.blocks = read(p.Blocks, maxTestAmount, faultConditions, "blockcount")
	s.parallel = int(read(p.Parallel, maxParallel, faultStreams, "parallel"))
	s.block = int(read(p.Len, maxBlock, faultBlockSize, "len"))
	s.rate = read(p.Rate, maxRate, faultRate, "bandwidth")
	s.burst = int(read(p.Burst, maxBurst, faultBurst, "burst"))
	if err != nil {
		return nil, err
	}
	return s, s.check()
}

// check sets what is left to the default, and checks what belongs together.
func (s *settings) check() error {
	ends := 0
	for _, given := range []bool{s.time > 0, s.bytes > 0, s.blocks > 0} {
		if given {
			ends++
		}
	}
	s.parallel = max(s.parallel, 1)
	switch {
	case ends > 1:
		return faultf(faultConditions, "time, bytes and blocks exclude each other")
	case ends == 0:
		return faultf(faultDuration, "a test without an end")
	case s.reverse && s.bidir:
		return faultf(faultDirections, "reverse and both ways exclude each other")
	case s.udp && (s.block < minDatagram || s.block > maxDatagram):
		return faultf(faultUDPSize, "a datagram has %d bytes, allowed are %d to %d", s.block, minDatagram, maxDatagram)
	case s.block < 1 || s.block > maxBlock:
		return faultf(faultBlockSize, "a block has %d bytes, allowed are 1 to %d", s.block, maxBlock)
	}
	return nil
}

// quota returns how many blocks end the test, or the greatest number.
func (s *settings) quota() int64 {
	switch {
	case s.bytes > 0:
		return int64((s.bytes-1)/uint64(s.block) + 1)
	case s.blocks > 0:
		return int64(s.blocks)
	}
	return math.MaxInt64
}

// ignored names the wishes that are not honoured.
func (p *params) ignored() (names []string) {
	for _, w := range []struct {
		name string
		set  bool
	}{
		{"MSS", p.MSS != 0}, {"window", p.Window != 0}, {"TOS", p.TOS != 0}, {"flowlabel", p.FlowLabel != 0},
		{"congestion", p.Congestion != ""}, {"fqrate", p.FqRate != 0}, {"get_server_output", bool(p.Output)},
	} {
		if w.set {
			names = append(names, w.name)
		}
	}
	return names
}

// directions says for each stream of a test, in the order of connecting, whether
// the client sends by it.
func (s *settings) directions() []bool {
	var list []bool
	for range s.parallel {
		list = append(list, !s.reverse)
	}
	if s.bidir {
		list = append(list, make([]bool, s.parallel)...)
	}
	return list
}
