package kernel

import (
	"sync"
	"sync/atomic"
	"time"

	"bondstack/link"
)

// retryInterval is how soon a monitor tries again to open an interface that is
// there but could not be opened.
const retryInterval = 100 * time.Millisecond

// idlePolls is how many times less often a monitor polls while no frame flows:
// waking an idle processor is most of what polling costs, and while nothing is
// sent nothing is lost.
const idlePolls = 5

// Monitor knows the state of the interface of a name, for an endpoint whose
// sockets are bound to it. It learns of changes by the kernel's news and by
// polling; what it reports it always reads from the kernel.
type Monitor struct {
	ns   *Namespace
	name string
	// Poll is the interval of polling while frames flow; 0 or negative for no
	// polling.
	poll time.Duration
	// Activity returns a number that differs from before when frames flowed.
	Activity func() uint64
	// follow, if not nil, is called in the monitor's goroutine when the
	// interface of the name is not the one that the sockets are bound to: to
	// bind them to the index, or to none (0). It is false where that failed
	// and is to be tried again.
	Follow func(index int32) bool
	// changedMTU, if not nil, is called with the interface's MTU each time the
	// monitor looks.
	ChangedMTU func(mtu uint32)

	// bound is the index that the sockets are bound to, 0 for none. The link
	// is up only while the interface of the name has this index.
	bound atomic.Int32
	// usable is whether the link was usable when the monitor last looked.
	usable atomic.Bool
	// speed is in the upper half, the duplex mode in the lower: what was read
	// when the link last changed, since reading may take a driver long.
	speed atomic.Uint64
	// closed makes the link down for good.
	closed atomic.Bool

	// news has one element while the monitor is to look at once.
	news chan struct{}
	// due has one element while subscribers are to be told.
	due chan struct{}
	// quit is closed to end both goroutines; looked and told when they ended.
	quit, looked, told chan struct{}

	// mu guards the following.
	mu          sync.Mutex
	started     bool
	nextID      uint64
	subscribers map[uint64]func()
}

// NewMonitor makes a monitor that has not started.
func NewMonitor(ns *Namespace, name string, poll time.Duration) *Monitor {
	return &Monitor{
		ns: ns, name: name, poll: poll, Activity: func() uint64 { return 0 },
		news: make(chan struct{}, 1), due: make(chan struct{}, 1),
		quit: make(chan struct{}), looked: make(chan struct{}), told: make(chan struct{}),
		subscribers: map[uint64]func(){},
	}
}

// State reads the state of the link from the kernel.
func (m *Monitor) State() link.State {
	return m.stateOf(m.ns.Observe(m.name))
}

// stateOf returns the state of the link where the kernel says o.
func (m *Monitor) stateOf(o Observation) link.State {
	packed := m.speed.Load()
	s := link.State{Speed: uint32(packed >> 32), Duplex: link.Duplex(packed)}
	if m.closed.Load() || o.Index == 0 || o.Index != m.bound.Load() {
		return s
	}
	s.Up, s.Carrier = o.Up, o.Carrier
	return s
}

// ReadSpeed reads the speed and the duplex mode anew.
func (m *Monitor) ReadSpeed() {
	speed, duplex := m.ns.speed(m.name)
	m.speed.Store(uint64(speed)<<32 | uint64(duplex))
}

// Start starts the monitor's goroutines. More than once, or after stop, it does
// nothing.
func (m *Monitor) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started || m.closed.Load() {
		return
	}
	m.started = true
	m.ns.watch(m)
	// Read here: a change from now on is one that subscribers are told of.
	s := m.State()
	m.usable.Store(s.Usable())
	go m.look(s)
	go m.tell()
}

// Stop ends the goroutine that looks and waits for it. The one that tells
// subscribers ends after the call it may be in; told is closed then.
func (m *Monitor) Stop() {
	m.mu.Lock()
	already := m.closed.Swap(true)
	started := m.started
	m.mu.Unlock()
	if already {
		return
	}
	close(m.quit)
	if !started {
		close(m.looked)
		close(m.told)
		return
	}
	m.ns.Unwatch(m)
	<-m.looked
}

// Wake has the monitor look at once. It never waits.
func (m *Monitor) Wake() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// Suspect has the monitor look since a frame could not be sent. Where it
// already knows that the link is down, there is nothing to look for.
func (m *Monitor) Suspect() {
	if m.usable.Load() {
		m.Wake()
	}
}

// Subscribe has f called after every change of state.
func (m *Monitor) Subscribe(f func()) (cancel func()) {
	m.mu.Lock()
	id := m.nextID
	m.nextID++
	m.subscribers[id] = f
	m.mu.Unlock()
	m.Start()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.subscribers, id)
	}
}

// look looks at the interface whenever there is reason to, and reports what
// differs from last.
func (m *Monitor) look(last link.State) {
	defer close(m.looked)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	activity := m.Activity()
	for news := true; ; {
		s, ok := m.lookOnce(news || !last.Usable())
		if s != last {
			m.announce()
			last = s
		}
		now := m.Activity()
		timer.Reset(m.pause(ok, now != activity))
		activity = now
		select {
		case <-m.quit:
			return
		case <-m.news:
			news = true
		case <-timer.C:
			news = false
		}
	}
}

// lookOnce looks at the interface, follows it where it is another than the
// bound one, and returns the link's state. It is false where following failed.
// It reads the speed of a usable link only where told to, since that can take a
// driver long.
func (m *Monitor) lookOnce(speed bool) (s link.State, ok bool) {
	ok = true
	o := m.ns.Observe(m.name)
	if o.Index != m.bound.Load() && m.Follow != nil {
		ok = m.Follow(o.Index)
		o = m.ns.Observe(m.name) // following takes its time
	}
	if m.ChangedMTU != nil && o.Index != 0 {
		m.ChangedMTU(o.MTU)
	}
	s = m.stateOf(o)
	m.usable.Store(s.Usable())
	if s.Usable() && speed {
		m.ReadSpeed()
		s = m.stateOf(o)
	}
	return s, ok
}

// pause returns how soon to look again, if there are no news: ok is whether the
// interface of the name could be followed, busy whether frames flowed.
func (m *Monitor) pause(ok, busy bool) time.Duration {
	pause := m.poll
	switch {
	case pause <= 0:
		pause = time.Hour
	case !busy:
		pause *= idlePolls
	}
	if !ok {
		pause = min(pause, retryInterval)
	}
	return pause
}

// Bind tells that the sockets are bound to the interface of an index, 0 for
// none.
func (m *Monitor) Bind(index int32) { m.bound.Store(index) }

// Bound returns what Bind told last.
func (m *Monitor) Bound() int32 { return m.bound.Load() }

// Usable reports whether the link was usable when the monitor last looked. It
// asks nobody.
func (m *Monitor) Usable() bool { return m.usable.Load() }

// Told returns a channel that is closed when, after Stop, no subscriber is
// being called any more.
func (m *Monitor) Told() <-chan struct{} { return m.told }

// announce has the subscribers told.
func (m *Monitor) announce() {
	select {
	case m.due <- struct{}{}:
	default:
	}
}

// tell calls the subscribers whenever they are to be told. It is a goroutine of
// its own, so that one who waits for a lock does not keep the monitor from
// looking, nor stop from returning.
func (m *Monitor) tell() {
	defer close(m.told)
	for {
		select {
		case <-m.quit:
			return
		case <-m.due:
		}
		m.mu.Lock()
		fs := make([]func(), 0, len(m.subscribers))
		for _, f := range m.subscribers {
			fs = append(fs, f)
		}
		m.mu.Unlock()
		for _, f := range fs {
			f()
		}
	}
}
