package wire_test

import (
	"slices"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// watch returns the states that an end reports, each read in the notification.
func watch(e *wire.Endpoint) func() []link.State {
	var seen []link.State
	e.SubscribeLinkState(func() { seen = append(seen, e.LinkState()) })
	return func() []link.State { return seen }
}

func TestStateChanges(t *testing.T) {
	up := link.State{Up: true, Carrier: true, Speed: 10000, Duplex: link.DuplexFull}
	noCarrier := up
	noCarrier.Carrier = false
	down := noCarrier
	down.Up = false
	slow := up
	slow.Speed, slow.Duplex = 100, link.DuplexHalf
	for _, tt := range []struct {
		name   string
		change func(a, b *wire.Endpoint)
		a, b   []link.State
	}{
		{"carrier", func(a, b *wire.Endpoint) { a.SetCarrier(false); b.SetCarrier(true) },
			[]link.State{noCarrier, up}, []link.State{noCarrier, up}},
		{"carrier twice", func(a, b *wire.Endpoint) { a.SetCarrier(false); b.SetCarrier(false) },
			[]link.State{noCarrier}, []link.State{noCarrier}},
		{"one end down and up", func(a, b *wire.Endpoint) { a.SetUp(false); a.SetUp(true) },
			[]link.State{down, up}, []link.State{noCarrier, up}},
		{"both ends down", func(a, b *wire.Endpoint) { a.SetUp(false); b.SetUp(false); a.SetUp(true) },
			[]link.State{down, noCarrier}, []link.State{noCarrier, down}},
		{"close", func(a, b *wire.Endpoint) { a.Close(); a.SetUp(true); a.SetCarrier(true) },
			[]link.State{down}, []link.State{noCarrier}},
		{"speed", func(a, b *wire.Endpoint) { a.SetSpeed(100, link.DuplexHalf) },
			[]link.State{slow}, []link.State{slow}},
		{"nothing", func(a, b *wire.Endpoint) { a.SetUp(true); a.SetCarrier(true); a.SetSpeed(10000, link.DuplexFull) }, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newWire(t, wire.Options{})
			if a.LinkState() != up || b.LinkState() != up {
				t.Errorf("first states = %+v, %+v", a.LinkState(), b.LinkState())
			}
			seenA, seenB := watch(a), watch(b)
			tt.change(a, b)
			if !slices.Equal(seenA(), tt.a) || !slices.Equal(seenB(), tt.b) {
				t.Errorf("a saw %+v, b saw %+v\nwant %+v and %+v", seenA(), seenB(), tt.a, tt.b)
			}
		})
	}
}

func TestStateOptions(t *testing.T) {
	a, b := newWire(t, wire.Options{Speed: link.SpeedUnknown, Duplex: link.DuplexUnknown})
	if a.LinkState() != link.AlwaysUp || link.StateOf(b) != link.AlwaysUp {
		t.Errorf("LinkState() = %+v, %+v", a.LinkState(), b.LinkState())
	}
	if err := a.SetSpeed(10, 3); err == nil || a.LinkState() != link.AlwaysUp {
		t.Errorf("SetSpeed with duplex 3 = %v", err)
	}
}

// A subscriber may call anything, also what changes the state, and cancel itself.
func TestSubscriberIsFree(t *testing.T) {
	a, b := newWire(t, wire.Options{})
	var cancel func()
	calls := 0
	cancel = a.SubscribeLinkState(func() {
		calls++
		cancel()
		b.SetUp(false)
		a.SetSpeed(1000, link.DuplexFull)
		a.SubscribeLinkState(func() {})()
	})
	a.SetCarrier(false)
	a.SetCarrier(true)
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

func TestWriteWhenUnusable(t *testing.T) {
	x := newBench(t, wire.Options{})
	x.a.SetCarrier(false)
	if n, err := linktest.Write(x.a, frame(0), frame(1)); n != 2 || err != nil {
		t.Errorf("write without carrier = %d, %v, want 2, nil", n, err)
	}
	x.a.SetCarrier(true)
	x.a.SetUp(false)
	n, err := linktest.Write(x.a, frame(2), frame(3))
	if _, ok := err.(*tcpip.ErrInvalidEndpointState); n != 0 || !ok || !link.Gone(err) {
		t.Errorf("write on an end that is down = %d, %v, want 0, invalid endpoint state", n, err)
	}
	x.a.SetUp(true)
	x.write(t, frame(4))
	x.a.Close()
	n, err = linktest.Write(x.a, frame(5))
	if _, ok := err.(*tcpip.ErrClosedForSend); n != 0 || !ok || !link.Gone(err) {
		t.Errorf("write on a closed end = %d, %v, want 0, closed for send", n, err)
	}
	if n, err := linktest.Write(x.b, frame(6)); n != 1 || err != nil {
		t.Errorf("write to a closed end = %d, %v, want 1, nil: no carrier", n, err)
	}
	want := wire.TxDrops{NoCarrier: 2, Down: 2, Closed: 1}
	if s := x.a.Stats(); s.Tx != want || s.TxFrames != 1 {
		t.Errorf("Stats() = %+v, want %+v", s, want)
	}
	if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{4}) {
		t.Errorf("delivered %v, want 4", got)
	}
}

// Frames that are on their way when the receiver goes down, or is not attached, are
// counted.
func TestReceiverUnusable(t *testing.T) {
	x := newBench(t, wire.Options{A: wire.EndOptions{Impairments: wire.Impairments{Delay: 1}}})
	x.write(t, frame(0))
	x.b.SetUp(false)
	x.clock.Advance(1)
	x.b.SetUp(true)
	x.write(t, frame(1))
	x.b.Attach(nil)
	x.clock.Advance(1)
	if x.b.IsAttached() {
		t.Error("attached after Attach(nil)")
	}
	if s := x.b.Stats(); s.Rx.Down != 1 || s.Rx.Unattached != 1 || s.RxFrames != 0 {
		t.Errorf("Stats() = %+v", s)
	}
	x.b.Attach(&x.sink)
	x.write(t, frame(2))
	x.clock.Advance(1)
	if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{2}) {
		t.Errorf("delivered %v, want 2", got)
	}
}
