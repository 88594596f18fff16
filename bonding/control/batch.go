package control

import (
	"errors"
	"fmt"
	"slices"

	"bondstack/bonding"
)

// Batch is a series of transactions of the program's own, between which no
// client's change comes: clients wait until it ends. Its methods are for one
// goroutine.
type Batch struct {
	server *Server
	done   []*bonding.Applied
}

// Begin begins a batch. It waits for a change under way, and fails where one waits
// for its confirmation or the server is closed. End has to be called.
func (s *Server) Begin() (*Batch, error) {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, errClosed
	case s.pending != nil:
		defer s.mu.Unlock()
		return nil, fmt.Errorf("%w: %s", errPending, s.pending.ID)
	}
	return &Batch{server: s}, nil
}

// Try tells what Apply would change.
func (b *Batch) Try(t bonding.Transaction) (bonding.Outcome, error) {
	t.Revertible = true
	return b.server.bond.Try(t)
}

// Apply makes a transaction. After an error the endpoints of its new slaves are
// the caller's.
func (b *Batch) Apply(t bonding.Transaction) (bonding.Outcome, error) {
	t.Revertible = true
	a, err := b.server.bond.Apply(t)
	if err != nil {
		return bonding.Outcome{}, err
	}
	b.done = append(b.done, a)
	return a.Outcome, nil
}

// Revert takes back all that was applied, the latest first, and closes the links of
// the slaves that had joined. The error tells what could not be taken back.
func (b *Batch) Revert() error {
	var errs []error
	for _, a := range slices.Backward(b.done) {
		errs = append(errs, a.Revert())
		b.server.left(a.Added())
		for _, ep := range a.Removed() {
			if !ep.IsAttached() { // it could not come back
				b.server.options.Left(ep)
			}
		}
	}
	b.done = nil
	return errors.Join(errs...)
}

// End makes what was applied stay, closes the links of the slaves that have left,
// and lets clients go on.
func (b *Batch) End() {
	for _, a := range b.done {
		b.server.left(a.Removed())
	}
	b.done = nil
	b.server.mu.Unlock()
}
