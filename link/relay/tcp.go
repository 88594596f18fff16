package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// bufferSize is that of the buffer between two sockets.
const bufferSize = 32 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Connection carries one connection, and returns when it has ended. open makes
// both sides, within Options.OpenTimeout; it is not called when there are too
// many connections (ErrLimit) or the relay is closed (ErrClosed). Where it
// returns an error it leaves nothing open. Both sides should be able to close one
// direction (CloseWrite) and to be reset (SetLinger, as *net.TCPConn has it).
//
// The error is nil when both directions came to their end in order.
func (r *Relay) Connection(open func(context.Context) (near, far net.Conn, err error)) error {
	f, err := r.admit(&r.tcp)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.OpenTimeout)
	near, far, err := open(ctx)
	cancel()
	if err != nil {
		f.kind.failed.Add(1)
		f.end()
		return err
	}
	f.touch()
	if f.carry(near, far) {
		err = f.splice(near, far)
	}
	if cause := f.end(); cause != nil {
		return cause
	}
	return err
}

// splice passes bytes both ways until both are done.
func (f *flow) splice(near, far net.Conn) error {
	result := make(chan error, 1)
	go func() { result <- f.pass(far, near, &f.kind.toFar) }()
	err := f.pass(near, far, &f.kind.toNear)
	if err = errors.Join(err, <-result); err != nil {
		return err
	}
	near.Close()
	far.Close()
	return nil
}

// pass passes bytes from one side on, and their end; or stops the flow.
func (f *flow) pass(to, from net.Conn, count *atomic.Uint64) error {
	err := f.copy(to, from, count)
	if err == nil {
		if c, ok := to.(interface{ CloseWrite() error }); ok {
			err = c.CloseWrite()
		}
	}
	if err != nil {
		f.stop(err)
	}
	return err
}

func (f *flow) copy(to, from net.Conn, count *atomic.Uint64) error {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n, err := from.Read(buffer[:])
		if err == nil {
			f.touch() // also for a side that says, with no bytes, that it is busy
		}
		if n > 0 {
			written, failed := to.Write(buffer[:n])
			count.Add(uint64(written))
			if failed != nil {
				return failed
			}
			f.touch()
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// ServeTCP carries each connection of a listener to a far one of its own, until
// the relay or the listener is closed. The relay closes the listener. dial is
// called by many goroutines.
func (r *Relay) ServeTCP(l net.Listener, dial func(context.Context) (net.Conn, error)) {
	r.Accept(l, func(near net.Conn) {
		err := r.Connection(func(ctx context.Context) (net.Conn, net.Conn, error) {
			far, err := dial(ctx)
			return near, far, err
		})
		if err != nil {
			Abort(near) // it may never have been carried
		}
	})
}

// Accept calls handle for each connection of a listener, on a goroutine of its
// own, until the relay or the listener is closed. The relay closes the listener,
// and its Close waits for the calls.
func (r *Relay) Accept(l net.Listener, handle func(net.Conn)) {
	r.serve(l, func() {
		var calls sync.WaitGroup
		defer calls.Wait()
		for {
			c, err := l.Accept()
			switch {
			case err == nil:
				calls.Go(func() { handle(c) })
			case passes(err) && r.ctx.Err() == nil:
				r.opts.Logger.Warn("cannot accept", "address", l.Addr(), "error", err)
				r.pause()
			default:
				r.sayEnd(l.Addr(), err)
				return
			}
		}
	})
}

// sayEnd logs that nothing more comes in, unless that was wanted.
func (r *Relay) sayEnd(at net.Addr, err error) {
	if !errors.Is(err, net.ErrClosed) && r.ctx.Err() == nil {
		r.opts.Logger.Error("forwards nothing more", "address", at, "error", err)
	}
}

// passes reports whether an error of Accept is one that passes: the process has
// no descriptor left, or the connection that waited is gone.
func passes(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

// pause waits for a moment in which descriptors may become free.
func (r *Relay) pause() {
	select {
	case <-r.ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}
