package stack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"bondstack/stack"
)

func mustListenPacket(t testing.TB, h *stack.Host, network, address string) *stack.UDPConn {
	t.Helper()
	p, err := h.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return p.(*stack.UDPConn)
}

func TestUDP(t *testing.T) {
	a, b := newPair(t)
	server := mustListenPacket(t, b, "udp", ":53")
	if got := server.LocalAddr().String(); got != "[::]:53" || server.RemoteAddr() != nil {
		t.Errorf("addresses of ListenPacket(:53) = %s, %v", got, server.RemoteAddr())
	}
	for _, to := range []string{"10.0.0.2:53", "[fd00::2]:53", "[" + b.Addresses()[0].Prefix.Addr().String() + "%bond0]:53"} {
		for _, size := range []int{0, 1, 1472, 1473, 9000, 65507} {
			c, err := a.Dial("udp", to)
			if err != nil {
				t.Fatal(err)
			}
			sent := pattern(size)
			if n, err := c.Write(sent); n != size || err != nil {
				t.Fatalf("Write(%d bytes to %s) = %d, %v", size, to, n, err)
			}
			buf := make([]byte, 1<<16)
			server.SetReadDeadline(time.Now().Add(patience))
			n, from, err := server.ReadFrom(buf)
			if err != nil || !bytes.Equal(buf[:n], sent) {
				t.Fatalf("ReadFrom() of %d bytes to %s = %d, %v", size, to, n, err)
			}
			if _, ok := from.(*net.UDPAddr); !ok || from.String() != c.LocalAddr().String() {
				t.Errorf("ReadFrom() address = %T %s, want %s", from, from, c.LocalAddr())
			}
			if n, err := server.WriteTo(sent, from); n != size || err != nil {
				t.Fatalf("WriteTo(%d bytes, %s) = %d, %v", size, from, n, err)
			}
			c.SetReadDeadline(time.Now().Add(patience))
			if n, err := c.Read(buf); err != nil || !bytes.Equal(buf[:n], sent) {
				t.Fatalf("Read() of %d bytes from %s = %d, %v", size, to, n, err)
			}
			c.Close()
		}
	}
}

func TestUDPErrors(t *testing.T) {
	a, b := newPair(t)
	server := mustListenPacket(t, a, "udp", "10.0.0.1:53")
	client, err := b.Dial("udp", "10.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	ap := netip.MustParseAddrPort
	for _, tt := range []struct {
		name string
		err  error
		want string
		is   error
	}{
		{"too long", second(client.Write(make([]byte, 65508))), "message too long", syscall.EMSGSIZE},
		{"no peer", second(server.Write([]byte("x"))), "destination address required", syscall.EDESTADDRREQ},
		{"connected", second(client.(*stack.UDPConn).WriteTo([]byte("x"), client.RemoteAddr())), "pre-connected", net.ErrWriteToConnected},
		{"wrong address", second(server.WriteTo([]byte("x"), &net.TCPAddr{})), "*net.UDPAddr is needed", nil},
		{"nil address", second(server.WriteTo([]byte("x"), nil)), "*net.UDPAddr is needed", nil},
		{"nil udp address", second(server.WriteTo([]byte("x"), (*net.UDPAddr)(nil))), "*net.UDPAddr is needed", nil},
		{"no port", second(server.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IP{10, 0, 0, 2}})), "needs an address and a port", nil},
		{"no address", second(server.WriteTo([]byte("x"), &net.UDPAddr{Port: 1})), "needs an address and a port", nil},
		{"other version", second(server.WriteToUDPAddrPort([]byte("x"), ap("[fd00::2]:1"))), "write udp 10.0.0.1:53->[fd00::2]:1", nil},
		{"other zone", second(server.WriteToUDPAddrPort([]byte("x"), ap("[fe80::2%lan]:1"))), "only interface is bond0", nil},
		{"no route", second(server.WriteToUDPAddrPort([]byte("x"), ap("192.168.1.1:1"))), "network is unreachable", syscall.ENETUNREACH},
	} {
		var op *net.OpError
		if !errors.As(tt.err, &op) || op.Op != "write" || !strings.Contains(tt.err.Error(), tt.want) || (tt.is != nil && !errors.Is(tt.err, tt.is)) {
			t.Errorf("%s: error %v, want %q and %v", tt.name, tt.err, tt.want, tt.is)
		}
	}
	// A port that nobody has is told to who sent there.
	lost, err := b.Dial("udp", "10.0.0.1:54")
	if err != nil {
		t.Fatal(err)
	}
	lost.Write([]byte("x"))
	lost.SetReadDeadline(time.Now().Add(patience))
	if _, err := lost.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Read() from a closed port = %v, want refused", err)
	}
	// A datagram longer than the buffer is cut, down to nothing.
	client.Write([]byte("hello"))
	client.Write([]byte("again"))
	client.Write([]byte("end"))
	buf := make([]byte, 2)
	if n, err := server.Read(buf); n != 2 || err != nil || string(buf) != "he" {
		t.Errorf("Read(2 bytes) of 5 = %d, %v", n, err)
	}
	if n, from, err := server.ReadFrom(nil); n != 0 || err != nil || from.String() != client.LocalAddr().String() {
		t.Errorf("ReadFrom(nil) of 5 = %d, %v, %v", n, from, err)
	}
	if n, err := server.Read(make([]byte, 9)); n != 3 || err != nil {
		t.Errorf("Read() = %d, %v", n, err)
	}
}

