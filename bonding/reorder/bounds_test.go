package reorder

import (
	"slices"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A frame that there is no room for ends its flow's wait, in order. The other
// flows go on waiting.
func TestBytesAreBounded(t *testing.T) {
	probe := packet(stream4(0).piece(0))
	room := 5 * probe.MemSize()
	probe.DecRef()
	r := newRig(t, Options{Bytes: room})
	r.seen.Store(3)
	for flow := range 2 {
		r.give(0, 0, stream4(flow).piece(0))
	}
	r.give(0, 50, stream4(1).piece(9))
	r.drain()
	for k := 2; k < 7; k++ {
		r.give(0, uint32(k), stream4(0).piece(k))
	}
	if got, want := r.drain(), []uint32{2, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
	want := Counts{Held: 5, Flushed: 4, Gaps: 1, Overflow: 1}
	if got := r.counters.Counts(); got != want {
		t.Errorf("counts are %+v, want %+v", got, want)
	}
	r.give(0, 7, stream4(0).piece(7))
	r.give(1, 1, stream4(0).piece(1))
	if got := r.drain(); !slices.Equal(got, []uint32{7, 1}) || r.State().Frames != 1 {
		t.Errorf("then delivered %v, and the state is %+v", got, r.State())
	}
}

// The flow that was used longest ago makes room, and what it holds goes on.
func TestFlowsAreBounded(t *testing.T) {
	r := newRig(t, Options{Flows: 4})
	r.seen.Store(3)
	for flow := range 4 {
		r.give(0, uint32(10*flow), stream4(flow).piece(0))
		r.give(0, uint32(10*flow+2), stream4(flow).piece(2))
	}
	r.give(1, 1, stream4(0).piece(1)) // flow 1 is now the oldest
	r.drain()
	r.give(0, 40, stream4(4).piece(0))
	if got, want := r.drain(), []uint32{12, 40}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
	if st, c := r.State(), r.counters.Counts(); st.Flows != 4 || st.Frames != 2 || c.Evicted != 1 {
		t.Errorf("state %+v, counts %+v", st, c)
	}
}

// A piece far ahead is of another stream, and so are many that are behind.
func TestLostPlaceIsFound(t *testing.T) {
	r := newRig(t, Options{})
	r.seen.Store(3)
	s := stream4(0)
	r.give(0, 0, s.piece(0))
	s.origin += maxWindow + 1000
	r.give(1, 1, s.piece(0))
	r.give(0, 3, s.piece(2))
	r.give(1, 2, s.piece(1))
	if got, want := r.drain(), []uint32{0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
	s.origin -= 1 << 29
	for k := range lostPlace + 1 {
		r.give(k%2, 0, s.piece(k))
	}
	r.drain()
	r.give(0, 2, s.piece(lostPlace+2))
	r.give(1, 1, s.piece(lostPlace+1))
	if got, want := r.drain(), []uint32{1, 2}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
}

// The timer runs only while something waits.
func TestTimerRests(t *testing.T) {
	r := newRig(t, Options{Hold: 2 * time.Millisecond})
	r.seen.Store(3)
	r.give(0, 0, stream4(0).piece(0))
	if r.ticker.running.Load() {
		t.Error("the timer runs while nothing waits")
	}
	r.give(0, 2, stream4(0).piece(2))
	if !r.ticker.running.Load() {
		t.Error("the timer does not run while a frame waits")
	}
	r.give(1, 1, stream4(0).piece(1))
	r.clock.Advance(time.Millisecond)
	if r.ticker.running.Load() {
		t.Error("the timer runs on")
	}
	r.clock.Advance(time.Hour)
	if ticks := r.ticker.now.Load(); ticks != 1 {
		t.Errorf("it ticked %d times, want once", ticks)
	}
}

// After Close, and on links that are not told apart, frames pass as they come.
func TestPassing(t *testing.T) {
	r := newRig(t, Options{})
	for k, id := range []uint32{0, 3, 2, 1} {
		r.give(MaxLinks+k, id, stream4(0).piece(int(id)))
	}
	r.give(-1, 9, stream4(0).piece(7))
	r.Close()
	for _, id := range []uint32{0, 3, 2, 1} {
		r.give(0, id, stream4(0).piece(int(id)))
	}
	if got, want := r.drain(), []uint32{0, 3, 2, 1, 9, 0, 3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
}

// inTurn returns packets of a stream as links deliver them: in order, or each
// pair of links the wrong way round.
func inTurn(n int, swapped bool) []*stack.PacketBuffer {
	pkts := make([]*stack.PacketBuffer, n)
	for k := range pkts {
		pkts[k] = packet(stream4(0).piece(k))
	}
	for k := 1; swapped && k+1 < n; k += 2 {
		pkts[k], pkts[k+1] = pkts[k+1], pkts[k]
	}
	return pkts
}

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations are counted without the race detector")
	}
	for name, swapped := range map[string]bool{"in order": false, "out of order": true} {
		pkts := inTurn(2000, swapped)
		s := New(Options{Clock: faketime.NewManualClock(), Deliver: func(*stack.PacketBuffer) {}})
		s.seen.Store(3)
		k := 0
		if got := testing.AllocsPerRun(len(pkts)/2-10, func() {
			s.Receive(0, pkts[k])
			s.Receive(1, pkts[k+1])
			k += 2
		}); got != 0 {
			t.Errorf("%s: %v allocations for two frames, want 0", name, got)
		}
		if held := s.counters.Counts().Held; (held > 0) != swapped {
			t.Errorf("%s: %d frames were held", name, held)
		}
		s.Close()
		for _, pkt := range pkts {
			pkt.DecRef()
		}
	}
}

// BenchmarkReceive gives the time for one frame: of a stream in order, of one
// of which every second frame is held, and of a pure acknowledgement.
func BenchmarkReceive(b *testing.B) {
	for _, bm := range []struct {
		name string
		pkts []*stack.PacketBuffer
	}{
		{"in order", inTurn(1<<12, false)},
		{"out of order", inTurn(1<<12, true)},
		{"ack", []*stack.PacketBuffer{packet(stream4(0).kind(0, "ack"))}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := New(Options{Deliver: func(*stack.PacketBuffer) {}})
			s.seen.Store(3)
			begin := packet(stream4(0).kind(0, "syn"))
			b.ReportAllocs()
			for i := range b.N {
				if i%len(bm.pkts) == 0 && len(bm.pkts) > 1 {
					s.Receive(0, begin)
				}
				s.Receive(i%2, bm.pkts[i%len(bm.pkts)])
			}
			s.Close()
			begin.DecRef()
		})
		for _, pkt := range bm.pkts {
			pkt.DecRef()
		}
	}
}

// A goroutine that others keep in work returns to its own link after a while.
// What it leaves goes up with the flow's next frame, or by the timer.
func TestDeliveryChangesHands(t *testing.T) {
	const frames = 1000
	clock := faketime.NewManualClock()
	var got []uint32
	var s *Stage
	give := func(k, id uint32) {
		pkt := packet(stream4(0).piece(int(k)))
		defer pkt.DecRef()
		pkt.Hash = id
		s.Receive(int(k%2), pkt)
	}
	s = New(Options{Clock: clock, Deliver: func(pkt *stack.PacketBuffer) {
		got = append(got, pkt.Hash)
		if next := pkt.Hash + 1; next < frames {
			give(next, next)
		}
	}})
	give(0, 0)
	if n := len(got); n < turn || n > 2*turn || s.State().Frames != 1 {
		t.Errorf("the first goroutine delivered %d frames and left %d, want about %d and 1", n, s.State().Frames, turn)
	}
	before := len(got)
	clock.Advance(DefaultHold / ticksPerHold)
	if n := len(got) - before; n < turn || n > 2*turn {
		t.Errorf("a tick delivered %d frames, want about %d", n, turn)
	}
	before = len(got)
	give(5, frames) // sent again
	if n := len(got) - before; n < turn || n > 2*turn {
		t.Errorf("the next frame had %d frames delivered, want about %d", n, turn)
	}
	clock.Advance(time.Second)
	late := slices.Index(got, frames)
	if got = slices.Delete(got, late, late+1); len(got) != frames || !slices.IsSorted(got) {
		t.Errorf("delivered %d frames, not as they came: %v", len(got), got)
	}
	s.Close()
}
