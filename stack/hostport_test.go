package stack_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"bondstack/stack"
)

func TestBadAddresses(t *testing.T) {
	h, _ := newPair(t)
	dial := func(network, address string) error { _, err := h.Dial(network, address); return err }
	listen := func(network, address string) error { _, err := h.Listen(network, address); return err }
	packet := func(network, address string) error { _, err := h.ListenPacket(network, address); return err }
	for _, tt := range []struct {
		call             func(network, address string) error
		network, address string
		want             string
		is               error
	}{
		{dial, "tcp", "example.org:80", "no name servers are known", nil},
		{dial, "tcp", "localhost:80", "no name servers are known", nil},
		{dial, "udp", "10.0.0.300:80", "no name servers", nil},
		{dial, "tcp", "10.0.0.2", "missing port", nil},
		{dial, "tcp", "fd00::2:80", "too many colons", nil},
		{dial, "tcp", "10.0.0.2:http", "from 0 to 65535", nil},
		{dial, "tcp", "10.0.0.2:65536", "from 0 to 65535", nil},
		{dial, "tcp", "10.0.0.2:-1", "from 0 to 65535", nil},
		{dial, "tcp4", "[fd00::2]:80", "tcp4 needs an IPv4 address", nil},
		{dial, "udp6", "10.0.0.2:80", "udp6 needs an IPv6 address", nil},
		{dial, "tcp6", "[::ffff:10.0.0.2]:80", "tcp6 needs an IPv6 address", nil},
		{dial, "tcp", "[fe80::1%eth9]:80", "only interface is bond0", nil},
		{dial, "tcp", "127.0.0.1:80", "no loopback", syscall.ENETUNREACH},
		{dial, "tcp", "192.168.9.9:80", "", syscall.ENETUNREACH},
		{dial, "ip", "10.0.0.2:80", "unknown network ip", net.UnknownNetworkError("ip")},
		{dial, "unix", "/tmp/x", "unknown network unix", nil},
		{listen, "tcp", "10.0.0.9:80", "10.0.0.9 is not an address of bond0", syscall.EADDRNOTAVAIL},
		{listen, "tcp", "[fd00::9]:80", "fd00::9 is not an address of bond0", syscall.EADDRNOTAVAIL},
		{listen, "udp", ":80", "unknown network udp", nil},
		{listen, "tcp4", "[fd00::1]:80", "tcp4 needs", nil},
		{packet, "udp", "10.0.0.9:80", "10.0.0.9 is not an address of bond0", syscall.EADDRNOTAVAIL},
		{packet, "tcp", ":80", "unknown network tcp", nil},
	} {
		err := tt.call(tt.network, tt.address)
		var op *net.OpError
		if !errors.As(err, &op) || op.Net != tt.network {
			t.Errorf("%s %s: error %v is no *net.OpError of that network", tt.network, tt.address, err)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || (tt.is != nil && !errors.Is(err, tt.is)) {
			t.Errorf("%s %s: error %q, want %q and %v", tt.network, tt.address, err, tt.want, tt.is)
		}
	}
}

func TestPortInUse(t *testing.T) {
	h, _ := newPair(t)
	for _, address := range []string{":80", "0.0.0.0:80", "10.0.0.1:80", "[::]:80", "[fd00::1]:80"} {
		l, err := h.Listen("tcp", ":80")
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "listen tcp") {
			t.Errorf("Listen(%s) on a port in use = %v", address, err)
		}
		l.Close()
		p, err := h.ListenPacket("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.ListenPacket("udp", address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenPacket(%s) on a port in use = %v", address, err)
		}
		p.Close()
	}
}

// A port is free again when its listener is closed, whatever is left of its
// connections (here one in TIME-WAIT).
func TestListenAgain(t *testing.T) {
	a, b := newPair(t)
	for range 3 {
		l, err := b.Listen("tcp", "10.0.0.2:80")
		if err != nil {
			t.Fatal(err)
		}
		c, s := connect(t, a, l)
		s.Close()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("Read() = no error after the peer's Close")
		}
		c.Close()
		l.Close()
	}
}

