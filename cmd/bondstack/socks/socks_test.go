package socks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// rig is a proxy into a stack at 10.0.0.1, with a server of everything at 10.0.0.2.
type rig struct {
	t      *testing.T
	relay  *relay.Relay
	server *Server
	proxy  string
	far    *stack.Host
}

func newRig(t *testing.T, limits relay.Options, opts Options) *rig {
	t.Helper()
	linktest.CheckGoroutines(t)
	a, b, err := wire.New(wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host := func(ep *wire.Endpoint, number int) *stack.Host {
		h, err := stack.NewHost(ep, stack.HostOptions{DADInterval: time.Millisecond, Addresses: []netip.Prefix{
			netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", number)), netip.MustParsePrefix(fmt.Sprintf("fd00::%d/64", number))}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		return h
	}
	near, far := host(a, 1), host(b, 2)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts.Relay, opts.Stack = relay.New(limits), near
	t.Cleanup(opts.Relay.Close)
	return &rig{t, opts.Relay, Serve(l, opts), l.Addr().String(), far}
}

// names resolves server.test, first to an address where nobody answers.
func names(_ context.Context, _, name string) ([]netip.Addr, error) {
	if name == "server.test" {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// say connects to the proxy, sends bytes and returns so many of the answer.
func (r *rig) say(bytes string, n int) (net.Conn, string) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.proxy)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	c.Write([]byte(bytes))
	b := make([]byte, n)
	got, _ := io.ReadFull(c, b)
	return c, string(b[:got])
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// curl fetches by IPv4, IPv6 and name, with and without a password.
func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("needs curl")
	}
	for _, users := range []map[string]string{nil, {"user": "pass word"}} {
		r := newRig(t, relay.Options{}, Options{Resolve: names, Users: users})
		l, err := r.far.Listen("tcp", ":80")
		if err != nil {
			t.Fatal(err)
		}
		body := strings.Repeat("0123456789abcdef", 1<<16)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })}
		go srv.Serve(l)
		defer srv.Close()
		for _, c := range []struct {
			url, flag, user string
			code            int
		}{
			{"http://10.0.0.2/", "--socks5", "user:pass word", 0},
			{"http://[fd00::2]/", "--socks5", "user:pass word", 0},
			{"http://server.test/", "--socks5-hostname", "user:pass word", 0},
			{"http://nowhere.test/", "--socks5-hostname", "user:pass word", 97},
			{"http://10.0.0.2:81/", "--socks5", "user:pass word", 97},
			{"http://10.0.0.2/", "--socks5", "user:wrong", 97},
			{"http://10.0.0.2/", "--socks5", "", 97},
		} {
			args := []string{"-sS", "--noproxy", "", "--max-time", "15", c.flag, r.proxy, c.url}
			if users == nil && c.user != "user:pass word" {
				continue
			}
			if users != nil && c.user != "" {
				args = append(args, "--proxy-user", c.user)
			}
			var out, errs bytes.Buffer
			cmd := exec.Command(curl, args...)
			cmd.Stdout, cmd.Stderr = &out, &errs
			err := cmd.Run()
			var exit *exec.ExitError
			switch {
			case c.code == 0 && (err != nil || out.String() != body):
				t.Errorf("%v: %d bytes, %v: %s", args, out.Len(), err, &errs)
			case c.code != 0 && (!errors.As(err, &exit) || exit.ExitCode() != c.code):
				t.Errorf("%v: %v, want exit code %d: %s", args, err, c.code, &errs)
			}
		}
		if s := r.server.Stats(); users != nil && s.Denied != 2 {
			t.Errorf("stats = %+v, want 2 denied", s)
		}
	}
}

