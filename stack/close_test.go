package stack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"bondstack/stack"
)

// Case A50: 200 connections at once, of 1 MB each, all complete.
func TestManyConnections(t *testing.T) {
	const connections, size = 200, 1_000_000
	a, b := newPair(t)
	l := mustListen(t, b, ":80")
	sent := pattern(size)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			s, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer s.Close()
				if _, err := s.Write(sent); err != nil {
					t.Error(err)
				}
			})
		}
	})
	var clients sync.WaitGroup
	for range connections {
		clients.Go(func() {
			c, err := a.Dial("tcp", "10.0.0.2:80")
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			got := make([]byte, size+1) // one more: the end must come
			n, err := io.ReadFull(c, got)
			if err != io.ErrUnexpectedEOF || !bytes.Equal(got[:n], sent) {
				t.Errorf("ReadFull() = %d bytes, %v, want %d and the end", n, err, size)
			}
		})
	}
	clients.Wait()
	l.Close()
	serving.Wait()
}

// A listener holds as many connections for Accept as it was asked to.
func TestBacklog(t *testing.T) {
	a, b := newPair(t, func(o *stack.HostOptions) { o.Backlog = 100 })
	l := mustListen(t, b, ":80")
	for range 100 {
		if _, err := a.Dial("tcp", "10.0.0.2:80"); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
	}
}

// waiting is a host with calls of every kind that wait.
type waiting struct {
	host  *stack.Host
	peer  *stack.Host
	calls int
	// ended has what each call returned.
	ended chan error
}

// newWaiting starts 50 Reads and one of each other call.
func newWaiting(t *testing.T) *waiting {
	a, b := newPair(t)
	w := &waiting{host: a, peer: b, ended: make(chan error)}
	l := mustListen(t, b, ":80")
	for range 50 {
		c, s := connect(t, a, listenAt(l, "10.0.0.2:80"))
		t.Cleanup(func() { s.Close() })
		w.start(func() error { return second(c.Read(make([]byte, 1))) })
	}
	full, _ := connect(t, a, listenAt(l, "10.0.0.2:80"))
	fill(t, full)
	own := mustListen(t, a, ":80")
	packets := mustListenPacket(t, a, "udp", ":53")
	w.start(func() error { return second(full.Write(make([]byte, 1<<20))) })
	for range 3 {
		w.start(func() error { return second(own.Accept()) })
	}
	w.start(func() error { _, _, err := packets.ReadFrom(make([]byte, 1)); return err })
	w.start(func() error { return second(a.Dial("tcp", "10.0.0.77:80")) })
	w.start(func() error { return second(a.Ping(context.Background(), addr("10.0.0.78"))) })
	// An endpoint that somebody made in the host's stack.
	var queue waiter.Queue
	ep, err := a.Stack().NewEndpoint(udp.ProtocolNumber, ipv4.ProtocolNumber, &queue)
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Bind(tcpip.FullAddress{Port: 9999}); err != nil {
		t.Fatal(err)
	}
	entry, hungUp := waiter.NewChannelEntry(waiter.EventHUp)
	queue.EventRegister(&entry)
	w.start(func() error { <-hungUp; return net.ErrClosed })
	return w
}

func (w *waiting) start(call func() error) {
	w.calls++
	started := make(chan struct{})
	go func() {
		close(started)
		w.ended <- call()
	}()
	<-started
}

// listenAt is a listener with an address that can be dialled.
type dialable struct {
	net.Listener
	addr string
}

func listenAt(l net.Listener, addr string) net.Listener { return dialable{l, addr} }
func (d dialable) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(d.addr))
}

// check waits until every call has ended, with one of the errors.
func (w *waiting) check(t *testing.T, want ...error) {
	t.Helper()
	timeout := time.After(patience)
	for n := range w.calls {
		select {
		case err := <-w.ended:
			ok := false
			for _, e := range want {
				ok = ok || errors.Is(err, e)
			}
			if !ok {
				t.Errorf("a waiting call returned %v, want %v", err, want)
			}
		case <-timeout:
			t.Fatalf("%d of %d calls still wait", w.calls-n, w.calls)
		}
	}
}

