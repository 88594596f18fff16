package iperf3

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"
)

// A hello is answered in its form and byte order.
func TestHello(t *testing.T) {
	for _, tt := range []struct{ hello, reply string }{
		{"9876", "6789"}, // of a machine with the least byte first
		{"6789", "9876"},
		{"\x15\xcd\x5b\x07", "\xb1\x68\xde\x3a"}, // before 3.12
		{"\x07\x5b\xcd\x15", "\x3a\xde\x68\xb1"},
	} {
		reply, ok := replyTo([]byte(tt.hello))
		if !ok || string(reply[:]) != tt.reply {
			t.Errorf("replyTo(%q) = %q, %v, want %q", tt.hello, reply, ok, tt.reply)
		}
		if !isReply(reply[:]) {
			t.Errorf("%q is no reply", reply)
		}
	}
	for _, other := range []string{"", "987", "98765", "9877", "\x00\x00\x00\x00"} {
		if _, ok := replyTo([]byte(other)); ok {
			t.Errorf("%q is a hello", other)
		}
		if isReply([]byte(other)) {
			t.Errorf("%q is a reply", other)
		}
	}
}

func TestHeader(t *testing.T) {
	at := 5*time.Second + 7*time.Microsecond
	var b [16]byte
	putHeader(b[:], at, 1<<40+3, true)
	if got, n, ok := parseHeader(b[:], true); got != at || n != 1<<40+3 || !ok {
		t.Errorf("64 bits: %v, %d, %v", got, n, ok)
	}
	putHeader(b[:], at, 9, false)
	if want := []byte{0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 9}; !bytes.Equal(b[:12], want) {
		t.Errorf("32 bits: %x, want %x", b[:12], want)
	}
	for _, wide := range []bool{false, true} {
		if _, _, ok := parseHeader(b[:11], wide); ok {
			t.Error("11 bytes are a header")
		}
	}
	if _, _, ok := parseHeader(b[:15], true); ok {
		t.Error("15 bytes are a header with 64 bits")
	}
}

// Losses, order and jitter of datagrams that come with known delays.
func TestArrivals(t *testing.T) {
	var a arrivals
	ms := time.Millisecond
	for _, d := range []struct {
		n       uint64
		transit time.Duration
	}{{1, 10 * ms}, {2, 10 * ms}, {5, 26 * ms}, {3, 26 * ms}, {6, 26 * ms}, {1 << 50, 0}} {
		a.add(d.n, time.Second, time.Second+d.transit)
	}
	// 4 is missing; 3 came late; the jump of 16 ms adds 1 ms, and each
	// datagram without one takes a sixteenth.
	if want := 0.001 * 15 / 16 * 15 / 16; a.packets != 6 || a.lost != 1 || a.outOfOrder != 1 || math.Abs(a.jitter-want) > 1e-12 {
		t.Errorf("got %+v, want 6 packets, 1 lost, 1 out of order, jitter %v", a, want)
	}
}

func TestPacer(t *testing.T) {
	for _, tt := range []struct {
		p            pacer
		blocks, sent uint64
		since, want  time.Duration
	}{
		{pacer{0, 0}, 5, 1 << 30, 0, 0},
		{pacer{8e6, 0}, 0, 0, 0, 0},
		{pacer{8e6, 0}, 1, 10000, 0, 10 * time.Millisecond},
		{pacer{8e6, 0}, 1, 10000, 4 * time.Millisecond, 6 * time.Millisecond},
		{pacer{8e6, 0}, 1, 10000, 20 * time.Millisecond, 0},
		{pacer{8e6, 0}, 1, 100, 0, pacerTick}, // less than a tick
		{pacer{8e6, 10}, 5, 10000, 0, 0},      // in a burst
		{pacer{8e6, 10}, 10, 10000, 0, 10 * time.Millisecond},
	} {
		if got := tt.p.wait(tt.blocks, tt.sent, tt.since); got != tt.want {
			t.Errorf("%+v.wait(%d, %d, %v) = %v, want %v", tt.p, tt.blocks, tt.sent, tt.since, got, tt.want)
		}
	}
}

func TestAmount(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		step float64
		want string
	}{
		{0, 1024, "0.00 Bytes"}, {1023, 1024, "1023 Bytes"}, {1024, 1024, "1.00 KBytes"}, {12.7 * 1024, 1024, "12.7 KBytes"},
		{994 << 20, 1024, " 994 MBytes"}, {1.25e9, 1000, "1.25 GBytes"}, {9.996e6, 1000, "10.0 MBytes"}, {99.96e3, 1000, " 100 KBytes"},
		{1e16, 1000, "10000 TBytes"},
	} {
		if got := amount(tt.v, tt.step, "Bytes"); got != tt.want {
			t.Errorf("amount(%v) = %q, want %q", tt.v, got, tt.want)
		}
	}
}

