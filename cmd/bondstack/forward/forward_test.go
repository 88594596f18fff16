package forward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"bondstack/link/linktest"
	"bondstack/link/relay"
	"bondstack/link/wire"
	"bondstack/stack"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Forward{
		"tcp:2222=127.0.0.1:22":              {Network: "tcp", Port: 2222, To: "127.0.0.1:22"},
		"udp:53=[fd00::1]:53":                {Network: "udp", Port: 53, To: "[fd00::1]:53"},
		"tcp:10.0.0.2:80=web.test:8080":      {Network: "tcp", Address: netip.MustParseAddr("10.0.0.2"), Port: 80, To: "web.test:8080"},
		"host:tcp:8080=10.0.0.1:80":          {FromHost: true, Network: "tcp", Port: 8080, To: "10.0.0.1:80"},
		"host:udp:[::1]:5353=[fd00::1]:5353": {FromHost: true, Network: "udp", Address: netip.MustParseAddr("::1"), Port: 5353, To: "[fd00::1]:5353"},
	} {
		f, err := Parse(text)
		if err != nil || f != want || f.String() != text {
			t.Errorf("Parse(%q) = %+v, %v, written %q", text, f, err, f)
		}
		b, err := json.Marshal([]Forward{f})
		var again []Forward
		if err == nil {
			err = json.Unmarshal(b, &again)
		}
		if err != nil || len(again) != 1 || again[0] != want {
			t.Errorf("%q by JSON: %s, %+v, %v", text, b, again, err)
		}
	}
	for text, want := range map[string]string{
		"":                           Form,
		"tcp":                        Form,
		"tcp:80":                     Form,
		"sctp:80=a:80":               Form,
		"host:80=a:80":               Form,
		"host:host:tcp:80=a:80":      Form,
		"tcp:=a:80":                  `"" is not a port`,
		"tcp:0=a:80":                 "1 to 65535",
		"tcp:65536=a:80":             "1 to 65535",
		"tcp:10.0.0.2:0=a:80":        "1 to 65535",
		"tcp:10.0.0.2=a:80":          "is not a port",
		"host:tcp:localhost:80=a:80": "literal address",
		"tcp:80=a":                   "not HOST:PORT",
		"tcp:80=:80":                 "not HOST:PORT",
		"tcp:80=a:0":                 "1 to 65535",
		"tcp:80=fd00::1:80":          "not HOST:PORT",
	} {
		if f, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %+v, %v, want %q", text, f, err, want)
		}
	}
}

// What is parsed is parsed again from its text, whatever it was.
func FuzzParse(f *testing.F) {
	f.Add("tcp:2222=127.0.0.1:22")
	f.Add("host:udp:[fe80::1%eth0]:53=[fd00::1]:53")
	f.Fuzz(func(t *testing.T, text string) {
		f, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(f.String()); err != nil || again != f {
			t.Errorf("%q is %+v, its text %q is %+v, %v", text, f, f, again, err)
		}
	})
}

// log keeps what many goroutines write.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Both ways, TCP and UDP, between a stack and the host, with an echo behind each.
func TestForward(t *testing.T) {
	linktest.CheckGoroutines(t)
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
	bonded, beyond := host(a, "10.0.0.1/24"), host(b, "10.0.0.2/24")
	r := relay.New(relay.Options{})
	defer r.Close()
	var text log
	logger := slog.New(slog.NewTextHandler(&text, nil))
	for _, c := range []struct {
		name         string
		fromHost     bool
		client, echo Stack
		echoAt       string
	}{
		{"from the stack", false, beyond, &machine{}, "127.0.0.1:0"},
		{"from the host", true, &machine{}, beyond, "10.0.0.2:0"},
	} {
		for _, network := range []string{"tcp", "udp"} {
			t.Run(c.name+" "+network, func(t *testing.T) {
				at, stop, err := Forward{FromHost: c.fromHost, Network: network, To: echo(t, c.echo, network, c.echoAt)}.Start(r, bonded, logger)
				if err != nil {
					t.Fatal(err)
				}
				_, port, _ := net.SplitHostPort(at.String())
				near := net.JoinHostPort("10.0.0.1", port)
				if c.fromHost {
					near = at.String()
					if !strings.HasPrefix(near, "127.0.0.1:") {
						t.Errorf("the host listens at %s, want only 127.0.0.1", near)
					}
				}
				conn, err := c.client.DialContext(t.Context(), network, near)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(20 * time.Second))
				ask := func(question string) {
					t.Helper()
					io.WriteString(conn, question)
					got := make([]byte, len(question))
					if _, err := io.ReadFull(conn, got); err != nil || string(got) != question {
						t.Errorf("%q came back as %q, %v", question, got, err)
					}
				}
				ask("before")
				stop()
				if network == "tcp" {
					ask("after the stop, on a connection that was there")
					if c, err := c.client.DialContext(t.Context(), network, near); err == nil {
						c.Close()
						t.Error("after the stop one can still connect")
					}
				}
			})
		}
	}
	at, _, err := Forward{FromHost: true, Network: "tcp", To: "10.0.0.2:9"}.Start(r, bonded, logger)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", at.String())
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		c.Close()
	}
	if err == nil || err == io.EOF || !strings.Contains(text.String(), "host:tcp:0=10.0.0.2:9") {
		t.Errorf("where nobody is one reads %v, the log is %q", err, &text)
	}
	if _, _, err := (Forward{Network: "tcp", Address: netip.MustParseAddr("10.9.9.9"), Port: 1, To: "a:1"}).Start(r, bonded, logger); err == nil {
		t.Error("the stack listens at an address that it does not have")
	}
}

// echo serves an echo until the test ends, and returns where.
func echo(t *testing.T, s Stack, network, at string) string {
	t.Helper()
	if network == "tcp" {
		l, err := s.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					io.Copy(c, c)
				}()
			}
		}()
		return l.Addr().String()
	}
	pc, err := s.ListenPacket("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			pc.WriteTo(b[:n], from)
		}
	}()
	return fmt.Sprint(pc.LocalAddr())
}
