package readonly

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bondstack/link/linktest"
)

func TestParseListen(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		loopback   bool
	}{
		{"9090", "127.0.0.1:9090", true},
		{":9090", "127.0.0.1:9090", true},
		{"localhost:80", "127.0.0.1:80", true},
		{"127.0.0.2:0", "127.0.0.2:0", true},
		{"[::1]:9090", "[::1]:9090", true},
		{"0.0.0.0:9090", "0.0.0.0:9090", false},
		{"[::]:9090", "[::]:9090", false},
		{"192.0.2.1:65535", "192.0.2.1:65535", false},
		{"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", true},
	} {
		l, err := ParseListen(tt.text)
		if err != nil || l.String() != tt.want || l.IsLoopback() != tt.loopback || l.IsZero() {
			t.Errorf("ParseListen(%q) = %v (loopback %t), %v, want %s (%t)", tt.text, l, l.IsLoopback(), err, tt.want, tt.loopback)
		}
	}
	for _, text := range []string{"", ":", "x", "65536", "-1", "+1", "1.2.3:5", "example.com:80", "::1:80", "[::1]", "[1.2.3.4]:5", "[::1:5", "*:80", " 80", "http://x:1"} {
		if l, err := ParseListen(text); err == nil {
			t.Errorf("ParseListen(%q) = %v, want an error", text, l)
		}
	}
	if l := (Listener{}); !l.IsZero() || l.String() != "" {
		t.Errorf("the zero Listener is %q", l)
	}
	if _, err := (Listener{}).Start(http.NotFoundHandler(), Options{}); err == nil {
		t.Error("nowhere starts")
	}
}

// What is read is loopback unless an address is written, and is written as it
// reads.
func FuzzParseListen(f *testing.F) {
	for _, s := range []string{"9090", ":1", "[::1]:5", "0.0.0.0:80", "localhost:0", "[fe80::1%eth0]:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseListen(text)
		if err != nil {
			return
		}
		again, err := ParseListen(l.String())
		if err != nil || again != l {
			t.Errorf("%q reads as %v, and that as %v, %v", text, l, again, err)
		}
		if !strings.ContainsAny(text, ".[") && !l.IsLoopback() {
			t.Errorf("%q is %v, which is not loopback", text, l)
		}
	})
}

// start serves the word "hello" on a free port.
func start(t *testing.T) *Server {
	t.Helper()
	linktest.CheckGoroutines(t)
	l, err := ParseListen("0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Start(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// raw sends bytes and returns the status line.
func raw(t *testing.T, s *Server, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, request)
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatalf("%.40q: %v", request, err)
	}
	return strings.TrimSpace(line)
}

// Only reading requests by the right name are answered.
func TestRequests(t *testing.T) {
	s := start(t)
	port := s.Addr().(*net.TCPAddr).Port
	for _, tt := range []struct {
		request string
		want    int
	}{
		{fmt.Sprintf("GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port), 200},
		{fmt.Sprintf("GET / HTTP/1.1\r\nHost: LocalHost.:%d\r\n\r\n", port), 200},
		{"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", 200},
		{"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
		{"GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 403},
		{"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 403},
		{"GET / HTTP/1.1\r\nHost: \r\n\r\n", 403},
		{"GET / HTTP/1.0\r\n\r\n", 403},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405},
		{"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
		{"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 413},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", 431},
	} {
		if got := raw(t, s, tt.request); !strings.Contains(got, fmt.Sprintf(" %d ", tt.want)) {
			t.Errorf("%.60q: %s, want %d", tt.request, got, tt.want)
		}
	}
}

// Names are for all to choose only where an address was written out.
func TestNames(t *testing.T) {
	for _, tt := range []struct {
		listen  string
		anyName bool
		want    int
	}{{"127.0.0.1:0", true, 403}, {"0.0.0.0:0", true, 200}, {"0.0.0.0:0", false, 403}} {
		l, err := ParseListen(tt.listen)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), l.names(Options{AnyName: tt.anyName})).
			ServeHTTP(w, httptest.NewRequest("GET", "http://bond.example/", nil))
		if w.Code != tt.want {
			t.Errorf("on %s by a name (any name: %t): %d, want %d", tt.listen, tt.anyName, w.Code, tt.want)
		}
	}
}

// A port that is taken is named, with the way out.
func TestTaken(t *testing.T) {
	s := start(t)
	l, err := ParseListen(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Start(http.NotFoundHandler(), Options{}); err == nil || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("Start() on a port in use = %v", err)
	}
}

// However many connect, so many are served at once and no more, and the next
// gets its turn when one goes.
func TestMaxConnections(t *testing.T) {
	s := start(t)
	var idle []net.Conn
	for range MaxConnections {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	answered := make(chan string)
	go func() {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		answered <- line
	}()
	select {
	case got := <-answered:
		t.Errorf("one more than allowed got %q", got)
	default:
	}
	idle[0].Close()
	if got := <-answered; !strings.Contains(got, " 200 ") {
		t.Errorf("the next got %q", got)
	}
}
