package wire_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// Close waits for a delivery under way, drops and counts what waits, and is
// idempotent. Wait and Attach(nil) do not wait.
func TestClose(t *testing.T) {
	linktest.CheckGoroutines(t)
	a, b, sink, release := stuck(t, wire.Options{})
	linktest.Write(a, frame(1), frame(2))
	b.Attach(nil)
	b.Wait()
	lost := make(chan struct{})
	a.SubscribeLinkState(sync.OnceFunc(func() { close(lost) }))
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		b.Close()
	}()
	<-lost // Close has told the other end, and is about to wait, or waits
	select {
	case <-closed:
		t.Error("Close returned during a delivery")
	default:
	}
	b.Wait() // must not wait for Close: it is called with locks that a delivery needs
	release()
	<-closed
	b.Close()
	if n := len(sink.Delivered()); n != 1 {
		t.Errorf("%d delivered, want 1", n)
	}
	if rx := b.Stats().Rx; rx.Closed+rx.Unattached != 2 {
		t.Errorf("drops = %+v, want 2 for close", rx)
	}
}

func TestOnCloseAction(t *testing.T) {
	a, b := newWire(t, wire.Options{})
	calls := 0
	a.SetOnCloseAction(func() {
		calls++
		if !a.LinkState().Up {
			t.Error("the action ran after the close")
		}
		b.Close() // may do anything, also this
	})
	a.Close()
	a.Close()
	b.SetOnCloseAction(func() { t.Error("the action was taken back") })
	b.SetOnCloseAction(nil)
	b.Close()
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

// Both ends closed, detached and attached by others while frames, some of them
// held, flow in both directions.
func TestCloseUnderLoad(t *testing.T) {
	linktest.CheckGoroutines(t)
	for round := range 50 {
		im := wire.Impairments{}
		if round%2 == 1 {
			im = wire.Impairments{Delay: 20 * time.Microsecond, Duplicate: 0.5}
		}
		a, b := newWire(t, wire.Options{
			QueueFrames: 64,
			A:           wire.EndOptions{Promiscuous: true, Impairments: im},
			B:           wire.EndOptions{Promiscuous: true, Impairments: im},
		})
		var ca, cb linktest.Counter
		a.Attach(&ca)
		b.Attach(&cb)
		var wg sync.WaitGroup
		for _, e := range []*wire.Endpoint{a, a, b, b} {
			wg.Go(func() {
				for i := 0; ; i++ {
					n, err := linktest.Write(e, frame(i), frame(i), frame(i))
					if link.Gone(err) {
						return
					}
					if _, full := err.(*tcpip.ErrNoBufferSpace); err != nil && !full || err == nil && n != 3 {
						t.Errorf("WritePackets() = %d, %v", n, err)
						return
					}
				}
			})
		}
		wg.Go(func() {
			for range 20 {
				b.Attach(nil)
				b.Attach(&cb)
			}
			a.Close()
			b.Close()
			before := ca.Packets.Load() + cb.Packets.Load()
			linktest.Write(a, frame(0))
			linktest.Write(b, frame(0))
			if after := ca.Packets.Load() + cb.Packets.Load(); after != before {
				t.Error("a frame was delivered after Close")
			}
		})
		wg.Wait()
		for _, e := range []struct{ from, to wire.Stats }{{a.Stats(), b.Stats()}, {b.Stats(), a.Stats()}} {
			in := e.from.TxFrames + e.from.Impaired.Duplicated
			out := e.to.RxFrames + e.to.Rx.Closed + e.to.Rx.Unattached + e.to.Rx.Down + e.to.Rx.QueueFull
			if in != out {
				t.Fatalf("%d frames went in, %d came out: %+v, %+v", in, out, e.from, e.to)
			}
		}
	}
}

// A stack that removes its NIC, and one that is destroyed, while frames come in.
func TestNICRemovedUnderLoad(t *testing.T) {
	linktest.CheckGoroutines(t)
	for i := range 20 {
		a, b := newWire(t, wire.Options{})
		s := newStack(t, b, 2)
		b.SetPromiscuous(true)
		done := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			f := linktest.Flow4(0)
			f.Src, f.Dst = f.Dst, f.Src
			for {
				linktest.Write(a, f.UDP([]byte("x")), f.TCP(linktest.Segment{}), f.ARPRequest())
				select {
				case <-done:
					return
				default:
				}
			}
		})
		if i%2 == 0 {
			if err := s.RemoveNIC(nic); err != nil {
				t.Errorf("RemoveNIC() = %s", err)
			}
			if b.LinkState().Up || b.IsAttached() {
				t.Error("the end is still up after RemoveNIC")
			}
		} else {
			s.Destroy()
		}
		close(done)
		wg.Wait()
	}
}

// With HoldUnattached, frames that come while nothing is attached wait for who is
// attached next, also those of a batch that has begun; beyond the queue's room the
// writer is told, and what waits when the end is closed is counted.
func TestHoldUnattached(t *testing.T) {
	linktest.CheckGoroutines(t)
	a, b := newWire(t, wire.Options{QueueFrames: 4, B: wire.EndOptions{Promiscuous: true, HoldUnattached: true}})
	write := func(want int, frames ...[]byte) {
		t.Helper()
		if n, err := linktest.Write(a, frames...); n != want {
			t.Errorf("WritePackets() = %d, %v, want %d taken", n, err, want)
		}
	}
	var first, second linktest.Sink
	b.Attach(&leaver{first: &first, link: b})
	write(3, frame(1), frame(2), frame(3))
	first.Await(t, 1)
	write(4, frame(4), frame(5), frame(6), frame(7), frame(8))
	b.Attach(&second)
	second.Await(t, 6)
	if got := fmt.Sprint(numbers(first.Delivered()), numbers(second.Delivered())); got != "[1] [2 3 4 5 6 7]" {
		t.Errorf("delivered %s, want 1, and the rest to who came next", got)
	}
	b.Attach(nil)
	write(1, frame(9))
	b.Close()
	rx := b.Stats().Rx
	if rx.Closed+rx.Unattached != 1 {
		t.Errorf("drops = %+v, want 1 for close", rx)
	}
	if _, _, err := wire.New(wire.Options{Synchronous: true, A: wire.EndOptions{HoldUnattached: true}}); err == nil {
		t.Error("New() took a synchronous wire that holds frames")
	}
}

// leaver takes the first frame, and itself off the link.
type leaver struct {
	first *linktest.Sink
	link  *wire.Endpoint
}

func (l *leaver) DeliverNetworkPacket(p tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	l.link.Attach(nil)
	l.first.DeliverNetworkPacket(p, pkt)
}

func (*leaver) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}
