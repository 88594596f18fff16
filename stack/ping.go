package stack

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// DefaultPingSize is the payload of ping's echo requests.
	DefaultPingSize = 56
	// maxPingSize leaves room for the IPv4 and ICMP headers in 64 KiB.
	maxPingSize = 65507
	echoHeader  = header.ICMPv4MinimumSize // 8 bytes in ICMPv6 too
)

// PingOptions say how a Pinger asks. The zero value of each field is its
// default.
type PingOptions struct {
	// Size is the payload of an echo request in bytes, up to 65507. Default 56;
	// negative means none.
	Size int
}

// PingCounts are what a Pinger has seen.
type PingCounts struct {
	// Sent are the echo requests, Received those that were answered.
	Sent, Received uint64
	// Late are the Received ones that no Ping waited for: it had given up, or they
	// were asked for by Send.
	Late uint64
	// Duplicates are answers to requests that were answered already.
	Duplicates uint64
	// Foreign are answers to nothing that was asked, and those too damaged to
	// tell.
	Foreign uint64
}

// Pinger sends ICMP echo requests to one address, and counts the answers.
type Pinger struct {
	s       *socket
	to      netip.Addr
	clock   tcpip.Clock
	request []byte

	mu sync.Mutex
	// The following are guarded by mu.
	sequence uint16
	waiting  bool // for the answer to sequence
	// open holds the requests that have had no answer yet, by sequence number:
	// all that the number can tell apart.
	open   map[uint16]struct{}
	counts PingCounts
}

// Ping sends one ICMP echo request and returns the time until the answer. The
// error wraps the context's when there was none.
func (h *Host) Ping(ctx context.Context, to netip.Addr) (time.Duration, error) {
	p, err := h.NewPinger(ctx, to, PingOptions{})
	if err != nil {
		return 0, err
	}
	defer p.Close()
	return p.Ping(ctx)
}

// NewPinger makes a Pinger. The context ends a wait for the host's own IPv6
// address, and nothing else.
func (h *Host) NewPinger(ctx context.Context, to netip.Addr, opts PingOptions) (*Pinger, error) {
	size := max(or(opts.Size, DefaultPingSize), 0)
	if size > maxPingSize {
		return nil, fmt.Errorf("stack: ping %s: size %d is out of range: allowed are at most %d", to, size, maxPingSize)
	}
	to, nic, err := h.parseHost(to.String())
	if err != nil {
		return nil, fmt.Errorf("stack: ping: %w", err)
	}
	target, err := h.remote(ctx, endpointAddress{transport: "udp", at: netip.AddrPortFrom(to, 0)})
	if err != nil {
		return nil, fmt.Errorf("stack: ping %s: %w", to, err)
	}
	to = target.at.Addr()
	s, err := h.pingSocket(to, nic)
	if err != nil {
		return nil, fmt.Errorf("stack: ping %s: %w", to, err)
	}
	p := &Pinger{s: s, to: to, clock: h.opts.Clock, request: make([]byte, echoHeader+size), open: make(map[uint16]struct{})}
	p.request[0] = byte(header.ICMPv4Echo)
	if to.Is6() {
		p.request[0] = byte(header.ICMPv6EchoRequest)
	}
	for i := range size {
		p.request[echoHeader+i] = byte(i)
	}
	return p, nil
}

func (h *Host) pingSocket(to netip.Addr, nic tcpip.NICID) (*socket, error) {
	number := icmp.ProtocolNumber4
	if to.Is6() {
		number = icmp.ProtocolNumber6
		if !h.ipv6 {
			return nil, fmt.Errorf("%s has no IPv6: that needs a link with an MTU of at least %d", h.name, minIPv6MTU)
		}
	}
	var queue waiter.Queue
	ep, err := h.stack.NewEndpoint(number, protocolOf(to), &queue)
	if err != nil {
		return nil, callError("socket", err)
	}
	s, serr := h.newSocket("ping", protocolOf(to), ep, &queue)
	if serr != nil {
		return nil, serr
	}
	if err := ep.Connect(h.fullAddress(netip.AddrPortFrom(to, 0), nic)); err != nil {
		defer s.close()
		return nil, s.reason("connect", err)
	}
	return s, nil
}

