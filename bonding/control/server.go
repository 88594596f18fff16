package control

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"bondstack/bonding"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Options are the settings of a Server.
type Options struct {
	// Open opens the link of a new slave; kind is what the client said, "" for
	// the default. Default: slaves cannot be added.
	Open func(kind, name string) (stack.LinkEndpoint, error)
	// Left gets the endpoint of a slave that has left for good. Default: it is
	// closed.
	Left func(ep stack.LinkEndpoint)
	// Clock is for confirmations. Default: the real clock.
	Clock tcpip.Clock
	// Logger receives each change and what became of it. Default: none.
	Logger *slog.Logger
}

// Server makes changes of one bond for clients.
type Server struct {
	bond    *bonding.Bond
	options Options

	// mu is held over each change, so that they are made one at a time.
	mu      sync.Mutex
	pending *pending // what waits to be confirmed
	last    uint64   // the number of the last that did
	closed  bool

	watchers chan struct{} // one for each
}

// pending is a change that is taken back at its deadline.
type pending struct {
	Pending
	applied *bonding.Applied
	timer   tcpip.Timer
}

// NewServer makes a server for a bond.
func NewServer(b *bonding.Bond, o Options) *Server {
	if o.Clock == nil {
		o.Clock = tcpip.NewStdClock()
	}
	if o.Left == nil {
		o.Left = func(ep stack.LinkEndpoint) { ep.Close() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{bond: b, options: o, watchers: make(chan struct{}, maxWatchers)}
}

// Close ends the server: nothing is changed any more, and a change that was not
// confirmed stays, with the bond, which is about to end. A second call does
// nothing.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.pending != nil {
		s.keep()
	}
}

// What a change can fail of besides what the bond refuses.
var (
	errClosed  = errors.New("the bond is about to end")
	errPending = errors.New("a change waits for its confirmation")
	errNone    = errors.New("no such change waits for a confirmation")
)

// Change makes or tries a request, which ParseRequest has checked.
func (s *Server) Change(r Request) (Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return Answer{}, errClosed
	case s.pending != nil && !r.DryRun:
		return Answer{}, fmt.Errorf("%w: confirm or revert %s first, or wait until %s", errPending, s.pending.ID,
			s.pending.Deadline.Format(time.RFC3339))
	}
	t, err := transaction(r.Operations)
	if err != nil {
		return Answer{}, err
	}
	t.Revertible = r.ConfirmWithinMs > 0
	if err := s.open(r.Operations, &t); err != nil {
		return Answer{}, err
	}
	if r.DryRun {
		out, err := s.bond.Try(t)
		closeNew(t.Add)
		return Answer{Outcome: out}, err
	}
	applied, err := s.bond.Apply(t)
	if err != nil {
		closeNew(t.Add)
		return Answer{}, err
	}
	a := Answer{Applied: true, Outcome: applied.Outcome}
	if len(a.Differences) > 0 {
		s.options.Logger.Info("changed by control", "bond", s.bond.Name(), "differences", fmt.Sprint(a.Differences))
	}
	if r.ConfirmWithinMs == 0 {
		s.left(applied.Removed())
		return a, nil
	}
	p := s.await(applied, time.Duration(r.ConfirmWithinMs)*time.Millisecond)
	a.Confirm = &p
	return a, nil
}

// open opens the links of new slaves: all or none.
func (s *Server) open(ops []Operation, t *bonding.Transaction) error {
	var errs []error
	for i, o := range ops {
		if o.Op != Add {
			continue
		}
		ep, err := stack.LinkEndpoint(nil), errors.New("this program cannot add slaves")
		if s.options.Open != nil {
			ep, err = s.options.Open(o.Kind, o.Slave)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("operation %d: %s: slave %s: %w", i+1, o.Op, o.Slave, err))
			continue
		}
		t.Add = append(t.Add, bonding.NewSlave{Name: o.Slave, Endpoint: ep,
			Options: bonding.SlaveOptions{Priority: o.Prio, Weight: o.Weight, QueueID: o.QueueID}})
	}
	if len(errs) > 0 {
		closeNew(t.Add)
	}
	return errors.Join(errs...)
}

// closeNew closes links that were opened in vain.
func closeNew(added []bonding.NewSlave) {
	for _, n := range added {
		n.Endpoint.Close()
	}
}

func (s *Server) left(endpoints []stack.LinkEndpoint) {
	for _, ep := range endpoints {
		s.options.Left(ep)
	}
}

// await begins to wait for a confirmation. The lock is held, here and below.
func (s *Server) await(applied *bonding.Applied, within time.Duration) Pending {
	s.last++
	p := &pending{applied: applied, Pending: Pending{ID: strconv.FormatUint(s.last, 10), Deadline: s.options.Clock.Now().Add(within)}}
	s.pending = p
	p.timer = s.options.Clock.AfterFunc(within, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pending == p {
			s.back("nobody confirmed it in time")
		}
	})
	return p.Pending
}

// keep makes what waits stay.
func (s *Server) keep() {
	p := s.pending
	s.pending = nil
	p.timer.Stop()
	s.left(p.applied.Removed())
}

// back takes back what waits.
func (s *Server) back(why string) error {
	p := s.pending
	s.pending = nil
	p.timer.Stop()
	err := p.applied.Revert()
	s.left(p.applied.Added())
	for _, ep := range p.applied.Removed() {
		if !ep.IsAttached() { // it could not come back
			s.options.Left(ep)
		}
	}
	s.options.Logger.Warn("a change is taken back", "bond", s.bond.Name(), "id", p.ID, "why", why)
	if err != nil {
		s.options.Logger.Error("not all could be taken back", "bond", s.bond.Name(), "id", p.ID, "error", err)
	}
	return err
}

// Confirm makes a change stay. An empty id is whichever waits.
func (s *Server) Confirm(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.waits(id); err != nil {
		return err
	}
	s.keep()
	return nil
}

// Revert takes a change back before its time. An empty id is whichever waits.
func (s *Server) Revert(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.waits(id); err != nil {
		return err
	}
	return s.back("as was asked for")
}

func (s *Server) waits(id string) error {
	switch {
	case s.closed:
		return errClosed
	case s.pending == nil:
		return fmt.Errorf("%w: it was confirmed or taken back, or none was made", errNone)
	case id != "" && id != s.pending.ID:
		return fmt.Errorf("%w: %s waits, not %q", errNone, s.pending.ID, id)
	}
	return nil
}

// Pending returns what waits to be confirmed; nil where nothing does.
func (s *Server) Pending() *Pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		return nil
	}
	p := s.pending.Pending
	return &p
}
