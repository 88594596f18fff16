package wire_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// trace sends n frames, one each millisecond, and returns what arrived and when.
func trace(tb testing.TB, seed uint64, im wire.Impairments, n int) []string {
	x := newBench(tb, wire.Options{Seed: seed, A: wire.EndOptions{Impairments: im}})
	var trace []string
	start := x.clock.NowMonotonic()
	x.sink.OnDeliver(func(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
		v := p.ToView()
		defer v.Release()
		trace = append(trace, fmt.Sprintf("%v %x", x.clock.NowMonotonic().Sub(start), v.AsSlice()))
	})
	for i := range n {
		x.write(tb, frame(i))
		x.clock.Advance(time.Millisecond)
	}
	x.clock.Advance(time.Hour)
	return trace
}

// The same seed gives the same trace, another seed another.
func TestImpairmentsReplay(t *testing.T) {
	for name, im := range map[string]wire.Impairments{
		"loss":      {Loss: 0.3},
		"corrupt":   {Corrupt: 0.3},
		"duplicate": {Duplicate: 0.3},
		"jitter":    {Delay: 5 * time.Millisecond, Jitter: 3 * time.Millisecond},
		"reorder":   {Reorder: 0.3, ReorderDelay: 2500 * time.Microsecond},
		"all": {Loss: 0.1, Corrupt: 0.1, Duplicate: 0.1, Rate: 1e6, Delay: 5 * time.Millisecond,
			Jitter: 2 * time.Millisecond, Reorder: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := trace(t, 1, im, 200), trace(t, 1, im, 200)
			if !slices.Equal(one, two) {
				t.Errorf("two runs differ:\n%v\n%v", one, two)
			}
			if slices.Equal(one, trace(t, 2, im, 200)) {
				t.Error("another seed gives the same trace")
			}
			if len(one) < 100 {
				t.Errorf("only %d frames arrived", len(one))
			}
		})
	}
}

func TestLoss(t *testing.T) {
	x := newBench(t, wire.Options{Seed: 5, A: wire.EndOptions{Impairments: wire.Impairments{Loss: 0.25}}})
	for i := range 4000 {
		x.write(t, frame(i))
	}
	s := x.a.Stats()
	got := numbers(x.sink.Delivered())
	if s.Impaired.Lost < 850 || s.Impaired.Lost > 1150 || len(got)+int(s.Impaired.Lost) != 4000 || s.TxFrames != 4000 {
		t.Errorf("%d delivered, Stats() = %+v, want about a quarter of 4000 lost", len(got), s)
	}
	if !slices.IsSorted(got) {
		t.Error("frames came out of order")
	}
}

func TestDuplicate(t *testing.T) {
	x := newBench(t, wire.Options{A: wire.EndOptions{Impairments: wire.Impairments{Duplicate: 1}}})
	x.write(t, frame(1), frame(2))
	if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{1, 1, 2, 2}) {
		t.Errorf("delivered %v", got)
	}
	if n := x.a.Stats().Impaired.Duplicated; n != 2 {
		t.Errorf("Duplicated = %d", n)
	}
}

// One bit is turned, in memory that the sender does not share, and the receiver no
// longer vouches for checksums.
func TestCorrupt(t *testing.T) {
	x := newBench(t, wire.Options{})
	if x.b.Capabilities()&stack.CapabilityRXChecksumOffload == 0 {
		t.Error("a good wire does not vouch for checksums")
	}
	if err := x.a.SetImpairments(wire.Impairments{Corrupt: 1}); err != nil {
		t.Fatal(err)
	}
	sent := linktest.Flow4(0).UDP(make([]byte, 1000))
	p := linktest.Packet(sent)
	for range 200 {
		var list stack.PacketBufferList
		list.PushBack(p)
		x.a.WritePackets(list)
	}
	v := p.ToView()
	if !slices.Equal(v.AsSlice(), sent) {
		t.Error("the sender's packet was corrupted")
	}
	v.Release()
	p.DecRef()
	places := make(map[int]bool)
	for _, d := range x.sink.Delivered() {
		bits := 0
		for i := range sent {
			for b := (sent[i] ^ d.Frame[i]); b != 0; b &= b - 1 {
				bits++
				places[i] = true
			}
		}
		if bits != 1 || d.RXChecksumValidated {
			t.Errorf("%d bits turned, RXChecksumValidated %v", bits, d.RXChecksumValidated)
		}
	}
	if len(places) < 100 {
		t.Errorf("bits turned at %d places only", len(places))
	}
	x.a.SetImpairments(wire.Impairments{})
	if x.b.Capabilities()&stack.CapabilityRXChecksumOffload != 0 || x.a.Capabilities()&stack.CapabilityRXChecksumOffload == 0 {
		t.Error("the receiver must go on to doubt, the sender has no reason")
	}
}