func TestBroadcastAndMulticast(t *testing.T) {
	a, b := newPair(t)
	server := mustListenPacket(t, b, "udp4", ":67")
	client := mustListenPacket(t, a, "udp4", ":68")
	buf := make([]byte, 9)
	for _, to := range []string{"255.255.255.255:67", "10.0.0.255:67"} {
		if _, err := client.WriteToUDPAddrPort([]byte("x"), netip.MustParseAddrPort(to)); err != nil {
			t.Fatalf("WriteTo(%s) = %v", to, err)
		}
		server.SetReadDeadline(time.Now().Add(patience))
		if n, _, err := server.ReadFrom(buf); n != 1 || err != nil {
			t.Errorf("ReadFrom() of a datagram to %s = %d, %v", to, n, err)
		}
	}
	six := mustListenPacket(t, b, "udp6", ":67")
	if _, err := mustListenPacket(t, a, "udp6", ":0").WriteToUDPAddrPort([]byte("x"), netip.MustParseAddrPort("[ff02::1]:67")); err != nil {
		t.Fatal(err)
	}
	six.SetReadDeadline(time.Now().Add(patience))
	if n, _, err := six.ReadFrom(buf); n != 1 || err != nil {
		t.Errorf("ReadFrom() of a datagram to all nodes = %d, %v", n, err)
	}
}

// Every call that a deadline or a close may end is ended by it, whether it
// waits already or comes later; a later deadline makes it work again.
func TestDeadlines(t *testing.T) {
	a, b := newPair(t)
	l := mustListen(t, b, "10.0.0.2:80")
	c, s := connect(t, a, l)
	defer s.Close()
	fill(t, c)
	p := mustListenPacket(t, a, "udp", ":53")
	calls := map[string]struct {
		set  func(time.Time) error
		call func() error
	}{
		"tcp read":  {c.SetReadDeadline, func() error { return second(c.Read(make([]byte, 1))) }},
		"tcp write": {c.SetWriteDeadline, func() error { return second(c.Write(make([]byte, 1<<20))) }},
		"tcp both":  {c.SetDeadline, func() error { return second(c.Read(make([]byte, 1))) }},
		"accept":    {l.(*stack.Listener).SetDeadline, func() error { return second(l.Accept()) }},
		"udp read":  {p.SetReadDeadline, func() error { _, _, err := p.ReadFrom(make([]byte, 1)); return err }},
		"udp both":  {p.SetDeadline, func() error { return second(p.Write([]byte("x"))) }},
	}
	past := time.Unix(1, 0)
	for name, tt := range calls {
		check := func(when string, err error) {
			t.Helper()
			var nerr net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &nerr) || !nerr.Timeout() {
				t.Errorf("%s, %s: %v, want a timeout", name, when, err)
			}
		}
		tt.set(past)
		check("deadline in the past", tt.call())
		check("still in the past", tt.call())
		if name == "udp both" { // a write that never waits
			continue
		}
		tt.set(time.Now().Add(time.Millisecond))
		check("deadline to come", tt.call())
		tt.set(time.Time{})
		done := make(chan error)
		go func() { done <- tt.call() }()
		tt.set(past) // while it waits, or just before
		check("deadline set during the call", <-done)
		tt.set(time.Time{})
	}
	if err := c.SetDeadline(past); err != nil {
		t.Error(err)
	}
	c.Close()
	p.Close()
	l.Close()
	for name, tt := range calls {
		if err := tt.set(past); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: setting a deadline after Close = %v", name, err)
		}
	}
}

// fill writes to a connection until its peer, who does not read, takes no more.
func fill(t testing.TB, c net.Conn) {
	t.Helper()
	for {
		c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := c.Write(make([]byte, 1<<20))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.SetWriteDeadline(time.Time{})
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDialContext(t *testing.T) {
	a, b := newPair(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, network := range []string{"tcp", "udp"} {
		for _, address := range []string{"10.0.0.2:1", "[fd00::2]:1"} {
			if c, err := a.DialContext(cancelled, network, address); !errors.Is(err, context.Canceled) {
				t.Errorf("DialContext(%s, %s) with a cancelled context = %v, %v", network, address, c, err)
			}
		}
	}
	// Nobody has 10.0.0.77, so the dial waits for its answer to ARP.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	_, err := a.DialContext(ctx, "tcp", "10.0.0.77:1")
	var nerr net.Error
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &nerr) || !nerr.Timeout() {
		t.Errorf("DialContext() past its deadline = %v, want a timeout", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := a.DialContext(ctx, "tcp", "10.0.0.77:1")
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("DialContext() cancelled meanwhile = %v", err)
	}
	// The context ends the dialling, and not the connection.
	ctx, cancel = context.WithCancel(t.Context())
	l := mustListen(t, b, ":80")
	c, err := a.DialContext(ctx, "tcp", "10.0.0.2:80")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go func() { s.Write([]byte("x")); s.Close() }()
	if got, err := io.ReadAll(c); string(got) != "x" || err != nil {
		t.Errorf("ReadAll() after the context's end = %q, %v", got, err)
	}
}
