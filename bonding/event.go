package bonding

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// EventKind is what an Event tells of.
type EventKind string

// The kinds of events.
const (
	EventEnslave EventKind = "enslave" // Slave joined
	EventRelease EventKind = "release" // Slave left
	EventRename  EventKind = "rename"  // Slave was renamed From To
	EventLink    EventKind = "link"    // Slave's link went From To
	EventActive  EventKind = "active"  // the active slave changed From To
	EventCarrier EventKind = "carrier" // the bond's carrier went From To
	EventPort    EventKind = "port"    // Slave's port in 802.3ad went From To: distributing or waiting
	EventWarning EventKind = "warning" // Text
)

// Event is one change of a bond.
type Event struct {
	Time  time.Time `json:"time"`
	Bond  string    `json:"bond"`
	Kind  EventKind `json:"kind"`
	Slave string    `json:"slave,omitempty"`
	From  string    `json:"from,omitempty"`
	To    string    `json:"to,omitempty"`
	Text  string    `json:"text,omitempty"`
}

// String returns the event as a line for people.
func (e Event) String() string {
	switch e.Kind {
	case EventLink:
		return fmt.Sprintf("%s: slave %s: link %s, was %s", e.Bond, e.Slave, e.To, e.From)
	case EventActive:
		return fmt.Sprintf("%s: active slave %s, was %s", e.Bond, e.To, e.From)
	case EventRename:
		return fmt.Sprintf("%s: slave %s renamed, was %s", e.Bond, e.To, e.From)
	case EventPort:
		return fmt.Sprintf("%s: slave %s: port %s, was %s", e.Bond, e.Slave, e.To, e.From)
	case EventCarrier:
		return fmt.Sprintf("%s: carrier %s", e.Bond, e.To)
	case EventWarning:
		return fmt.Sprintf("%s: %s", e.Bond, e.Text)
	default:
		return fmt.Sprintf("%s: %s %s", e.Bond, e.Kind, e.Slave)
	}
}

// Subscription is a queue of events.
type Subscription struct {
	// C delivers events in order. It is closed by Close and when the bond is
	// closed.
	C      <-chan Event
	c      chan Event
	log    *eventLog
	missed uint64
}

// Missed returns how many events did not fit the queue so far. Who missed some
// asks Status for the present state.
func (s *Subscription) Missed() uint64 {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.missed
}

// Close ends the subscription. A second call does nothing.
func (s *Subscription) Close() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.drop(s)
}

// eventLog hands events to subscriptions. It is called with the bond's lock
// held, so it waits for nobody.
type eventLog struct {
	mu     sync.Mutex
	subs   []*Subscription
	closed bool
}

// maxEventQueue bounds the memory of a subscription.
const maxEventQueue = 1 << 16

// Subscribe returns the events from now on, in a queue of the given length. A
// full queue loses events, counts them, and slows nothing down.
func (b *Bond) Subscribe(queue int) *Subscription {
	c := make(chan Event, min(max(queue, 1), maxEventQueue))
	s := &Subscription{C: c, c: c, log: &b.events}
	b.events.mu.Lock()
	defer b.events.mu.Unlock()
	if b.events.closed {
		close(c)
		return s
	}
	b.events.subs = append(b.events.subs, s)
	return s
}

func (l *eventLog) send(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.subs {
		select {
		case s.c <- e:
		default:
			s.missed++
		}
	}
}

func (l *eventLog) drop(s *Subscription) {
	for i, other := range l.subs {
		if other == s {
			l.subs = append(l.subs[:i:i], l.subs[i+1:]...)
			close(s.c)
			return
		}
	}
}

func (l *eventLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, s := range l.subs {
		close(s.c)
	}
	l.subs = nil
}

const (
	levelInfo = slog.LevelInfo
	levelWarn = slog.LevelWarn
)

// emit sends an event and logs it. The bond's lock is held here and in all that
// follows, but for report.
func (b *Bond) emit(e Event) {
	e.Time, e.Bond = b.clock.Now(), b.Name()
	b.events.send(e)
	level := levelInfo
	if e.Kind == EventWarning {
		level = levelWarn
	} else {
		b.later(b.changeSubs.call)
	}
	b.log(level, "%s", e)
}

func (b *Bond) log(level slog.Level, format string, args ...any) {
	logger := b.options.Logger
	if logger == nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	// A handler may be slow, or write to a connection on this very bond.
	b.later(func() { logger.Log(context.Background(), level, text, "bond", b.Name()) })
}

func (b *Bond) warn(format string, args ...any) {
	b.emit(Event{Kind: EventWarning, Text: fmt.Sprintf(format, args...)})
}

// report warns of an error of a call from above, where the lock is not held.
func (b *Bond) report(err error) {
	if err != nil {
		b.fromAbove(func(instant) { b.warnError(err) })
	}
}

func (b *Bond) warnError(err error) {
	if err != nil {
		b.warn("%v", err)
	}
}

func (b *Bond) slaveEvent(kind EventKind, s *slave) { b.emit(Event{Kind: kind, Slave: s.name}) }

func (b *Bond) linkEvent(s *slave, was linkState) {
	b.emit(Event{Kind: EventLink, Slave: s.name, From: was.String(), To: s.link.String()})
}

func (b *Bond) activeEvent(prev, next *slave) {
	b.emit(Event{Kind: EventActive, From: prev.displayName("none"), To: next.displayName("none")})
}

func (b *Bond) portEvent(s *slave, distributes bool) {
	words := map[bool]string{true: "distributing", false: "waiting"}
	b.emit(Event{Kind: EventPort, Slave: s.name, From: words[!distributes], To: words[distributes]})
}

func (b *Bond) carrierEvent(up bool) {
	words := map[bool]string{true: "on", false: "off"}
	b.emit(Event{Kind: EventCarrier, From: words[!up], To: words[up]})
}