// Case A50: Close has every waiting call return, with net.ErrClosed.
func TestCloseWakes(t *testing.T) {
	w := newWaiting(t)
	var wg sync.WaitGroup
	for range 4 { // at once, and all wait for the end
		wg.Go(func() {
			if err := w.host.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
	w.check(t, net.ErrClosed)
	wg.Wait()
	w.host.Close()
	for what, call := range map[string]func() error{
		"Dial tcp":     func() error { return second(w.host.Dial("tcp", "10.0.0.2:80")) },
		"Dial udp":     func() error { return second(w.host.Dial("udp", "10.0.0.2:80")) },
		"Listen":       func() error { return second(w.host.Listen("tcp", ":81")) },
		"ListenPacket": func() error { return second(w.host.ListenPacket("udp", ":81")) },
		"Ping":         func() error { return second(w.host.Ping(t.Context(), addr("10.0.0.2"))) },
	} {
		if err := call(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s on a closed host = %v, want net.ErrClosed", what, err)
		}
	}
}

// Case A32: when the interface is removed from the stack, or the link is closed
// below the host, waiting calls return.
func TestLinkGone(t *testing.T) {
	for name, remove := range map[string]func(*waiting){
		"removed": func(w *waiting) { w.host.Stack().RemoveNIC(w.host.NICID()) },
		"twice": func(w *waiting) {
			w.host.Stack().RemoveNIC(w.host.NICID())
			w.host.Stack().RemoveNIC(w.host.NICID())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiting(t)
			remove(w)
			w.check(t, syscall.ENETDOWN, net.ErrClosed)
			if _, err := w.host.Dial("tcp", "10.0.0.2:80"); !errors.Is(err, syscall.ENETDOWN) {
				t.Errorf("Dial() with no link = %v, want network is down", err)
			}
			if _, err := w.host.Listen("tcp", ":82"); !errors.Is(err, syscall.ENETDOWN) {
				t.Errorf("Listen() with no link = %v, want network is down", err)
			}
			w.host.Announce() // sends nothing, and does no harm
		})
	}
}

// Whoever closes the link tells the host so.
func TestLinkClosed(t *testing.T) {
	h, r := newRecorded(t, false, func(o *stack.HostOptions) { o.Addresses = []netip.Prefix{prefix("10.0.0.1/24")} })
	l := mustListen(t, h, ":80")
	done := make(chan error)
	go func() { done <- second(l.Accept()) }()
	r.Close()
	if err := <-done; !errors.Is(err, syscall.ENETDOWN) {
		t.Errorf("Accept() when the link closed = %v, want network is down", err)
	}
}

// Close is the end of the link too, and peers are told of the connections' end.
func TestCloseResets(t *testing.T) {
	a, b := newPair(t)
	c, s := connect(t, a, mustListen(t, b, "10.0.0.2:80"))
	defer s.Close()
	a.Close()
	s.SetReadDeadline(time.Now().Add(patience))
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Read() after the peer's host closed = %v, want reset", err)
	}
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("Close() of a connection of a closed host = %v", err)
	}
}

// Hosts are closed while connections are made, accepted and used.
func TestCloseRace(t *testing.T) {
	for range 10 {
		a, b := newPair(t)
		l := mustListen(t, b, ":80")
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				s, err := l.Accept()
				if err != nil {
					return
				}
				wg.Go(func() { io.Copy(s, s) })
			}
		})
		began := make(chan struct{}, 4)
		for range 4 {
			wg.Go(func() {
				for {
					c, err := a.Dial("tcp", "10.0.0.2:80")
					if err != nil {
						return
					}
					c.Write([]byte("x"))
					c.Read(make([]byte, 1))
					c.Close()
					select {
					case began <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 4 {
			<-began
		}
		wg.Go(func() { a.Close() })
		wg.Go(func() { b.Close() })
		wg.Wait()
	}
}
