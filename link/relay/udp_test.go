package relay_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/faketime"

	"bondstack/link/linktest"
	"bondstack/link/relay"
)

// echo answers each datagram with what name says of it, until the test ends.
func echo(t *testing.T, p place) net.Addr {
	t.Helper()
	pc, err := p.packet()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, from, err := pc.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			pc.WriteToUDPAddrPort(b[:n], from)
		}
	}()
	return pc.LocalAddr()
}

// newUDPRig returns a relay to an echo, and where it is.
func newUDPRig(t *testing.T, opts relay.Options, near, far place) (*relay.Relay, net.Addr) {
	t.Helper()
	target := echo(t, far)
	pc, err := near.packet()
	if err != nil {
		t.Fatal(err)
	}
	r := relay.New(opts)
	t.Cleanup(r.Close)
	r.ServeUDP(pc, func(ctx context.Context) (net.Conn, error) { return far.dial(ctx, "udp", target.String()) })
	return r, pc.LocalAddr()
}

// ask sends a datagram and waits for its answer.
func ask(c net.Conn, text string) error {
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte(text)); err != nil {
		return err
	}
	b := make([]byte, 64)
	n, err := c.Read(b)
	if err == nil && string(b[:n]) != text {
		err = fmt.Errorf("the answer to %q is %q", text, b[:n])
	}
	return err
}

// Several senders each get their own answers.
func TestUDPPeers(t *testing.T) {
	places(t, func(t *testing.T, near, far place) {
		r, at := newUDPRig(t, relay.Options{}, near, far)
		const peers = 5
		var conns []net.Conn
		for range peers {
			c, err := near.dial(context.Background(), "udp", at.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			conns = append(conns, c)
		}
		for round := range 3 {
			for i, c := range conns {
				if err := ask(c, fmt.Sprintf("peer %d, round %d", i, round)); err != nil {
					t.Error(err)
				}
			}
		}
		const bytes = 3 * peers * uint64(len("peer 0, round 0"))
		eventually(t, "all is counted", func() bool {
			c := r.Stats().UDP
			return c.Open == peers && c.Opened == peers && c.ToFar == bytes && c.ToNear == bytes
		})
	})
}

// mirror is a far side that answers the datagram that it was sent.
type mirror struct {
	net.Conn
	held chan []byte
	open *atomic.Int64
	once sync.Once
}

func (m *mirror) Write(b []byte) (int, error) {
	m.held <- append([]byte(nil), b...)
	return len(b), nil
}

func (m *mirror) Read(b []byte) (int, error) {
	held, ok := <-m.held
	if !ok {
		return 0, net.ErrClosed
	}
	return copy(b, held), nil
}

func (m *mirror) Close() error {
	m.once.Do(func() {
		close(m.held)
		m.open.Add(-1)
	})
	return nil
}

// 10,000 senders, 100 at a time: after the idle time nothing of them is left (A61).
// Beyond the limit datagrams are lost and counted.
func TestUDPIdle(t *testing.T) {
	linktest.CheckGoroutines(t)
	clock := faketime.NewManualClock()
	const limit, waves = 100, 100
	r := relay.New(relay.Options{Clock: clock, MaxUDP: limit})
	defer r.Close()
	var open, answers atomic.Int64
	flows := relay.NewAssociations(r, func(context.Context, int) (net.Conn, error) {
		open.Add(1)
		return &mirror{held: make(chan []byte, 1), open: &open}, nil
	}, func(_ int, b []byte) error {
		if string(b) == "x" {
			answers.Add(1)
		}
		return nil
	})
	for wave := range waves {
		for i := range limit {
			if err := flows.Send(wave*limit+i, []byte("x")); err != nil {
				t.Fatalf("flow %d of wave %d: %v", i, wave, err)
			}
		}
		if err := flows.Send(-1, []byte("x")); !errors.Is(err, relay.ErrLimit) {
			t.Fatalf("beyond the limit: %v", err)
		}
		eventually(t, "all are answered", func() bool { return answers.Load() == int64((wave+1)*limit) })
		clock.Advance(relay.DefaultUDPIdle - time.Second)
		if c := r.Stats().UDP; c.Open != limit {
			t.Fatalf("before the idle time %d are open", c.Open)
		}
		clock.Advance(time.Second)
		eventually(t, "all have ended", func() bool { return r.Stats().UDP.Open == 0 && open.Load() == 0 })
	}
	if c := r.Stats().UDP; c.TimedOut != limit*waves || c.Limited != waves || c.Dropped != 0 {
		t.Errorf("counts = %+v", c)
	}
}

// The descriptors of associations are given back (A61).
func TestUDPDescriptors(t *testing.T) {
	descriptors := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("needs /proc/self/fd:", err)
		}
		return len(list)
	}
	clock := faketime.NewManualClock()
	r := relay.New(relay.Options{Clock: clock})
	defer r.Close()
	target, answers := echo(t, loopback), make(chan struct{}, 256)
	flows := relay.NewAssociations(r, func(ctx context.Context, _ int) (net.Conn, error) {
		return loopback.dial(ctx, "udp", target.String())
	}, func(int, []byte) error {
		answers <- struct{}{}
		return nil
	})
	before := descriptors()
	const peers = 200
	for i := range peers {
		flows.Send(i, []byte("x"))
		<-answers
	}
	if n := descriptors(); n < before+peers {
		t.Errorf("%d descriptors with %d associations, %d before", n, peers, before)
	}
	clock.Advance(relay.DefaultUDPIdle)
	eventually(t, "the descriptors are back", func() bool { return descriptors() <= before })
}

// A datagram keeps its association alive, in both directions.
func TestUDPKeptAlive(t *testing.T) {
	clock := faketime.NewManualClock()
	r, at := newUDPRig(t, relay.Options{UDPIdle: time.Minute, Clock: clock}, loopback, loopback)
	c, err := loopback.dial(context.Background(), "udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 5 {
		if err := ask(c, "still here"); err != nil {
			t.Fatal(err)
		}
		clock.Advance(50 * time.Second)
	}
	if n := r.Stats().UDP.Opened; n != 1 {
		t.Errorf("%d associations, want the first one", n)
	}
}

// Datagrams wait while the far side is being opened, up to a limit, and a far side
// that refuses one takes the next.
func TestUDPPending(t *testing.T) {
	linktest.CheckGoroutines(t)
	r := relay.New(relay.Options{})
	defer r.Close()
	release, answers := make(chan struct{}), make(chan string, 64)
	target := echo(t, loopback)
	flows := relay.NewAssociations(r, func(ctx context.Context, fail bool) (net.Conn, error) {
		<-release
		if fail {
			return nil, errors.New("no way")
		}
		return loopback.dial(ctx, "udp", target.String())
	}, func(_ bool, b []byte) error {
		answers <- string(b)
		return nil
	})
	for i := range 20 {
		flows.Send(false, []byte{byte(i)})
		flows.Send(true, []byte{byte(i)})
	}
	close(release)
	for i := range 16 {
		if got := <-answers; got != string(rune(i)) {
			t.Errorf("answer %d is %q", i, got)
		}
	}
	eventually(t, "what was lost is counted", func() bool {
		c := r.Stats().UDP
		return c.Open == 1 && c.Failed == 1 && c.Dropped == 4+20
	})
}