// A checksum that the sender left to the link is completed for a receiver that
// verifies, whether or not the frame passes an impairment.
func TestCorruptCompletesChecksums(t *testing.T) {
	for _, f := range []linktest.Flow{linktest.Flow4(0), linktest.Flow6(0)} {
		x := newBench(t, wire.Options{A: wire.EndOptions{Impairments: wire.Impairments{Corrupt: 1e-12}}})
		whole := f.TCP(linktest.Segment{Payload: []byte(strings.Repeat("payload", 5001))})
		send := func() {
			p := linktest.GSOPacket(whole, 1000)
			defer p.DecRef()
			var list stack.PacketBufferList
			list.PushBack(p)
			x.a.WritePackets(list)
		}
		send()
		x.a.SetImpairments(wire.Impairments{})
		send()
		for i, d := range x.sink.Await(t, 2) {
			if !slices.Equal(d.Frame, whole) || d.GSO.NeedsCsum {
				t.Errorf("frame %d: checksum is not complete: NeedsCsum %v", i, d.GSO.NeedsCsum)
			}
		}
	}
}

func TestCut(t *testing.T) {
	x := newBench(t, wire.Options{})
	var back linktest.Sink
	x.a.SetPromiscuous(true)
	x.a.Attach(&back)
	x.a.SetCut(true)
	x.write(t, frame(1), frame(2))
	linktest.Write(x.b, frame(3))
	if !x.a.LinkState().Usable() || !x.b.LinkState().Usable() {
		t.Error("a cut in one direction took the carrier")
	}
	if n := len(x.sink.Delivered()); n != 0 || len(back.Delivered()) != 1 {
		t.Errorf("%d frames came through the cut, %d the other way", n, len(back.Delivered()))
	}
	if s := x.a.Stats(); s.Impaired.Cut != 2 || s.TxFrames != 2 {
		t.Errorf("Stats() = %+v", s)
	}
	x.a.SetCut(false)
	x.write(t, frame(4))
	if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{4}) {
		t.Errorf("delivered %v after the cut", got)
	}
	if im := x.a.Impairments(); im != (wire.Impairments{}) {
		t.Errorf("Impairments() = %+v", im)
	}
}

// arrivals returns "number@time" of all that has arrived, in order.
func (x *bench) arrivals() func() []string {
	start := x.clock.NowMonotonic()
	var a []string
	x.sink.OnDeliver(func(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
		v := p.ToView()
		defer v.Release()
		a = append(a, fmt.Sprintf("%d@%v", number(v.AsSlice()), x.clock.NowMonotonic().Sub(start)))
	})
	return func() []string { return a }
}

func TestTimes(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name string
		im   wire.Impairments
		want []string
	}{
		{"delay", wire.Impairments{Delay: 5 * ms}, []string{"0@5ms", "1@5ms", "2@6ms", "3@6ms"}},
		// 100 bytes are 800 bits, 0.8 ms at 1 Mbit/s.
		{"rate", wire.Impairments{Rate: 1e6}, []string{"0@800µs", "1@1.6ms", "2@2.4ms", "3@3.2ms"}},
		{"rate and delay", wire.Impairments{Rate: 1e6, Delay: 10 * ms}, []string{"0@10.8ms", "1@11.6ms", "2@12.4ms", "3@13.2ms"}},
		{"slow", wire.Impairments{Rate: 1}, []string{"0@13m20s", "1@26m40s", "2@40m0s", "3@53m20s"}},
		{"reorder", wire.Impairments{Reorder: 1}, []string{"0@1ms", "1@1ms", "2@2ms", "3@2ms"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newBench(t, wire.Options{A: wire.EndOptions{Impairments: tt.im}})
			got := x.arrivals()
			x.write(t, frame(0), frame(1))
			x.clock.Advance(ms)
			x.write(t, frame(2), frame(3))
			x.clock.Advance(time.Hour)
			if !slices.Equal(got(), tt.want) {
				t.Errorf("arrivals = %v, want %v", got(), tt.want)
			}
		})
	}
}

