package iperf3

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// maxGreetings is how many connections may be at once that have not said their
// cookie yet, or wait with it for the end of a session. Further ones are closed.
const maxGreetings = 4 * maxParallel

// server takes connections and has at most one session.
type server struct {
	net  Network
	o    ServerOptions
	out  *printer
	log  *slog.Logger
	stop context.CancelFunc

	greetings chan struct{}
	refused   uint64 // connections beyond them; only accept uses it
	mu        sync.Mutex
	// The following are guarded by mu. ended is when a session has.
	session *session
	ended   *sync.Cond
	tests   int
}

// Serve serves clients, one after the other, until ctx ends, or with Once until one
// test is over. It returns an error where it cannot listen.
func Serve(ctx context.Context, network Network, o ServerOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	l, err := network.Listen("tcp", fmt.Sprintf(":%d", o.port()))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newServer(network, o, stop)
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if o.Ready != nil {
		o.Ready()
	}
	s.banner()
	s.accept(ctx, l)
	return nil
}

func newServer(network Network, o ServerOptions, stop context.CancelFunc) *server {
	s := &server{net: network, o: o, out: newPrinter(&o.Options), log: o.Log, stop: stop, greetings: make(chan struct{}, maxGreetings)}
	s.ended = sync.NewCond(&s.mu)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// accept takes connections until the listener is closed, and waits for what became
// of them.
func (s *server) accept(ctx context.Context, l net.Listener) {
	var greeted sync.WaitGroup
	defer greeted.Wait()
	for n := 0; ; n++ {
		c, err := l.Accept()
		if err != nil {
			s.stop() // a session that runs ends too
			return
		}
		select {
		case s.greetings <- struct{}{}:
			order := n
			greeted.Go(func() { s.greet(ctx, joining{c, order}) })
		default:
			c.Close()
			s.refuse()
		}
	}
}

// refuse counts a connection that was one too many, and tells of the first, the
// second, the fourth and so on.
func (s *server) refuse() {
	if s.refused++; s.refused&(s.refused-1) == 0 {
		s.log.Warn("closed a connection at once: too many others have not begun", "limit", maxGreetings, "closed", s.refused)
	}
}

func (s *server) banner() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tests++
	s.out.line("%s\nServer listening on %d (test #%d)\n%[1]s", strings.Repeat("-", 59), s.o.port(), s.tests)
}

// joining is a connection in the order of accepting, in which a client makes its
// streams.
type joining struct {
	net.Conn
	order int
}

// greet reads a connection's cookie: it is a stream of the session that has it,
// begins a session where there is none, or else is told to come later.
func (s *server) greet(ctx context.Context, c joining) {
	var cookie [cookieSize]byte
	c.SetDeadline(time.Now().Add(s.o.timeout()))
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	_, err := io.ReadFull(c, cookie[:])
	stop()
	var one *session
	if err != nil {
		c.Close()
	} else {
		c.SetDeadline(time.Time{})
		one = s.admit(c, cookie)
	}
	<-s.greetings
	if one != nil {
		one.serve(ctx)
	}
}

// admit returns a session for a connection that begins one.
func (s *server) admit(c joining, cookie [cookieSize]byte) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.session != nil && s.session.ending { // its client may be the one that comes again
		s.ended.Wait()
	}
	switch running := s.session; {
	case running == nil:
		s.session = &session{server: s, cookie: cookie, ctl: c.Conn, joined: make(chan joining, 2*maxParallel)}
		return s.session
	case subtle.ConstantTimeCompare(running.cookie[:], cookie[:]) == 1:
		select {
		case running.joined <- c:
		default:
			c.Close()
		}
	default:
		c.SetDeadline(time.Now().Add(time.Second))
		_ = writeState(c, accessDenied) // one byte does not wait; who does not hear it sees the end
		c.Close()
	}
	return nil
}
