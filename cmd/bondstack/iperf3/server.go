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
// cookie yet.
const maxGreetings = 4 * maxParallel

// server takes connections and has at most one session.
type server struct {
	net  Network
	o    ServerOptions
	out  *printer
	log  *slog.Logger
	stop context.CancelFunc

	greetings chan struct{}
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
	s := &server{net: network, o: o, out: newPrinter(&o.Options), log: o.Log, stop: stop, greetings: make(chan struct{}, maxGreetings)}
	s.ended = sync.NewCond(&s.mu)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if o.Ready != nil {
		o.Ready()
	}
	s.banner()
	var greeted sync.WaitGroup
	defer greeted.Wait()
	for n := 0; ; n++ {
		c, err := l.Accept()
		if err != nil {
			stop() // a session that runs ends too
			return nil
		}
		select {
		case s.greetings <- struct{}{}:
			order := n
			greeted.Go(func() { s.greet(ctx, joining{c, order}) })
		default:
			c.Close()
		}
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
	<-s.greetings
	if err != nil {
		c.Close()
		return
	}
	c.SetDeadline(time.Time{})
	if one := s.admit(c, cookie); one != nil {
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
