package relay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/faketime"

	"bondstack/link/linktest"
	"bondstack/link/relay"
	"bondstack/link/wire"
	"bondstack/stack"
)

// patience is how long a test waits for what is bound to happen.
const patience = 20 * time.Second

// conn is a TCP connection, of the host or of a stack.
type conn interface {
	net.Conn
	CloseWrite() error
	SetLinger(int) error
}

// place is where one listens and from where one connects.
type place struct {
	listen func(network string) (net.Listener, error)
	packet func() (relay.PacketConn, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

var loopback = place{
	listen: func(network string) (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") },
	packet: func() (relay.PacketConn, error) {
		return net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	},
	dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	},
}

// stacks returns a place that is two stacks with a wire between.
func stacks(t *testing.T) place {
	t.Helper()
	a, b, err := wire.New(wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host := func(ep *wire.Endpoint, prefix string) *stack.Host {
		h, err := stack.NewHost(ep, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix(prefix)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		return h
	}
	client, server := host(a, "10.0.0.1/24"), host(b, "10.0.0.2/24")
	return place{
		listen: func(string) (net.Listener, error) { return server.Listen("tcp", "10.0.0.2:0") },
		packet: func() (relay.PacketConn, error) {
			pc, err := server.ListenPacket("udp", "10.0.0.2:0")
			if err != nil {
				return nil, err
			}
			return pc.(*stack.UDPConn), nil
		},
		dial: client.DialContext,
	}
}

// places are the near and far sides that are tested together.
func places(t *testing.T, test func(t *testing.T, near, far place)) {
	for name, sides := range map[string]func(*testing.T) (near, far place){
		"host to host":   func(*testing.T) (place, place) { return loopback, loopback },
		"stack to host":  func(t *testing.T) (place, place) { return stacks(t), loopback },
		"stack to stack": func(t *testing.T) (place, place) { return stacks(t), stacks(t) },
	} {
		t.Run(name, func(t *testing.T) {
			linktest.CheckGoroutines(t)
			near, far := sides(t)
			test(t, near, far)
		})
	}
}

// rig is a relay from a listener on the near side to one on the far side.
type rig struct {
	t         *testing.T
	r         *relay.Relay
	near      place
	l, target net.Listener
}

func newRig(t *testing.T, opts relay.Options, near, far place) *rig {
	t.Helper()
	target, err := far.listen("tcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	l, err := near.listen("tcp")
	if err != nil {
		t.Fatal(err)
	}
	r := relay.New(opts)
	t.Cleanup(r.Close)
	r.ServeTCP(l, func(ctx context.Context) (net.Conn, error) { return far.dial(ctx, "tcp", target.Addr().String()) })
	return &rig{t, r, near, l, target}
}

func (r *rig) dial() conn {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := r.near.dial(ctx, "tcp", r.l.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	return r.own(c)
}

func (r *rig) own(c net.Conn) conn {
	r.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(conn)
}

// connect returns both ends of a connection through the relay.
func (r *rig) connect() (client, server conn) {
	r.t.Helper()
	client = r.dial()
	c, err := r.target.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	return client, r.own(c)
}

// refused makes a connection that is reset, which the kernel may tell already
// while it connects.
func (r *rig) refused() {
	r.t.Helper()
	c, err := r.near.dial(context.Background(), "tcp", r.l.Addr().String())
	if err == nil {
		_, err = r.own(c).Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		r.t.Errorf("one reads %v, want a reset", err)
	}
}

// await waits until the relay's counters of TCP are as wanted.
func (r *rig) await(what string, ok func(relay.Counts) bool) {
	r.t.Helper()
	eventually(r.t, what, func() bool { return ok(r.r.Stats().TCP) })
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*7 ^ byte(i>>16)*31
	}
	return b
}

// One side sends and ends its direction; the other answers 1 MB after that (A61).
func TestHalfClose(t *testing.T) {
	places(t, func(t *testing.T, near, far place) {
		r := newRig(t, relay.Options{}, near, far)
		question, answer := []byte("a question"), pattern(1_000_000)
		for _, clientFirst := range []bool{true, false} {
			first, second := r.connect()
			if !clientFirst {
				first, second = second, first
			}
			first.Write(question)
			if err := first.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(second); err != nil || !bytes.Equal(got, question) {
				t.Fatalf("the question came as %q, %v", got, err)
			}
			go func() {
				second.Write(answer)
				second.CloseWrite()
			}()
			if got, err := io.ReadAll(first); err != nil || !bytes.Equal(got, answer) {
				t.Errorf("of an answer of %d bytes %d came, %v", len(answer), len(got), err)
			}
		}
		total := uint64(len(question) + len(answer))
		r.await("both connections have ended in order", func(c relay.Counts) bool {
			return c.Open == 0 && c.Opened == 2 && c.Resets == 0 && c.ToFar == total && c.ToNear == total
		})
	})
}

// A reset of one side reaches the other as a reset, not as an end.
func TestReset(t *testing.T) {
	places(t, func(t *testing.T, near, far place) {
		r := newRig(t, relay.Options{}, near, far)
		for _, byClient := range []bool{true, false} {
			breaks, reads := r.connect()
			if !byClient {
				breaks, reads = reads, breaks
			}
			breaks.Write([]byte("x"))
			if _, err := io.ReadFull(reads, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			breaks.SetLinger(0)
			breaks.Close()
			if n, err := reads.Read(make([]byte, 1)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the other side reads %d, %v, want a reset", n, err)
			}
		}
		r.await("both resets are counted", func(c relay.Counts) bool { return c.Open == 0 && c.Resets == 2 })
	})
}

// A connection without a byte in either direction for the idle time is reset, not
// before.
func TestTCPIdle(t *testing.T) {
	clock := faketime.NewManualClock()
	r := newRig(t, relay.Options{TCPIdle: time.Minute, Clock: clock}, loopback, loopback)
	client, server := r.connect()
	exchange := func(from, to conn) {
		t.Helper()
		from.Write([]byte("x"))
		if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	exchange(client, server)
	passed := uint64(1)
	r.await("the byte is counted", func(c relay.Counts) bool { return c.ToFar == passed })
	clock.Advance(59 * time.Second)
	exchange(server, client)
	r.await("the answer is counted", func(c relay.Counts) bool { return c.ToNear == passed })
	clock.Advance(59 * time.Second)
	exchange(client, server)
	r.await("the second byte is counted", func(c relay.Counts) bool { return c.ToFar == passed+1 })
	clock.Advance(61 * time.Second)
	for _, c := range []conn{client, server} {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after the idle time one reads %v, want a reset", err)
		}
	}
	r.await("it is counted once", func(c relay.Counts) bool { return c.Open == 0 && c.TimedOut == 1 && c.Resets == 0 })
}

// Beyond the limit connections are reset, counted and logged; each that ends makes
// room for another.
func TestTCPLimit(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, relay.Options{MaxTCP: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))}, loopback, loopback)
	first, _ := r.connect()
	r.connect()
	for range 3 {
		r.refused()
	}
	if c := r.r.Stats().TCP; c.Limited != 3 || c.Open != 2 || c.Opened != 2 {
		t.Errorf("counts = %+v", c)
	}
	first.SetLinger(0)
	first.Close()
	r.await("there is room", func(c relay.Counts) bool { return c.Open == 1 })
	r.connect()
	r.r.Close()
	if text := log.String(); strings.Count(text, "too many flows") != 1 || !strings.Contains(text, "limit=2") {
		t.Errorf("the log is %q, want the limit in it, once", text)
	}
}

// Where the far side cannot be reached the near one is reset.
func TestNobodyThere(t *testing.T) {
	r := newRig(t, relay.Options{}, loopback, loopback)
	r.target.Close()
	r.refused()
	r.await("it is counted", func(c relay.Counts) bool { return c.Open == 0 && c.Failed == 1 })
}

// A hundred connections, some idle, some under load, leave nothing behind, and
// Close ends those that are left, also those that are still being opened.
func TestClose(t *testing.T) {
	linktest.CheckGoroutines(t)
	r := newRig(t, relay.Options{}, loopback, loopback)
	var wg sync.WaitGroup
	for i := range 100 {
		client, server := r.connect()
		switch i % 4 {
		case 0: // in order
			client.Close()
			server.Close()
		case 1:
			wg.Go(func() { io.Copy(client, bytes.NewReader(pattern(1<<20))) })
		case 2:
			client.Write([]byte("x"))
		}
	}
	opening := make(chan struct{})
	wg.Go(func() {
		err := r.r.Connection(func(ctx context.Context) (net.Conn, net.Conn, error) {
			close(opening)
			<-ctx.Done()
			return nil, nil, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Connection() = %v", err)
		}
	})
	<-opening
	r.r.Close()
	r.r.Close()
	wg.Wait()
	if c := r.r.Stats().TCP; c.Open != 0 || c.Opened != 101 {
		t.Errorf("counts = %+v", c)
	}
	if err := r.r.Connection(nil); !errors.Is(err, relay.ErrClosed) {
		t.Errorf("Connection() after Close = %v", err)
	}
	if _, err := loopback.dial(context.Background(), "tcp", r.l.Addr().String()); err == nil {
		t.Error("the listener is still there")
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.r.ServeTCP(other, nil)
	if _, err := other.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed relay left a listener open: %v", err)
	}
}
