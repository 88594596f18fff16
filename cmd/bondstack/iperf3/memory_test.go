package iperf3

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// Both ends report the same of the same streams: what one has sent and the other
// received, in each direction, with TCP and UDP.
func TestBothEndsAgree(t *testing.T) {
	t.Parallel()
	p := newPair(t, wire.Impairments{}, ServerOptions{})
	for name, o := range map[string]ClientOptions{
		"tcp":           {Bytes: 20 << 20, Parallel: 3},
		"tcp reverse":   {Blocks: 100, Reverse: true},
		"tcp bidir":     {Bytes: 20 << 20, Bidir: true, Parallel: 2},
		"udp":           {UDP: true, Bytes: 1 << 20, Rate: 80e6, Parallel: 2},
		"udp unlimited": {UDP: true, Bytes: 1 << 20, Unlimited: true, Length: 1000},
		"udp reverse":   {UDP: true, Blocks: 500, Rate: 80e6, Reverse: true, Counters64: true},
		"udp bidir":     {UDP: true, Bytes: 1 << 20, Rate: 80e6, Bidir: true, Burst: 10},
	} {
		c, s := p.run(t, o)
		agree(t, name, "sent", c.End.SumSent, s.End.SumSent)
		agree(t, name, "received", c.End.SumReceived, s.End.SumReceived)
		if o.Bidir {
			agree(t, name, "sent reverse", c.End.ReverseSent, s.End.ReverseSent)
			agree(t, name, "received reverse", c.End.ReverseReceived, s.End.ReverseReceived)
		}
		if !o.UDP && (c.End.SumSent.Bytes != c.End.SumReceived.Bytes || o.Bidir && c.End.ReverseSent.Bytes != c.End.ReverseReceived.Bytes) {
			t.Errorf("%s: what was sent did not all come: %+v", name, c.End)
		}
		if n := max(o.Parallel, 1) * (1 + bit(o.Bidir)); len(c.End.Streams) != n || len(s.End.Streams) != n || len(c.Start.Connected) != n {
			t.Errorf("%s: %d and %d streams, %d connected, want %d", name, len(c.End.Streams), len(s.End.Streams), len(c.Start.Connected), n)
		}
		want := o.Bytes
		if want == 0 {
			want = o.Blocks * uint64(c.Start.Test.Block)
		}
		most := max(c.End.SumSent.Bytes, c.End.SumReceived.Bytes)
		if o.Bidir {
			most = max(most, c.End.ReverseReceived.Bytes)
		}
		if most < want {
			t.Errorf("%s: %d bytes, want %d at least", name, most, want)
		}
		if total(c) != c.End.SumSent.Bytes && !o.Reverse {
			t.Errorf("%s: intervals have %d bytes, all %d", name, total(c), c.End.SumSent.Bytes)
		}
		if !o.UDP && !o.Reverse && c.End.SumSent.Retransmits == nil {
			t.Errorf("%s: retransmits are unknown", name)
		}
		if !o.UDP && !o.Reverse && c.End.Streams[0].Sender.MaxCwnd == nil {
			t.Errorf("%s: the congestion window is unknown", name)
		}
		if c.Start.Cookie != s.Start.Cookie || len(c.Start.Cookie) != cookieSize-1 {
			t.Errorf("%s: cookies %q and %q", name, c.Start.Cookie, s.Start.Cookie)
		}
	}
}

// agree compares what the ends say of the same.
func agree(t *testing.T, name, what string, c, s *Row) {
	t.Helper()
	if c == nil || s == nil {
		t.Errorf("%s: %s is missing: %v, %v", name, what, c, s)
		return
	}
	if c.Bytes != s.Bytes || math.Abs(c.Seconds-s.Seconds) > 1e-9 || c.Bytes > 0 && math.Abs(c.Bits/s.Bits-1) > 1e-6 {
		t.Errorf("%s: %s: the client says %d bytes in %v s, the server %d in %v s", name, what, c.Bytes, c.Seconds, s.Bytes, s.Seconds)
	}
	if (c.Packets == nil) != (s.Packets == nil) || c.Packets != nil && (*c.Packets != *s.Packets || *c.Lost != *s.Lost) {
		t.Errorf("%s: %s: datagrams differ: %+v, %+v", name, what, c, s)
	}
}

func total(r *Report) (n uint64) {
	for _, i := range r.Intervals {
		if !*i.Sum.Omitted {
			n += i.Sum.Bytes
		}
	}
	return n
}