// Ping sends an echo request and waits for its answer. It returns the time that
// took, or an error that wraps the context's when there was no answer before
// the context ended. One Ping runs at a time.
func (p *Pinger) Ping(ctx context.Context) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rtt, err := p.ask(ctx)
	p.waiting = false
	if err != nil {
		return 0, fmt.Errorf("stack: ping %s: %w", p.to, err)
	}
	return rtt, nil
}

func (p *Pinger) ask(ctx context.Context) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	start := p.clock.NowMonotonic()
	if err := p.next(ctx); err != nil {
		return 0, err
	}
	p.waiting = true
	for {
		if err := p.s.begin(&p.s.rd); err != nil {
			return 0, err
		}
		answered, err := p.receive()
		if err != nil {
			return 0, err
		}
		if answered {
			return p.clock.NowMonotonic().Sub(start), nil
		}
		if err := p.await(ctx, &p.s.rd); err != nil {
			return 0, err
		}
	}
}

// Send sends an echo request and waits for nothing, neither for an answer, which
// Counts counts, nor for room to send.
func (p *Pinger) Send() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.next(ended); err != nil {
		return fmt.Errorf("stack: ping %s: %w", p.to, err)
	}
	return nil
}

// ended is the context of who does not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// next sends the next request.
func (p *Pinger) next(ctx context.Context) error {
	p.drain()
	p.sequence++
	binary.BigEndian.PutUint16(p.request[6:], p.sequence)
	if err := p.send(ctx); err != nil {
		return err
	}
	p.counts.Sent++
	p.open[p.sequence] = struct{}{}
	return nil
}

func (p *Pinger) send(ctx context.Context) error {
	for {
		if err := p.s.begin(&p.s.wr); err != nil {
			return err
		}
		p.s.wr.reader.Reset(p.request)
		_, err := p.s.ep.Write(&p.s.wr.reader, tcpip.WriteOptions{})
		switch err.(type) {
		case nil:
			return nil
		case *tcpip.ErrWouldBlock:
			if err := p.await(ctx, &p.s.wr); err != nil {
				return err
			}
		default:
			return p.s.reason("write", err)
		}
	}
}

func (p *Pinger) await(ctx context.Context, d *direction) error {
	err := p.s.wait(d, ctx.Done())
	if err == errCancelled {
		return ctx.Err()
	}
	return err
}

// receive takes the answers that are there. It returns whether the one that is
// waited for was among them.
func (p *Pinger) receive() (answered bool, err error) {
	var b [echoHeader]byte
	for {
		w := tcpip.SliceWriter(b[:])
		res, err := p.s.ep.Read(&w, tcpip.ReadOptions{})
		switch err.(type) {
		case nil:
			if p.take(b[:res.Count]) {
				answered = true
			}
		case *tcpip.ErrWouldBlock:
			return answered, nil
		default:
			return answered, p.s.reason("read", err)
		}
	}
}

// take counts one answer, and returns whether it is the one that is waited for.
func (p *Pinger) take(answer []byte) bool {
	if len(answer) < echoHeader {
		p.counts.Foreign++
		return false
	}
	sequence := binary.BigEndian.Uint16(answer[6:])
	if _, ok := p.open[sequence]; !ok {
		// Numbers up to the last one were asked for; before them, nothing.
		if uint64(sequence) <= p.counts.Sent || p.counts.Sent > 0xffff {
			p.counts.Duplicates++
		} else {
			p.counts.Foreign++
		}
		return false
	}
	delete(p.open, sequence)
	p.counts.Received++
	if p.waiting && sequence == p.sequence {
		return true
	}
	p.counts.Late++
	return false
}

// drain takes what came since the last Ping.
func (p *Pinger) drain() {
	_, _ = p.receive() // an error comes again, to who waits
}

// Counts returns what the Pinger has seen until now.
func (p *Pinger) Counts() PingCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drain()
	return p.counts
}

// Close ends the Pinger. A Ping under way returns net.ErrClosed.
func (p *Pinger) Close() error { return p.s.close() }
