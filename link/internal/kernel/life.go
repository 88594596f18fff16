package kernel

import "sync"

// Life is what the lives of the kernel's links have in common: an endpoint starts once,
// when something is first attached to it, and ends once. Its lock guards what the
// endpoint opens and closes meanwhile, too. The zero value has not started.
type Life struct {
	sync.Mutex
	// The following are guarded by the lock.
	started, ended bool
	onClose        func()
	over           chan struct{} // closed when End has done its work; nil before End
}

// Start calls f, with the lock held, unless the life has started or ended.
func (l *Life) Start(f func()) {
	l.Lock()
	defer l.Unlock()
	if !l.started && !l.ended {
		l.started = true
		f()
	}
}

// Running reports whether the life has started and not ended. The lock is held.
func (l *Life) Running() bool { return l.started && !l.ended }

// End calls f and then the close action, without the lock; from its beginning on
// Running is false. A second call only waits for f.
func (l *Life) End(f func()) {
	l.Lock()
	if l.ended {
		l.Unlock()
		<-l.over
		return
	}
	l.ended, l.over = true, make(chan struct{})
	action := l.onClose
	l.onClose = nil
	l.Unlock()
	f()
	close(l.over)
	if action != nil {
		action()
	}
}

// SetOnCloseAction sets what End calls at last.
func (l *Life) SetOnCloseAction(action func()) {
	l.Lock()
	defer l.Unlock()
	l.onClose = action
}

// Wait waits for what End does, and returns true; before End it returns false at once.
func (l *Life) Wait() bool {
	l.Lock()
	ended := l.ended
	l.Unlock()
	if ended {
		<-l.over
	}
	return ended
}