// A test by time, with a rate: what is omitted is not counted, by either end, and
// intervals have their length.
func TestOmitAndRate(t *testing.T) {
	t.Parallel()
	p := newPair(t, wire.Impairments{}, ServerOptions{})
	o := ClientOptions{Time: time.Second, Omit: time.Second, UDP: true, Rate: 20e6, Length: 1000}
	o.Interval = 500 * time.Millisecond
	c, s := p.run(t, o)
	agree(t, "omit", "sent", c.End.SumSent, s.End.SumSent)
	agree(t, "omit", "received", c.End.SumReceived, s.End.SumReceived)
	omitted := 0
	for _, i := range c.Intervals {
		if *i.Sum.Omitted {
			omitted++
		}
	}
	if omitted != 2 || len(c.Intervals) < 3 {
		t.Errorf("%d intervals, of which %d omitted, want 4 and 2", len(c.Intervals), omitted)
	}
	if total(c) != c.End.SumSent.Bytes {
		t.Errorf("intervals have %d bytes, all %d", total(c), c.End.SumSent.Bytes)
	}
	// Packets count from the beginning on the wire, and not in the report.
	if got := *c.End.SumSent.Packets; got*1000 != c.End.SumSent.Bytes {
		t.Errorf("%d datagrams of 1000 bytes are %d bytes", got, c.End.SumSent.Bytes)
	}
	// A sender may be late, and is never early.
	bytes, seconds := 0.0, 0.0
	for _, i := range c.Intervals {
		bytes, seconds = bytes+float64(i.Sum.Bytes), seconds+i.Sum.Seconds
	}
	if most := 20e6/8*seconds*1.02 + 1000; bytes > most || bytes == 0 {
		t.Errorf("%.0f bytes in %v s, want at most %.0f", bytes, seconds, most)
	}
}

// What a link loses is reported as lost, by both ends.
func TestLoss(t *testing.T) {
	t.Parallel()
	p := newPair(t, wire.Impairments{Loss: 0.1}, ServerOptions{})
	o := ClientOptions{Blocks: 3000, UDP: true, Rate: 100e6, Length: 1000}
	c, s := p.run(t, o)
	agree(t, "loss", "received", c.End.SumReceived, s.End.SumReceived)
	sum := c.End.Sum
	if *sum.Lost < 200 || *sum.Lost > 400 || *sum.LostPercent < 6 || *sum.LostPercent > 14 {
		t.Errorf("%d of %d datagrams lost, %v %%, want about 10 %% of 3000", *sum.Lost, *sum.Packets, *sum.LostPercent)
	}
	if got := *sum.Packets - uint64(*sum.Lost); got*1000 != c.End.SumReceived.Bytes {
		t.Errorf("%d datagrams and %d bytes came, want 1000 bytes each", got, c.End.SumReceived.Bytes)
	}
}

// The text has iperf3's columns, the sum and the slaves' shares.
func TestText(t *testing.T) {
	t.Parallel()
	p := newPair(t, wire.Impairments{}, ServerOptions{})
	var b bytes.Buffer
	o := ClientOptions{Host: serverAddress, Bytes: 4 << 20, Parallel: 2}
	o.Out = &b
	n := uint64(0)
	o.Slaves = func() []SlaveBytes {
		n += 1 << 20
		return []SlaveBytes{{"eth0", 3 * n, n}, {"eth1", n, 0}}
	}
	r, err := Run(t.Context(), p.client, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Connecting to host 10.0.0.2, port 5201\n", "[  5] local 10.0.0.1 port ", "connected to 10.0.0.2 port 5201\n",
		"[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n", "[  7]   0.00-", "[SUM]   0.00-",
		"  4.00 MBytes  ", "sender\n", "receiver\n", "eth0 ", "  75.0 %", " 100.0 %", "\niperf Done.\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text has no %q:\n%s", want, b.String())
		}
	}
	if r.Bond == nil || len(r.Bond.Slaves) != 2 || *r.Bond.Slaves[0].TxShare != 0.75 || r.Intervals[0].Bond == nil {
		t.Errorf("shares of the slaves: %+v", r.Bond)
	}
}

// Whoever ends it, a test ends, and both say why.
func TestInterrupted(t *testing.T) {
	linktest.CheckGoroutines(t)
	for _, who := range []string{"client", "server"} {
		p := newPair(t, wire.Impairments{}, ServerOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := make(chan struct{}, 100)
		o := ClientOptions{Host: serverAddress, Time: time.Hour, Bidir: true}
		o.Interval, o.Slaves = minInterval, func() []SlaveBytes { began <- struct{}{}; return nil }
		done := make(chan error, 1)
		go func() {
			_, err := Run(ctx, p.client, o)
			done <- err
		}()
		<-began
		<-began // data flows
		want := errClientEnded
		if who == "client" {
			cancel()
		} else {
			want = errServerEnded
			p.stop()
		}
		if err := <-done; !errors.Is(err, want) {
			t.Errorf("the %s was interrupted: Run() = %v, want %v", who, err, want)
		}
		if r := p.report(t); r.Error != want.Error() || r.Intervals == nil {
			t.Errorf("the %s was interrupted: the server says %q, want %q", who, r.Error, want)
		}
	}
}
