package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// maxDatagram is the size of the longest datagram.
const maxDatagram = 64 << 10

// maxPending is how many datagrams wait while an association is being opened.
const maxPending = 16

// maxFailed is how often in a row receiving may fail: an earlier reply was refused,
// which some systems tell the reader.
const maxFailed = 64

var datagrams = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// Associations gives each near party, of which a key tells who it is, a far
// socket of its own.
type Associations[K comparable] struct {
	relay *Relay
	open  func(context.Context, K) (net.Conn, error)
	reply func(K, []byte) error

	mu    sync.Mutex
	byKey map[K]*association // guarded by mu
}

// association is one party's.
type association struct {
	flow *flow

	mu sync.Mutex
	// The following are guarded by mu.
	far     net.Conn // nil until it is open
	pending [][]byte
	ended   bool // nothing waits any more
}

// NewAssociations makes associations that end with the relay. open makes the far
// socket of a party, whose Write sends a datagram and whose Read receives one. It
// is called on a goroutine of its own, within Options.OpenTimeout. reply sends
// what was received back to the party, on that goroutine; it may not keep the
// datagram.
func NewAssociations[K comparable](r *Relay, open func(context.Context, K) (net.Conn, error), reply func(K, []byte) error) *Associations[K] {
	return &Associations[K]{relay: r, open: open, reply: reply, byKey: map[K]*association{}}
}

// Send passes on a datagram from a party, of which it keeps nothing. It opens an
// association when there is none, and returns ErrLimit when there are too many of
// them, ErrClosed when the relay is closed. What is lost later is counted only, as
// is the way of datagrams.
func (t *Associations[K]) Send(from K, datagram []byte) error {
	a, err := t.get(from)
	if err != nil {
		if err == ErrClosed {
			t.relay.udp.ended.Add(1)
		}
		return err
	}
	a.flow.touch()
	a.send(datagram)
	return nil
}

// End ends the association of a party that will send no more, if there is one.
func (t *Associations[K]) End(from K) {
	t.mu.Lock()
	a := t.byKey[from]
	t.mu.Unlock()
	if a != nil {
		a.flow.stop(ErrClosed)
	}
}

// get returns the association of a party.
func (t *Associations[K]) get(from K) (*association, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.byKey[from]; a != nil {
		return a, nil
	}
	f, err := t.relay.admit(&t.relay.udp)
	if err != nil {
		return nil, err
	}
	a := &association{flow: f}
	t.byKey[from] = a
	go t.run(from, a)
	return a, nil
}

func (a *association) send(datagram []byte) {
	a.mu.Lock()
	far := a.far
	if far == nil {
		defer a.mu.Unlock()
		switch {
		case a.ended: // since the sender found it
			a.flow.kind.ended.Add(1)
		case len(a.pending) < maxPending:
			a.pending = append(a.pending, append([]byte(nil), datagram...))
		default:
			a.flow.kind.dropped.Add(1)
		}
		return
	}
	a.mu.Unlock()
	a.write(far, datagram)
}

func (a *association) write(far net.Conn, datagram []byte) {
	_, err := far.Write(datagram)
	switch {
	case err == nil:
		a.flow.kind.toFar.Add(uint64(len(datagram)))
	case errors.Is(err, net.ErrClosed):
		a.flow.kind.ended.Add(1)
	default:
		a.flow.kind.dropped.Add(1)
	}
}

// run opens an association and passes on what comes back, until it ends.
func (t *Associations[K]) run(from K, a *association) {
	defer a.flow.end()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.byKey, from)
	}()
	ctx, cancel := context.WithTimeout(t.relay.ctx, t.relay.opts.OpenTimeout)
	far, err := t.open(ctx, from)
	cancel()
	if err != nil {
		a.flow.kind.failed.Add(1)
		a.flow.kind.dropped.Add(a.drain())
		return
	}
	defer far.Close()
	if !a.flow.carry(far) {
		a.flow.kind.ended.Add(a.drain())
		return
	}
	a.start(far)
	t.receive(from, a, far)
}

// drain ends what never began, and returns how many datagrams waited for it.
func (a *association) drain() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	waited := len(a.pending)
	a.pending, a.ended = nil, true
	return uint64(waited)
}

// start sends what waited, in order, before anything else is sent.
func (a *association) start(far net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, datagram := range a.pending {
		a.write(far, datagram)
	}
	a.far, a.pending = far, nil
}

// receive passes on what comes back. That a peer refused a datagram is no reason
// to end: the next may find it there.
func (t *Associations[K]) receive(from K, a *association, far net.Conn) {
	buffer := datagrams.Get().(*[maxDatagram]byte)
	defer datagrams.Put(buffer)
	for {
		n, err := far.Read(buffer[:])
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
		case err != nil:
			return
		default:
			a.flow.touch()
			if err := t.reply(from, buffer[:n]); err != nil {
				a.flow.kind.dropped.Add(1)
			} else {
				a.flow.kind.toNear.Add(uint64(n))
			}
		}
	}
}

// PacketConn is what *net.UDPConn has, and *stack.UDPConn of this project: without
// an allocation for each address.
type PacketConn interface {
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	LocalAddr() net.Addr
	Close() error
}

// ServeUDP carries the datagrams of a packet connection, each sender's by a far
// connection of its own, until the relay or the packet connection is closed. The
// relay closes the packet connection.
func (r *Relay) ServeUDP(near PacketConn, dial func(context.Context) (net.Conn, error)) {
	t := NewAssociations(r,
		func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { return dial(ctx) },
		func(to netip.AddrPort, datagram []byte) error {
			_, err := near.WriteToUDPAddrPort(datagram, to)
			return err
		})
	r.serve(near, func() {
		buffer := datagrams.Get().(*[maxDatagram]byte)
		defer datagrams.Put(buffer)
		for failed := 0; ; {
			n, from, err := near.ReadFromUDPAddrPort(buffer[:])
			if err == nil {
				failed = 0
				_ = t.Send(from, buffer[:n]) // counted
				continue
			}
			if failed++; failed == maxFailed || errors.Is(err, net.ErrClosed) {
				r.sayEnd(near.LocalAddr(), err)
				return
			}
		}
	})
}