// Jitter stays in its range and reorders nothing.
func TestJitter(t *testing.T) {
	x := newBench(t, wire.Options{A: wire.EndOptions{Impairments: wire.Impairments{Delay: time.Millisecond, Jitter: 5 * time.Millisecond}}})
	var at []time.Duration
	start := x.clock.NowMonotonic()
	x.sink.OnDeliver(func(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {
		at = append(at, x.clock.NowMonotonic().Sub(start))
	})
	for i := range 500 {
		x.write(t, frame(i))
		x.clock.Advance(10 * time.Millisecond)
	}
	atOnce := 0
	for i, a := range at {
		late := a - time.Duration(i)*10*time.Millisecond
		if late < 0 || late > 6*time.Millisecond {
			t.Errorf("frame %d took %v", i, late)
		}
		if late == 0 {
			atOnce++
		}
	}
	if got := numbers(x.sink.Delivered()); len(got) != 500 || !slices.IsSorted(got) || atOnce < 100 || atOnce == 500 {
		t.Errorf("%d arrived, sorted %v, %d at once", len(got), slices.IsSorted(got), atOnce)
	}
}

// A reordered frame is overtaken by those sent in the meantime, and by no others.
func TestReorder(t *testing.T) {
	x := newBench(t, wire.Options{})
	x.a.SetImpairments(wire.Impairments{Reorder: 1, ReorderDelay: 3 * time.Millisecond})
	x.write(t, frame(0))
	x.a.SetImpairments(wire.Impairments{Delay: time.Millisecond})
	x.write(t, frame(1))
	x.clock.Advance(2500 * time.Microsecond)
	x.write(t, frame(2))
	x.clock.Advance(time.Second)
	if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{1, 0, 2}) {
		t.Errorf("delivered %v, want 1, 0, 2", got)
	}
	if n := x.a.Stats().Impaired.Reordered; n != 1 {
		t.Errorf("Reordered = %d", n)
	}
}

// Every frame arrives at its own time, whatever order the times have.
func TestReorderTimes(t *testing.T) {
	const step = 100 * time.Microsecond
	x := newBench(t, wire.Options{A: wire.EndOptions{Impairments: wire.Impairments{
		Delay: 50 * step, Reorder: 0.5, ReorderDelay: 30 * step,
	}}})
	late := make(map[time.Duration]int)
	start := x.clock.NowMonotonic()
	x.sink.OnDeliver(func(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
		v := p.ToView()
		defer v.Release()
		late[x.clock.NowMonotonic().Sub(start)-time.Duration(number(v.AsSlice()))*step]++
	})
	for i := range 1000 {
		x.write(t, frame(i))
		x.clock.Advance(step)
	}
	x.clock.Advance(time.Second)
	held := int(x.a.Stats().Impaired.Reordered)
	if len(late) != 2 || late[50*step] != 1000-held || late[80*step] != held || held < 400 || held > 600 {
		t.Errorf("%d held back, frames by time taken: %v", held, late)
	}
	if got := numbers(x.sink.Delivered()); slices.IsSorted(got) {
		t.Error("nothing was reordered")
	}
}

// Turning all impairments off delivers what was held, in order, before frames sent
// later.
func TestOffDeliversHeld(t *testing.T) {
	x := newBench(t, wire.Options{A: wire.EndOptions{Impairments: wire.Impairments{Rate: 1e4, Delay: time.Minute}}})
	x.write(t, frame(0), frame(1), frame(2))
	if len(x.sink.Delivered()) != 0 {
		t.Error("delivered before its time")
	}
	x.a.SetImpairments(wire.Impairments{})
	x.write(t, frame(3))
	if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("delivered %v", got)
	}
	x.clock.Advance(time.Hour)
	if n := len(x.sink.Delivered()); n != 4 {
		t.Errorf("%d delivered", n)
	}
}

