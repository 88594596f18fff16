// Package relay carries TCP connections and UDP datagrams from one network to
// another, such as from a stack on a bond to the host's sockets and back.
//
//	r := relay.New(relay.Options{})
//	defer r.Close()
//	r.ServeTCP(listener, func(ctx context.Context) (net.Conn, error) {
//		return dialer.DialContext(ctx, "tcp", "192.0.2.1:80")
//	})
//
// The side where something begins is the near one, the other the far one.
//
// # TCP
//
// What one side sends the other receives, and its end as the end of that
// direction alone (CloseWrite). A side that breaks, for whatever reason, has the
// other reset, so that nobody takes a stream that was cut for a whole one. Where
// the far side cannot be reached the near one is reset.
//
// # UDP
//
// Each near address has a far socket of its own, an association, which lives
// until nothing has passed for the idle time.
//
// # Limits
//
// There are at most so many connections and associations at a time. Further ones
// are refused, counted and logged: connections are reset, datagrams lost. A
// connection holds two buffers of 32 KiB beside those of its sockets, an
// association one of 64 KiB. A reset of a side is noticed when something is read
// from it or written to it; not while the other side takes nothing.
package relay

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// The defaults of Options.
const (
	// DefaultUDPIdle is how long an association lives without a datagram.
	DefaultUDPIdle = 60 * time.Second
	// DefaultOpenTimeout bounds how long the far side may take to answer.
	DefaultOpenTimeout = 10 * time.Second
	// DefaultLimit is how many connections, and how many associations, there
	// may be at a time. It leaves room in a process that may open 4,096 files.
	DefaultLimit = 1024
)

// sayEvery is the least time between two lines of the log about a limit.
const sayEvery = 10 * time.Second

// The errors that end a flow, or prevent it.
var (
	// ErrClosed says that the relay is closed.
	ErrClosed = errors.New("relay is closed")
	// ErrLimit says that there are as many flows as may be.
	ErrLimit = errors.New("too many flows")
	// ErrIdle says that nothing passed for the idle time.
	ErrIdle = errors.New("idle for too long")
)

// Options say what a relay is like. The zero value of each field is its default.
type Options struct {
	// TCPIdle is after how long without a byte in either direction both sides
	// of a connection are reset. Zero is never.
	TCPIdle time.Duration
	// UDPIdle is after how long without a datagram in either direction an
	// association ends. Zero is DefaultUDPIdle.
	UDPIdle time.Duration
	// OpenTimeout bounds the opening of the far side. Zero is
	// DefaultOpenTimeout.
	OpenTimeout time.Duration
	// MaxTCP and MaxUDP are how many connections and associations there may be
	// at a time. Zero is DefaultLimit.
	MaxTCP, MaxUDP int
	// Clock is for the idle times. Nil is the real clock.
	Clock tcpip.Clock
	// Logger is told of what is refused. Nil is none.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.UDPIdle = or(o.UDPIdle, DefaultUDPIdle)
	o.OpenTimeout = or(o.OpenTimeout, DefaultOpenTimeout)
	o.MaxTCP = or(o.MaxTCP, DefaultLimit)
	o.MaxUDP = or(o.MaxUDP, DefaultLimit)
	if o.Clock == nil {
		o.Clock = tcpip.NewStdClock()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Relay carries flows: connections and associations. Its methods may be called
// by any goroutine.
type Relay struct {
	opts     Options
	ctx      context.Context // ends at Close
	cancel   context.CancelFunc
	tcp, udp kind

	mu sync.Mutex
	// The following are guarded by mu.
	closed  bool
	flows   map[*flow]struct{}
	closers map[interface{ Close() error }]struct{}

	work sync.WaitGroup
}

// kind is what flows of one kind have in common.
type kind struct {
	name  string
	limit int
	idle  time.Duration // 0 for never
	said  atomic.Int64  // when the limit was last logged, in ns
	counters
}

// New makes a relay. Close it when done.
func New(opts Options) *Relay {
	opts.setDefaults()
	r := &Relay{
		opts:    opts,
		tcp:     kind{name: "tcp", limit: opts.MaxTCP, idle: opts.TCPIdle},
		udp:     kind{name: "udp", limit: opts.MaxUDP, idle: opts.UDPIdle},
		flows:   map[*flow]struct{}{},
		closers: map[interface{ Close() error }]struct{}{},
	}
	r.tcp.said.Store(-int64(sayEvery))
	r.udp.said.Store(-int64(sayEvery))
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close resets what flows, closes the listeners and packet connections that the
// relay serves, and waits until nothing of it is left. It is idempotent.
func (r *Relay) Close() {
	r.cancel()
	r.mu.Lock()
	r.closed = true
	flows, closers := r.flows, r.closers
	r.flows, r.closers = map[*flow]struct{}{}, nil
	r.mu.Unlock()
	for c := range closers {
		c.Close()
	}
	for f := range flows {
		f.stop(ErrClosed)
	}
	r.work.Wait()
}

// serve runs f on a goroutine that Close waits for, having closed c. It returns
// false, with c closed, when the relay is closed.
func (r *Relay) serve(c interface{ Close() error }, f func()) bool {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		c.Close()
		return false
	}
	defer r.mu.Unlock()
	r.closers[c] = struct{}{}
	r.work.Go(func() {
		f()
		r.mu.Lock()
		delete(r.closers, c)
		r.mu.Unlock()
		c.Close()
	})
	return true
}

// admit begins a flow, unless there are too many. The caller ends it, and Close
// waits until then.
func (r *Relay) admit(k *kind) (*flow, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if k.open.Load() >= int64(k.limit) {
		k.limited.Add(1)
		r.sayLimit(k)
		return nil, ErrLimit
	}
	k.open.Add(1)
	k.opened.Add(1)
	r.work.Add(1)
	f := &flow{relay: r, kind: k}
	r.flows[f] = struct{}{}
	f.touch()
	f.arm()
	return f, nil
}

// sayLimit logs that a limit is reached, now and then. Called with mu held, so
// the logger must not call the relay.
func (r *Relay) sayLimit(k *kind) {
	now := int64(r.opts.Clock.NowMonotonic().Sub(tcpip.MonotonicTime{}))
	if now-k.said.Load() < int64(sayEvery) {
		return
	}
	k.said.Store(now)
	r.opts.Logger.Warn("too many flows: further ones are refused", "kind", k.name, "limit", k.limit, "refused", k.limited.Load())
}

// Abort closes a connection so that its peer sees it was cut off: with a reset,
// where it is one of TCP.
func Abort(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0) // it is broken already where that fails
	}
	c.Close()
}