// What the proxy answers to what it cannot do.
func TestReplies(t *testing.T) {
	r := newRig(t, relay.Options{OpenTimeout: 200 * time.Millisecond}, Options{})
	const hello, helloAnswer = "\x05\x01\x00", "\x05\x00"
	zeros := "\x00\x01\x00\x00\x00\x00\x00\x00"
	for _, c := range []struct{ name, ask, want string }{
		{"refused", hello + "\x05\x01\x00\x01\x0a\x00\x00\x02\x00\x50", helloAnswer + "\x05\x05" + zeros},
		{"no route", hello + "\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50", helloAnswer + "\x05\x03" + zeros},
		{"nobody there", hello + "\x05\x01\x00\x01\x0a\x00\x00\x09\x00\x50", helloAnswer + "\x05\x04" + zeros},
		{"bind", hello + "\x05\x02\x00\x01\x0a\x00\x00\x02\x00\x50", helloAnswer + "\x05\x07" + zeros},
		{"a name without a resolver", hello + "\x05\x01\x00\x03\x01a\x00\x50", helloAnswer + "\x05\x08" + zeros},
		{"an address type", hello + "\x05\x01\x00\x09\x01a\x00\x50", helloAnswer + "\x05\x08" + zeros},
		{"only a password", "\x05\x01\x02", "\x05\xff"},
		{"version 4", "\x04\x01\x00\x50\x0a\x00\x00\x02\x00", ""},
		{"http", "GET / HTTP/1.1\r\n\r\n", ""},
	} {
		if _, got := r.say(c.ask, len(c.want)+1); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if s := r.server.Stats(); s.Malformed != 3 || s.Denied != 1 {
		t.Errorf("stats = %+v", s)
	}
	eventually(t, "nothing is left", func() bool { return r.relay.Stats().TCP.Open == 0 })
}

// Bytes pass both ways, sent with the request already, and ends pass each for
// itself.
func TestConnect(t *testing.T) {
	r := newRig(t, relay.Options{}, Options{})
	l, err := r.far.Listen("tcp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		question, _ := io.ReadAll(c)
		c.Write(append([]byte("answer to "), question...))
	}()
	c, got := r.say("\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x00\x02\x00\x07early", 2+4)
	if got != "\x05\x00\x05\x00\x00\x01" {
		t.Fatalf("the proxy says %q", got)
	}
	io.ReadFull(c, make([]byte, 6))
	c.Write([]byte(" and late"))
	c.(*net.TCPConn).CloseWrite()
	if answer, err := io.ReadAll(c); err != nil || string(answer) != "answer to early and late" {
		t.Errorf("%q, %v", answer, err)
	}
}

// associate makes an association and returns its connection and where to send to.
func (r *rig) associate() (c net.Conn, at *net.UDPAddr) {
	r.t.Helper()
	c, got := r.say("\x05\x01\x00\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", 2+3)
	if got != "\x05\x00\x05\x00\x00" {
		r.t.Fatalf("the proxy says %q", got)
	}
	bound, err := readAddress(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return c, net.UDPAddrFromAddrPort(netip.AddrPortFrom(bound.ip, bound.port))
}

// Datagrams pass by IPv4, IPv6 and name, other senders' do not, and all ends with
// the connection.
func TestAssociate(t *testing.T) {
	clock := faketime.NewManualClock()
	r := newRig(t, relay.Options{TCPIdle: time.Hour, UDPIdle: time.Minute, Clock: clock}, Options{Resolve: names})
	pc, err := r.far.ListenPacket("udp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			pc.WriteTo(b[:n], from)
		}
	}()
	control, at := r.associate()
	client, err := net.DialUDP("udp", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.SetDeadline(time.Now().Add(patience))
	ask := func(header string, payload []byte, from string) {
		t.Helper()
		if _, err := client.Write(append([]byte(header), payload...)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 64<<10)
		n, err := client.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if source, got, err := parseDatagram(b[:n]); err != nil || source.String() != from || !bytes.Equal(got, payload) {
			t.Errorf("%d bytes from %s came, %v, want %d from %s", len(got), source, err, len(payload), from)
		}
	}
	const ipv4 = "\x00\x00\x00\x01\x0a\x00\x00\x02\x00\x07"
	ask(ipv4, []byte("four"), "10.0.0.2:7")
	ask(ipv4, bytes.Repeat([]byte("long"), 5000), "10.0.0.2:7")
	ask("\x00\x00\x00\x04\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x07", []byte("six"), "[fd00::2]:7")
	ask("\x00\x00\x00\x03\x0810.0.0.2\x00\x07", nil, "10.0.0.2:7")

	stranger, err := net.DialUDP("udp", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	stranger.Write([]byte(ipv4 + "x"))
	client.Write([]byte("\x00\x00\x01\x01\x0a\x00\x00\x02\x00\x07fragment"))
	eventually(t, "both are refused", func() bool { return r.server.Stats().Malformed == 2 })

	// The flow ends after a minute and comes again; the association stays, and
	// the connection is not idle as long as datagrams pass.
	for range 12 {
		clock.Advance(10 * time.Minute)
		eventually(t, "the flow is idle", func() bool { return r.relay.Stats().UDP.Open == 0 })
		before := r.relay.Stats().UDP.ToNear
		ask(ipv4, []byte("again"), "10.0.0.2:7")
		eventually(t, "the answer is counted", func() bool { return r.relay.Stats().UDP.ToNear > before })
	}
	if s := r.relay.Stats(); s.TCP.Open != 1 || s.UDP.Open != 1 {
		t.Errorf("stats = %+v", s)
	}
	control.Close()
	eventually(t, "all has ended", func() bool { s := r.relay.Stats(); return s.TCP.Open == 0 && s.UDP.Open == 0 })
	if _, err := client.Write([]byte(ipv4)); err == nil {
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after the end one reads %v", err)
		}
	}
}

// Clients that say nothing, and associations, end with the relay.
func TestClose(t *testing.T) {
	r := newRig(t, relay.Options{MaxTCP: 3}, Options{})
	silent, _ := r.say("\x05", 0)
	control, _ := r.associate()
	r.associate()
	beyond, err := net.Dial("tcp", r.proxy)
	if err == nil {
		defer beyond.Close()
		beyond.SetDeadline(time.Now().Add(patience))
		_, err = beyond.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("beyond the limit one reads %v, want a reset", err)
	}
	r.relay.Close()
	for _, c := range []net.Conn{silent, control} {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the close one reads %v", err)
		}
	}
}

func TestUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# people\n\nann:one:two\nben:three\n")
	users, err := ReadUsers(path)
	if err != nil || len(users) != 2 || users["ann"] != "one:two" || users["ben"] != "three" {
		t.Errorf("%v, %v", users, err)
	}
	for _, text := range []string{"", "ann\n", ":x\n", "ann:\n", "ann:one\nsecret\n", "ann:" + strings.Repeat("x", 256)} {
		write(text)
		if _, err := ReadUsers(path); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{"1080": "127.0.0.1:1080", ":1080": "127.0.0.1:1080", "0.0.0.0:1080": "0.0.0.0:1080", "[::1]:1": "[::1]:1", "x": "", "": "", "1.2.3.4": "", "127.0.0.1:0": ""} {
		if got, err := Address(text); got != want || (want == "") != (err != nil) {
			t.Errorf("Address(%q) = %q, %v", text, got, err)
		}
	}
}
