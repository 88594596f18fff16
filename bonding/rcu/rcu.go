// Package rcu gives a writer a way to wait until every reader that may still
// use an old value has left: read-copy-update's grace period, for values that
// the garbage collector frees but whose use must end before a resource behind
// them goes away.
//
// A reader calls Enter, loads the published value, uses it, and calls Exit. A
// writer publishes a new value and calls Synchronize: when that returns, no
// reader that could have loaded the old value is still inside.
//
// Readers never wait. They count themselves in one of several cache lines
// (stripes), so that readers on different processors do not share one; the
// stripe is taken from the address of the goroutine's stack, which differs
// between goroutines and costs nothing to read.
//
// Limits: a reader must not call Synchronize inside its section, since it
// would wait for itself. Sections may nest, and Exit may run on another
// goroutine than Enter.
package rcu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Stripes is the number of stripes: enough that the goroutines that run at one
// time on a machine of some tens of processors seldom share one.
const Stripes = 32

// stripe holds the readers of each phase. It fills two cache lines, since
// processors fetch lines in pairs.
type stripe struct {
	readers [2]atomic.Int64
	_       [112]byte
}

// Domain is a set of readers and writers. The zero value is ready to use.
type Domain struct {
	phase   atomic.Uint32
	writers sync.Mutex // one grace period at a time
	_       [112]byte  // what lies before is read by all, and written by few
	stripes [Stripes]stripe
}

// Section is a read section under way.
type Section struct {
	stripe uint32
	phase  uint32
}

// Stripe returns the section's stripe, from 0 to Stripes-1, for counters that
// are striped in the same way.
func (s Section) Stripe() uint32 { return s.stripe }

// OwnStripe returns the stripe of a section that the caller would enter now.
func OwnStripe() uint32 { return stripeOfStack() }

// Enter begins a read section. Values loaded after it stay in use until Exit.
func (d *Domain) Enter() Section {
	s := Section{stripe: stripeOfStack(), phase: d.phase.Load() & 1}
	d.stripes[s.stripe].readers[s.phase].Add(1)
	return s
}

// Exit ends a section that Enter began.
func (d *Domain) Exit(s Section) {
	d.stripes[s.stripe].readers[s.phase].Add(-1)
}

// Synchronize returns when every reader that entered before the call has left.
// Readers that enter later are not waited for, so a stream of them does not
// hold it up.
//
// A reader may read the phase, lose the processor, and count itself much later
// in a phase that has passed. It then loads the value that was published last,
// so it is harmless to the period that flipped the phase; but the next period
// has to wait for it, and does, by draining the idle phase before it flips.
func (d *Domain) Synchronize() {
	d.writers.Lock()
	defer d.writers.Unlock()
	idle := d.phase.Load()&1 ^ 1
	d.drain(idle)
	d.phase.Store(idle)
	d.drain(idle ^ 1)
}

// drain waits until no reader is counted in a phase. Each stripe is seen empty
// once; who comes after that has loaded what was published before the call.
func (d *Domain) drain(phase uint32) {
	for i := range d.stripes {
		wait := spin{}
		for d.stripes[i].readers[phase].Load() != 0 {
			wait.once()
		}
	}
}

// spin waits a little longer each time: yields first, since most sections last
// less than a microsecond, then sleeps up to a millisecond.
type spin struct{ n uint }

const (
	yields   = 64
	maxSleep = 10 // 2^10 microseconds
)

func (s *spin) once() {
	if s.n < yields {
		runtime.Gosched()
	} else {
		time.Sleep(time.Microsecond << min(s.n-yields, maxSleep))
	}
	s.n++
}
