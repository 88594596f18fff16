package iperf3

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stream is one flow of a test, at one of its ends.
type stream struct {
	id        int  // on the wire
	socket    int  // in the output
	sender    bool // this end sends
	datagrams bool
	local     net.Addr
	remote    net.Addr
	conn      net.Conn // nil for the datagrams of a server
	write     func([]byte) (int, error)

	bytes   atomic.Uint64
	packets atomic.Uint64 // sent
	ended   atomic.Bool   // nothing more is received
	failed  atomic.Uint64 // datagrams that the network did not take

	mu sync.Mutex // guards arrivals
	arrivals

	// The following belong to the goroutine that measures.
	last, omitted sample        // of the last interval, and when counting began
	until         time.Duration // since the start: when the test was over for it; 0 before
	drained       uint64        // bytes, as seen last after the end
	rtts          rtts
	own, peer     totals
}

// newStream makes the stream at that place in the order of connecting.
func newStream(place int, sender, datagrams bool) *stream {
	s := &stream{id: place + 1, socket: 5 + 2*place, sender: sender, datagrams: datagrams}
	if place > 0 {
		s.id++ // iperf3 counts 1, 3, 4
	}
	return s
}

// over makes the stream use a connection.
func (s *stream) over(c net.Conn) {
	s.conn, s.write, s.local, s.remote = c, c.Write, c.LocalAddr(), c.RemoteAddr()
}

// send sends blocks until the test has no more, and returns why it failed.
func (s *stream) send(t *test) error {
	block := t.block
	if s.datagrams {
		block = slices.Clone(block) // each has a header of its own
	}
	p := pacer{t.set.rate, t.set.burst}
	began := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for blocks, sent := uint64(0), uint64(0); t.takeBlock(); blocks++ {
		if d := p.wait(blocks, sent, time.Since(began)); d > 0 {
			timer.Reset(d)
			select {
			case <-timer.C:
			case <-t.stopped:
				return nil
			}
		}
		n, err := s.sendBlock(t, block)
		sent += uint64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// failurePause is how long a sender of datagrams waits after one that the network
// did not take: a bond without a link does not end a test.
const failurePause = time.Millisecond

// sendBlock sends one block and counts it.
func (s *stream) sendBlock(t *test, block []byte) (int, error) {
	if !s.datagrams {
		n, err := s.write(block)
		s.bytes.Add(uint64(n))
		t.count(&t.toSend, n)
		return n, err
	}
	putHeader(block, time.Since(t.epoch), s.packets.Load()+1, t.set.counters64)
	n, err := s.write(block)
	if err != nil {
		s.failed.Add(1)
		t.quota.Add(1)
		time.Sleep(failurePause)
		return len(block), nil // its time has passed all the same
	}
	s.packets.Add(1)
	s.bytes.Add(uint64(n))
	t.count(&t.toSend, n)
	return n, nil
}

// pattern fills a block with bytes that a link cannot make shorter.
func pattern(b []byte) {
	x := uint64(0x9e3779b97f4a7c15)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
}

// readSize is how much a receiver reads at once, in bytes. It does not depend on what
// a client asks for.
const readSize = 128 << 10

// receive reads until the connection ends, and counts while the test runs.
func (s *stream) receive(t *test) error {
	defer s.ended.Store(true)
	buf := make([]byte, readSize)
	for {
		n, err := s.conn.Read(buf)
		if s.datagrams {
			s.arrived(t, buf[:n])
		} else if n > 0 && t.running.Load() {
			s.bytes.Add(uint64(n))
			t.count(&t.toReceive, n)
		}
		switch {
		case err == io.EOF && !s.datagrams:
			return io.ErrUnexpectedEOF // the test has ended before, or else it is too early
		case err != nil:
			return err
		}
	}
}

// arrived counts a datagram.
func (s *stream) arrived(t *test, b []byte) {
	sent, number, ok := parseHeader(b, t.set.counters64)
	if !ok || !t.running.Load() {
		return
	}
	received := time.Since(t.epoch)
	s.mu.Lock()
	s.add(number, sent, received)
	s.mu.Unlock()
	s.bytes.Add(uint64(len(b)))
	t.count(&t.toReceive, len(b))
}

// addrPort returns an address as host and port, for the output.
func addrPort(a net.Addr) (host string, port int) {
	if a == nil {
		return "", 0
	}
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String(), 0
	}
	return at.Addr().Unmap().String(), int(at.Port())
}