// connect makes a connection to a listener.
func connect(t testing.TB, h *stack.Host, l net.Listener) (client, server net.Conn) {
	t.Helper()
	client, err := h.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestAddrs(t *testing.T) {
	a, b := newPair(t)
	for _, tt := range []struct{ network, listen, want, dial, local string }{
		{"tcp", ":81", "[::]:81", "10.0.0.2:81", "10.0.0.2:81"},
		{"tcp", "0.0.0.0:82", "[::]:82", "[fd00::2]:82", "[fd00::2]:82"},
		{"tcp4", ":83", "0.0.0.0:83", "10.0.0.2:83", "10.0.0.2:83"},
		{"tcp6", ":84", "[::]:84", "[fd00::2]:84", "[fd00::2]:84"},
		{"tcp", "10.0.0.2:85", "10.0.0.2:85", "10.0.0.2:85", "10.0.0.2:85"},
		{"tcp", "[::ffff:10.0.0.2]:86", "10.0.0.2:86", "[::ffff:10.0.0.2]:86", "10.0.0.2:86"},
	} {
		l, err := b.Listen(tt.network, tt.listen)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().String(); got != tt.want {
			t.Errorf("Listen(%s, %s).Addr() = %s, want %s", tt.network, tt.listen, got, tt.want)
		}
		c, err := a.Dial("tcp", tt.dial)
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.LocalAddr().String(); got != tt.local || c.RemoteAddr().String() != tt.local {
			t.Errorf("%s: local address = %s, the peer's remote = %s, want %s", tt.listen, got, c.RemoteAddr(), tt.local)
		}
		if s.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("%s: remote address = %s, the peer's local = %s", tt.listen, s.RemoteAddr(), c.LocalAddr())
		}
		c.Close()
		s.Close()
		// The addresses can be asked for after the end.
		if got := s.LocalAddr().String(); got != tt.local {
			t.Errorf("%s: local address after Close = %s, want %s", tt.listen, got, tt.local)
		}
		l.Close()
	}
	// A listener of one version does not take the other's connections.
	if l, err := b.Listen("tcp6", ":90"); err != nil {
		t.Fatal(err)
	} else if _, err := a.Dial("tcp", "10.0.0.2:90"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial(IPv4) to a tcp6 listener = %v, want refused", err)
	} else {
		l.Close()
	}
	// Port 0 is any free one.
	l, err := b.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	if port := l.Addr().(*net.TCPAddr).Port; port == 0 {
		t.Error("Listen(:0).Addr() has port 0")
	}
}

// The host reaches itself by its own addresses, and by the unspecified ones.
func TestSelf(t *testing.T) {
	h, _ := newPair(t)
	l, err := h.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{":80", "0.0.0.0:80", "[::]:80", "10.0.0.1:80", "[fd00::1]:80"} {
		c, err := h.Dial("tcp", address)
		if err != nil {
			t.Fatalf("Dial(%s) = %v", address, err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go s.Write([]byte("x"))
		if n, err := c.Read(make([]byte, 9)); n != 1 || err != nil {
			t.Errorf("Read() from self by %s = %d, %v", address, n, err)
		}
		c.Close()
		s.Close()
	}
	c, err := h.Dial("tcp6", ":80")
	if err != nil || !c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Is6() {
		t.Errorf("Dial(tcp6, :80) = %v, %v", c, err)
	}
}

// IPv6 link-local addresses are dialled with the interface's name or without.
func TestLinkLocal(t *testing.T) {
	a, b := newPair(t)
	own := b.Addresses()[0].Prefix
	if !own.Addr().IsLinkLocalUnicast() || own.Bits() != 64 {
		t.Fatalf("first address = %s, want a link-local one", own)
	}
	l, err := b.Listen("tcp", "["+own.Addr().String()+"]:80")
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{own.Addr().String(), own.Addr().String() + "%bond0"} {
		c, err := a.Dial("tcp", net.JoinHostPort(host, "80"))
		if err != nil {
			t.Fatalf("Dial(%s) = %v", host, err)
		}
		if got := c.RemoteAddr().(*net.TCPAddr).Zone; got != "bond0" {
			t.Errorf("zone of the remote address = %q, want bond0", got)
		}
		c.Close()
	}
	l.Close()
	if err := ping(t, a, own.Addr().String()); err != nil {
		t.Error(err)
	}
}

func TestErrorTexts(t *testing.T) {
	a, b := newPair(t)
	_, err := a.Dial("tcp", "10.0.0.2:1")
	if want := "dial tcp 10.0.0.2:1: connect: connection refused"; err == nil || err.Error() != want {
		t.Errorf("Dial(closed port) = %v, want %s", err, want)
	}
	if _, err := a.Dial("tcp", "10.0.0.77:1"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("Dial(nobody) = %v, want no route to host", err)
	}
	l, err := b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	c, s := connect(t, a, mustListen(t, b, "10.0.0.2:81"))
	l.Close()
	c.Close()
	for what, err := range map[string]error{
		"Accept":  second(l.Accept()),
		"Read":    second(c.Read(make([]byte, 1))),
		"Read 0":  second(c.Read(nil)),
		"Write":   second(c.Write([]byte("x"))),
		"Close":   c.Close(),
		"Close l": l.Close(),
	} {
		var op *net.OpError
		if !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) || !strings.HasSuffix(err.Error(), "use of closed network connection") {
			t.Errorf("%s after Close = %v, want net.ErrClosed", what, err)
		}
	}
	// A peer that resets is no clean end, for whichever call comes first and
	// for all that come later.
	s.(*stack.TCPConn).SetLinger(0)
	c, s = connect(t, a, mustListen(t, b, "10.0.0.2:82"))
	s.(*stack.TCPConn).SetLinger(0)
	s.Close()
	for i := range 3 {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Read() %d after a reset = %v", i, err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Write() %d after a reset = %v", i, err)
		}
	}
	if os.IsTimeout(err) {
		t.Errorf("%v is no timeout", err)
	}
}

func mustListen(t testing.TB, h *stack.Host, address string) net.Listener {
	t.Helper()
	l, err := h.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func second[T any](_ T, err error) error { return err }
