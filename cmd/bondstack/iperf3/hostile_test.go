package iperf3

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"bondstack/link/wire"
)

// dial makes a connection that has said its cookie.
func (p *pair) dial(t *testing.T, cookie string) net.Conn {
	t.Helper()
	c, err := p.client.DialContext(t.Context(), "tcp", serverAddress+":5201")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(append([]byte(cookie), make([]byte, cookieSize-len(cookie))...)); err != nil {
		t.Fatal(err)
	}
	return c
}

func expect(t *testing.T, what string, c io.Reader, want ...byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s: got %x, %v, want %x", what, got, err, want)
	}
}

func message(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// Parameters that a server does not take are answered with the number by which
// iperf3 knows the fault, and the next client is served.
func TestParametersRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t, wire.Impairments{}, ServerOptions{MaxDuration: 20 * time.Second})
	for text, want := range map[string]fault{
		`{"tcp":true,"time":21,"len":1000}`:                                   faultDuration,
		`{"tcp":true,"time":-1,"len":1000}`:                                   faultDuration,
		`{"tcp":true,"time":1e300,"len":1000}`:                                faultDuration,
		`{"tcp":true,"len":1000}`:                                             faultDuration,
		`{"tcp":true,"time":1,"num":5,"len":1000}`:                            faultConditions,
		`{"tcp":true,"time":1,"parallel":129,"len":1000}`:                     faultStreams,
		`{"tcp":true,"time":1,"len":1048577}`:                                 faultBlockSize,
		`{"tcp":true,"time":1,"len":0}`:                                       faultBlockSize,
		`{"udp":true,"time":1,"len":65508}`:                                   faultUDPSize,
		`{"udp":true,"time":1,"len":15}`:                                      faultUDPSize,
		`{"udp":true,"tcp":true,"time":1,"len":1000}`:                         faultNotHere,
		`{"sctp":true,"time":1,"len":1000}`:                                   faultNotHere,
		`{"tcp":true,"time":1,"omit":61,"len":1000}`:                          faultOmit,
		`{"tcp":true,"time":1,"len":1000,"reverse":true,"bidirectional":1}`:   faultDirections,
		`{"tcp":true,"time":1,"len":1000,"bandwidth":1.8446744073709552e+19}`: faultRate,
		`{"tcp":true,"time":1,"len":1000,"burst":1001}`:                       faultBurst,
		`{"tcp":true,`: faultParams,
		`[1]`:          faultParams,
		`{"x":"` + strings.Repeat("x", maxParams) + `"}`: faultParams,
	} {
		c := p.dial(t, "cookie")
		expect(t, text[:min(len(text), 70)], c, byte(paramExchange))
		if _, err := c.Write(message(text)); err != nil {
			t.Fatal(err)
		}
		expect(t, text[:min(len(text), 70)], c, 0xfe, 0, 0, byte(want>>8), byte(want), 0, 0, 0, 0)
	}
	if c, _ := p.run(t, ClientOptions{Bytes: 1 << 20}); c.End.SumReceived.Bytes == 0 {
		t.Error("nothing was received after the refusals")
	}
}

// Others are told that the server is busy, whatever they try to be.
func TestBusy(t *testing.T) {
	t.Parallel()
	p := newPair(t, wire.Impairments{}, ServerOptions{})
	c := p.dial(t, "one")
	expect(t, "the first", c, byte(paramExchange))
	expect(t, "another", p.dial(t, "other"), 0xff)
	if _, err := Run(t.Context(), p.client, ClientOptions{Host: serverAddress}); err != errBusy {
		t.Errorf("Run() while another test is on = %v, want %v", err, errBusy)
	}
	c.Close()
	p.awaitFree(t)
}