// Frames that wait for their turn are bounded in number and in bytes.
func TestRateQueueFull(t *testing.T) {
	for _, o := range []wire.Options{{QueueFrames: 3}, {QueueBytes: 399}} {
		o.A.Impairments = wire.Impairments{Rate: 8000} // 0.1 s a frame
		x := newBench(t, o)
		n, err := linktest.Write(x.a, frame(0), frame(1), frame(2), frame(3), frame(4))
		if _, ok := err.(*tcpip.ErrNoBufferSpace); n != 3 || !ok {
			t.Errorf("WritePackets() = %d, %v, want 3, no buffer space", n, err)
		}
		x.clock.Advance(100 * time.Millisecond)
		if n, _ := linktest.Write(x.a, frame(5), frame(6)); n != 1 {
			t.Errorf("%d taken after one was sent", n)
		}
		x.clock.Advance(time.Minute)
		if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{0, 1, 2, 5}) {
			t.Errorf("delivered %v", got)
		}
		if s := x.a.Stats(); s.Tx.QueueFull != 3 || s.TxFrames != 4 {
			t.Errorf("Stats() = %+v", s)
		}
	}
}

// Held frames go with the end that they are for, not with the one that sent them.
func TestCloseWithHeldFrames(t *testing.T) {
	x := newBench(t, wire.Options{A: wire.EndOptions{Impairments: wire.Impairments{Delay: time.Second}}})
	x.write(t, frame(0))
	x.a.Close()
	x.clock.Advance(time.Second)
	if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{0}) {
		t.Errorf("delivered %v after the sender closed", got)
	}
	y := newBench(t, wire.Options{A: wire.EndOptions{Impairments: wire.Impairments{Delay: time.Second}}})
	y.write(t, frame(0), frame(1))
	y.b.Close()
	if n := y.b.Stats().Rx.Closed; n != 2 {
		t.Errorf("Rx.Closed = %d, want 2", n)
	}
	y.clock.Advance(time.Second)
	if n := len(y.sink.Delivered()); n != 0 {
		t.Errorf("%d delivered after Close", n)
	}
}

func TestBadImpairments(t *testing.T) {
	x := newBench(t, wire.Options{})
	good := wire.Impairments{Loss: 0.5}
	x.a.SetImpairments(good)
	for _, tt := range []struct {
		im   wire.Impairments
		want string
	}{
		{wire.Impairments{Loss: -0.1}, "loss is -0.1, allowed is 0 to 1"},
		{wire.Impairments{Corrupt: math.NaN()}, "corrupt is NaN"},
		{wire.Impairments{Duplicate: math.Inf(1)}, "duplicate is +Inf"},
		{wire.Impairments{Reorder: 2}, "reorder is 2"},
		{wire.Impairments{Delay: -1}, "delay is -1ns, allowed is 0 to 1 hour"},
		{wire.Impairments{Jitter: 2 * time.Hour}, "jitter is 2h"},
		{wire.Impairments{Loss: 2, ReorderDelay: -1}, "reorder delay is -1ns"},
	} {
		if err := x.a.SetImpairments(tt.im); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("SetImpairments(%+v) = %v, want an error with %q", tt.im, err, tt.want)
		}
		if x.a.Impairments() != good {
			t.Errorf("Impairments() = %+v after an error", x.a.Impairments())
		}
	}
}

// Real time, real goroutines, settings changed while frames flow: every frame is
// delivered or counted.
func TestImpairmentsUnderLoad(t *testing.T) {
	linktest.CheckGoroutines(t)
	a, b := newWire(t, wire.Options{B: wire.EndOptions{Promiscuous: true}})
	var count linktest.Counter
	b.Attach(&count)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 3000 {
			linktest.Write(a, frame(i), frame(i))
		}
	}()
	all := wire.Impairments{Loss: 0.1, Corrupt: 0.1, Duplicate: 0.1, Rate: 1e9, Delay: 50 * time.Microsecond, Jitter: 20 * time.Microsecond, Reorder: 0.1}
	for running := true; running; {
		a.SetImpairments(all)
		a.SetCut(true)
		a.SetImpairments(wire.Impairments{Delay: time.Microsecond})
		a.SetImpairments(wire.Impairments{})
		select {
		case <-done:
			running = false
		default:
		}
	}
	b.Close()
	s, r := a.Stats(), b.Stats()
	if in, out := s.TxFrames+s.Impaired.Duplicated, r.RxFrames+r.Rx.QueueFull+r.Rx.Closed+s.Impaired.Cut+s.Impaired.Lost+r.Rx.Oversize; in != out || s.TxFrames != 6000 {
		t.Errorf("%d went in, %d came out: %+v %+v", in, out, s, r)
	}
	if got := count.Packets.Load(); got != r.RxFrames {
		t.Errorf("RxFrames = %d, the dispatcher saw %d", r.RxFrames, got)
	}
}