func TestClientOptions(t *testing.T) {
	good := ClientOptions{Host: "10.0.0.1"}
	if err := good.Validate(); err != nil {
		t.Errorf("Validate() = %v", err)
	}
	for name, o := range map[string]ClientOptions{
		"no host":     {},
		"a name":      {Host: "example"},
		"two ends":    {Host: "10.0.0.1", Time: time.Second, Bytes: 1},
		"half a time": {Host: "10.0.0.1", Time: 1500 * time.Millisecond},
		"long":        {Host: "10.0.0.1", Time: 25 * time.Hour},
		"streams":     {Host: "10.0.0.1", Parallel: 129},
		"less than 0": {Host: "10.0.0.1", Parallel: -1},
		"both":        {Host: "10.0.0.1", Reverse: true, Bidir: true},
		"datagram":    {Host: "10.0.0.1", UDP: true, Length: 65508},
		"interval":    {Host: "10.0.0.1", Options: Options{Interval: time.Millisecond}},
	} {
		if err := o.Validate(); err == nil {
			t.Errorf("%s: Validate() = nil", name)
		}
	}
}

// A slave that came again begins with 0.
func TestSlavesReport(t *testing.T) {
	if slavesReport(nil, []SlaveBytes{{"a", 1, 1}}) != nil {
		t.Error("no slaves have a report")
	}
	got := slavesReport([]SlaveBytes{{"a", 110, 5}, {"b", 30, 5}}, []SlaveBytes{{"a", 100, 5}, {"b", 40, 5}})
	a, b := got.Slaves[0], got.Slaves[1]
	if a.TxBytes != 10 || b.TxBytes != 30 || *a.TxShare != 0.25 || *b.TxShare != 0.75 || a.RxShare != nil {
		t.Errorf("got %+v, %+v", a, b)
	}
}

func FuzzParams(f *testing.F) {
	good, _ := json.Marshal((&settings{time: time.Second, parallel: 2, block: 1000}).wire())
	for _, seed := range []string{string(good), `{"udp":1,"num":1e18,"len":16,"bandwidth":1e15}`, `{"time":1.8446744073709552e+19}`, `null`, `{"tcp":"x"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p params
		if readMessage(bytes.NewReader(message(string(b))), maxParams, &p) != nil {
			return
		}
		s, err := p.settings(time.Hour)
		if err != nil {
			return
		}
		if s.parallel < 1 || s.parallel > maxParallel || s.block < 1 || s.block > maxBlock || s.time > time.Hour || s.omit > time.Minute ||
			s.time == 0 && s.bytes == 0 && s.blocks == 0 || s.quota() < 1 || len(s.directions()) > 2*maxParallel {
			t.Errorf("%s: %+v", b, s)
		}
		w := s.wire()
		if again, err := w.settings(maxTime * time.Second); err != nil || *again != *s {
			t.Errorf("%+v sent and read is %+v, %v", s, again, err)
		}
	})
}

func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"streams":[{"id":1,"bytes":1,"packets":5,"errors":-1,"omitted_packets":9}]}`))
	f.Add([]byte(`{"streams":[{"id":1,"bytes":1e300,"end_time":-5,"retransmits":-1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tt := &test{set: &settings{parallel: 1, udp: true}, report: &Report{}, streams: []*stream{newStream(0, true, true)}}
		if tt.readResults(bytes.NewReader(message(string(b)))) != nil {
			return
		}
		tt.conclude()
		if _, err := json.Marshal(tt.report); err != nil {
			t.Errorf("%s: the report cannot be written: %v", b, err)
		}
	})
}

func FuzzDatagrams(f *testing.F) {
	f.Add([]byte("9876"), []byte{0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3}, false)
	f.Add([]byte("\x15\xcd\x5b\x07"), bytes.Repeat([]byte{0xff}, 16), true)
	f.Fuzz(func(t *testing.T, a, b []byte, wide bool) {
		replyTo(a)
		isReply(a)
		readState(bytes.NewReader(a))
		tt := &test{set: &settings{counters64: wide}}
		tt.running.Store(true)
		tt.toReceive.Store(math.MaxInt64)
		s := newStream(0, false, true)
		s.arrived(tt, a)
		s.arrived(tt, b)
		if got := s.sample(0, 0); got.lost < 0 || math.IsNaN(got.jitter) || got.packets > 2*maxGap {
			t.Errorf("%x, %x: %+v", a, b, got)
		}
	})
}

// What the slaves carried before this end began to count is theirs all the same:
// the other end may have sent it since the streams were there.
func TestSlavesCarryFromTheStart(t *testing.T) {
	carried := uint64(7000)
	o := Options{Slaves: func() []SlaveBytes { return []SlaveBytes{{Name: "s0", Rx: carried}} }}
	tt := newTest(&settings{parallel: 1, block: 1}, true, &o, newPrinter(&o))
	tt.streams = []*stream{newStream(0, false, true)}
	carried += 100
	tt.rebase()
	carried += 20
	tt.settle()
	if got := tt.report.Bond.Slaves[0].RxBytes; got != 120 {
		t.Errorf("s0 carried %d bytes, want 120", got)
	}
}
