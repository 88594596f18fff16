package relay

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// flow is one connection or association: what the relay counts, times and ends.
type flow struct {
	relay *Relay
	kind  *kind
	last  atomic.Int64 // when something last passed, in ns

	mu sync.Mutex
	// The following are guarded by mu.
	cause error // why the flow was stopped, nil while it was not
	conns []net.Conn
	timer tcpip.Timer
}

func (f *flow) now() int64 {
	return int64(f.relay.opts.Clock.NowMonotonic().Sub(tcpip.MonotonicTime{}))
}

// touch notes that something passed.
func (f *flow) touch() {
	if f.kind.idle > 0 {
		f.last.Store(f.now())
	}
}

// arm sets the timer to when the flow has been idle for too long, if nothing
// passes until then.
func (f *flow) arm() {
	if f.kind.idle <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause != nil {
		return
	}
	rest := time.Duration(f.last.Load() + int64(f.kind.idle) - f.now())
	f.timer = f.relay.opts.Clock.AfterFunc(max(rest, 0), f.due)
}

// due is called when the flow may have been idle for too long.
func (f *flow) due() {
	if f.now()-f.last.Load() < int64(f.kind.idle) {
		f.arm()
		return
	}
	f.stop(ErrIdle)
}

// carry has stop abort connections. It returns false, with them aborted, when the
// flow was stopped already.
func (f *flow) carry(conns ...net.Conn) bool {
	f.mu.Lock()
	stopped := f.cause != nil
	if !stopped {
		f.conns = conns
	}
	f.mu.Unlock()
	if stopped {
		abortAll(conns)
	}
	return !stopped
}

// stop aborts the flow's connections, and counts why. Only the first call does.
func (f *flow) stop(cause error) {
	f.mu.Lock()
	if f.cause != nil {
		f.mu.Unlock()
		return
	}
	f.cause = cause
	conns := f.conns
	f.mu.Unlock()
	switch cause {
	case ErrClosed:
	case ErrIdle:
		f.kind.timedOut.Add(1)
	default:
		f.kind.resets.Add(1)
	}
	abortAll(conns)
}

func abortAll(conns []net.Conn) {
	for _, c := range conns {
		Abort(c)
	}
}

// end is called once nothing of the flow is left. It returns why it was stopped,
// nil where it was not.
func (f *flow) end() error {
	f.mu.Lock()
	cause := f.cause
	if cause == nil {
		f.cause = ErrClosed // so that the timer is not set anew
	}
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	r := f.relay
	r.mu.Lock()
	delete(r.flows, f)
	f.kind.open.Add(-1)
	r.mu.Unlock()
	r.work.Done()
	return cause
}
