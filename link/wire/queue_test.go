package wire_test

import (
	"slices"
	"sync"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// stuck returns a wire whose receiver is inside the dispatcher with frame 0, and a
// function that lets it go on.
func stuck(t *testing.T, opts wire.Options) (a, b *wire.Endpoint, sink *linktest.Sink, release func()) {
	t.Helper()
	opts.B.Promiscuous = true
	a, b = newWire(t, opts)
	sink = &linktest.Sink{}
	inside, gate := make(chan struct{}, 1), make(chan struct{})
	first := true
	sink.OnDeliver(func(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {
		if first {
			first = false
			inside <- struct{}{}
			<-gate
		}
	})
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release) // before the ends are closed
	b.Attach(sink)
	linktest.Write(a, frame(0))
	<-inside
	return a, b, sink, release
}

// A full queue takes what there is room for, says so, counts the rest, and goes on
// when there is room again.
func TestQueueFull(t *testing.T) {
	for _, opts := range []wire.Options{{QueueFrames: 3}, {QueueBytes: 399}} {
		a, b, sink, release := stuck(t, opts)
		n, err := linktest.Write(a, frame(1), frame(2), nil, frame(3), frame(4), frame(5))
		if _, ok := err.(*tcpip.ErrNoBufferSpace); n != 4 || !ok {
			t.Errorf("WritePackets() = %d, %v, want 4 (one of them short), no buffer space", n, err)
		}
		if n, err := linktest.Write(a, frame(6)); n != 0 || err == nil {
			t.Errorf("WritePackets() = %d, %v, want 0 and an error", n, err)
		}
		if s := a.Stats(); s.Tx.QueueFull != 3 || s.Tx.Short != 1 || s.TxFrames != 4 {
			t.Errorf("Stats() = %+v", s)
		}
		release()
		sink.Await(t, 4)
		linktest.Write(a, frame(7))
		if got := numbers(sink.Await(t, 5)); !slices.Equal(got, []int{0, 1, 2, 3, 7}) {
			t.Errorf("delivered %v", got)
		}
		if rx := b.Stats().Rx; rx != (wire.RxDrops{}) {
			t.Errorf("receiver's drops = %+v", rx)
		}
	}
}

// A frame larger than the whole queue still passes an empty one.
func TestQueueTakesOneLargeFrame(t *testing.T) {
	a, _, sink, release := stuck(t, wire.Options{QueueBytes: 1})
	if n, _ := linktest.Write(a, frame(1), frame(2)); n != 1 {
		t.Errorf("%d frames taken, want 1", n)
	}
	release()
	sink.Await(t, 2)
}

// A list longer than one burst, on a queue that fills in the middle of one.
func TestQueueFullInLongList(t *testing.T) {
	a, _, sink, release := stuck(t, wire.Options{QueueFrames: 21})
	var frames [][]byte
	for i := range 40 {
		frames = append(frames, frame(i+1))
	}
	if n, err := linktest.Write(a, frames...); n != 21 || err == nil {
		t.Errorf("WritePackets() = %d, %v, want 21 and an error", n, err)
	}
	if n := a.Stats().Tx.QueueFull; n != 19 {
		t.Errorf("Tx.QueueFull = %d, want 19", n)
	}
	release()
	got := numbers(sink.Await(t, 22))
	if !slices.IsSorted(got) || got[21] != 21 {
		t.Errorf("delivered %v", got)
	}
}

// Each writer's frames keep their order, and none is lost or doubled.
func TestManyWriters(t *testing.T) {
	linktest.CheckGoroutines(t)
	const writers, each = 8, 300
	a, b := newWire(t, wire.Options{B: wire.EndOptions{Promiscuous: true}})
	var sink linktest.Sink
	b.Attach(&sink)
	for w := range writers {
		go func() {
			for i := 0; i < each; i += 3 {
				linktest.Write(a, frame(w<<12|i), frame(w<<12|i+1), frame(w<<12|i+2))
			}
		}()
	}
	next := make([]int, writers)
	for _, n := range numbers(sink.Await(t, writers*each)) {
		if w := n >> 12; next[w] != n&0xfff {
			t.Fatalf("writer %d: frame %d came, want %d", w, n&0xfff, next[w])
		}
		next[n>>12]++
	}
}

// On a synchronous wire a dispatcher may write, also to its own wire: the frames
// come in order, and nothing recurses.
func TestSynchronousReentry(t *testing.T) {
	x := newBench(t, wire.Options{})
	depth := 0
	x.sink.OnDeliver(func(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
		if depth++; depth > 1 {
			t.Error("delivered within a delivery")
		}
		v := p.ToView()
		if n := number(v.AsSlice()); n < 100 {
			x.write(t, frame(n+10))
		}
		v.Release()
		depth--
	})
	x.write(t, frame(90), frame(95))
	if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{90, 95, 100, 105}) {
		t.Errorf("delivered %v", got)
	}
}
