package stack

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// deviceLog logs changes at a limited rate. A line that is over the rate is not
// made at all: until the next one is due, changes are counted, which costs next
// to nothing, and that next line says how many there were.
type deviceLog struct {
	logger  *slog.Logger
	clock   tcpip.Clock
	limiter *rate.Limiter

	mu sync.Mutex
	// The following are guarded by mu.
	held    int // changes since the rate was reached; the timer runs while > 0
	timer   tcpip.Timer
	stopped bool
}

func (l *deviceLog) init(opts DevicesOptions) {
	l.logger, l.clock = opts.Logger, opts.Clock
	l.limiter = rate.NewLimiter(rate.Limit(opts.LogRate), max(1, int(math.Ceil(opts.LogRate))))
}

// admits reports whether a line for one change is to be logged now, and counts
// the change if not. The line is logged with no lock held.
func (l *deviceLog) admits() bool {
	if l.logger == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held > 0 {
		l.held++
		return false
	}
	if l.stopped || !l.logger.Enabled(context.Background(), slog.LevelInfo) {
		return false
	}
	now := l.clock.Now()
	delay := l.limiter.ReserveN(now, 1).DelayFrom(now)
	if delay > 0 {
		l.held = 1
		l.timer = l.clock.AfterFunc(max(delay, time.Millisecond), l.flush)
	}
	return delay == 0
}

// flush logs how many changes there were that got no line.
func (l *deviceLog) flush() {
	l.mu.Lock()
	held := l.held
	l.held = 0
	l.mu.Unlock()
	if held > 0 {
		l.logger.Info("device changes were not logged one by one", "held_back", held)
	}
}

// stop logs what was held back, and ends the timer.
func (l *deviceLog) stop() {
	l.mu.Lock()
	l.stopped = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.flush()
}