// pipes is a listener to which the test connects by pipes.
type pipes struct {
	net.Listener
	come chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.come; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// However many come while a session is about to end, no more wait for that than may;
// the others are closed at once, and counted.
func TestFlood(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newServer(nil, ServerOptions{Log: slog.New(slog.NewTextHandler(&log, nil))}, func() {})
	s.session = &session{ending: true}
	l, over := pipes{come: make(chan net.Conn)}, make(chan struct{})
	go func() {
		defer close(over)
		s.accept(t.Context(), l)
	}()
	const beyond = 5
	var others sync.WaitGroup
	for i := range maxGreetings + beyond {
		near, far := net.Pipe()
		l.come <- far
		if i >= maxGreetings {
			expectAll(t, "one too many", near)
			continue
		}
		if _, err := near.Write(make([]byte, cookieSize)); err != nil {
			t.Fatal(err)
		}
		others.Go(func() {
			expectAll(t, "one who waited", near, 0xff)
		})
	}
	s.mu.Lock()
	s.session.ending = false // as one that another client has begun
	s.session.cookie[0] = 1
	s.ended.Broadcast()
	s.mu.Unlock()
	others.Wait()
	close(l.come)
	<-over
	if s.refused != beyond || len(s.greetings) != 0 || strings.Count(log.String(), "too many others") != 3 {
		t.Errorf("%d were refused, want %d, and %d wait still; the log says\n%s", s.refused, beyond, len(s.greetings), &log)
	}
}

// expectAll expects bytes and then the end.
func expectAll(t *testing.T, what string, c io.Reader, want ...byte) {
	t.Helper()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: got %x, %v, want %x", what, got, err, want)
	}
}

// awaitFree runs a test as soon as the server is free: that a client has gone is
// noticed after some time.
func (p *pair) awaitFree(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		r, err := Run(t.Context(), p.client, ClientOptions{Host: serverAddress, Bytes: 1 << 20})
		if err == nil && r.End.SumReceived.Bytes > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Run() after another test = %v", err)
		}
	}
}

// A client that stands still, at whatever point, holds the server no longer than
// its patience, and a test no longer than it may take. It has more of it where the
// client has to come to the point in time.
func TestClientStandsStill(t *testing.T) {
	t.Parallel()
	quick := newPair(t, wire.Impairments{}, ServerOptions{patience: 100 * time.Millisecond})
	patient := newPair(t, wire.Impairments{}, ServerOptions{patience: 2 * time.Second, MaxDuration: time.Second})
	tcp := `{"tcp":true,"num":1000000,"len":1000}`
	running := func(c net.Conn) {
		c.Write(message(tcp))
		expect(t, "streams", c, byte(createStreams))
		patient.dial(t, "still")
		expect(t, "start", c, byte(testStart), byte(testRunning))
	}
	for _, tt := range []struct {
		name string
		at   *pair
		do   func(net.Conn)
	}{
		{"after its cookie", quick, func(net.Conn) {}},
		{"in the length", quick, func(c net.Conn) { c.Write([]byte{0, 0}) }},
		{"in the parameters", quick, func(c net.Conn) { c.Write(message(tcp)[:10]) }},
		{"without streams", quick, func(c net.Conn) { c.Write(message(tcp)) }},
		{"without datagrams", quick, func(c net.Conn) { c.Write(message(`{"udp":true,"num":1000000,"len":1000}`)) }},
		{"while the test runs", patient, running},
		{"instead of results", patient, func(c net.Conn) {
			running(c)
			c.Write([]byte{byte(testEnd)})
			expect(t, "end", c, byte(exchangeResults))
		}},
	} {
		c := tt.at.dial(t, "still")
		expect(t, tt.name, c, byte(paramExchange))
		tt.do(c)
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: the server does not end it: %v", tt.name, err)
		}
		tt.at.awaitFree(t)
	}
}

// Results that are not those of the test are refused.
func TestResultsRefused(t *testing.T) {
	t.Parallel()
	tt := &test{streams: []*stream{newStream(0, true, false), newStream(1, true, false)}}
	for _, text := range []string{
		`{"streams":[{"id":1}]}`, `{"streams":[{"id":1},{"id":2}]}`, `{"streams":[{"id":1},{"id":1}]}`, `{}`, `7`,
		`{"x":"` + strings.Repeat("x", maxResults(2)) + `"}`,
	} {
		if err := tt.readResults(bytes.NewReader(message(text))); err == nil {
			t.Errorf("results %.60s are taken", text)
		}
	}
	good := `{"cpu_util_total":1,"sender_has_retransmits":1.8446744073709552e+19,"streams":[{"id":3,"bytes":7,"retransmits":1.8446744073709552e+19},{"id":1,"bytes":5}]}`
	if err := tt.readResults(bytes.NewReader(message(good))); err != nil || tt.streams[0].peer.bytes != 5 || tt.streams[1].peer.bytes != 7 || tt.streams[1].peer.retransmits != nil {
		t.Errorf("results: %v, %+v, %+v", err, tt.streams[0].peer, tt.streams[1].peer)
	}
}
