package wire

import (
	"errors"
	"fmt"
	"time"
)

// DefaultReorderDelay is how long a reordered frame is held back unless it is
// set.
const DefaultReorderDelay = time.Millisecond

// Impairments are the faults of one direction of a wire. The zero value is
// none. Chances are from 0 (never) to 1 (always), for each frame by itself.
// They apply in the order of the fields, Cut first.
type Impairments struct {
	// Cut drops every frame, while both ends keep their carrier.
	Cut bool
	// Loss is the chance that a frame is dropped.
	Loss float64
	// Corrupt is the chance that one bit of a frame, anywhere in it, is
	// turned. From the first time that it is set, the receiving end no longer
	// claims that checksums are right, and checksums that senders left to the
	// link are completed.
	Corrupt float64
	// Duplicate is the chance that a frame is sent twice.
	Duplicate float64
	// Rate is how many bits pass a second, Ethernet headers included. Frames
	// that wait for their turn count against the limits of the queue. Zero is
	// no limit.
	Rate uint64
	// Delay is how long a frame travels.
	Delay time.Duration
	// Jitter varies Delay, evenly between Delay-Jitter and Delay+Jitter but not
	// below zero. It does not reorder: a frame that would overtake another
	// arrives with it.
	Jitter time.Duration
	// Reorder is the chance that a frame is held back for ReorderDelay more, so
	// that those sent in the meantime overtake it.
	Reorder float64
	// ReorderDelay is how long a reordered frame is held back. Zero is
	// DefaultReorderDelay.
	ReorderDelay time.Duration
}

// validate returns an error that names every field that is out of range.
func (im *Impairments) validate() error {
	var errs []error
	for _, c := range []struct {
		name   string
		chance float64
	}{{"loss", im.Loss}, {"corrupt", im.Corrupt}, {"duplicate", im.Duplicate}, {"reorder", im.Reorder}} {
		if !(c.chance >= 0 && c.chance <= 1) { // so that NaN is refused
			errs = append(errs, fmt.Errorf("wire: %s is %v, allowed is 0 to 1", c.name, c.chance))
		}
	}
	for _, d := range []struct {
		name string
		time time.Duration
	}{{"delay", im.Delay}, {"jitter", im.Jitter}, {"reorder delay", im.ReorderDelay}} {
		if d.time < 0 || d.time > time.Hour {
			errs = append(errs, fmt.Errorf("wire: %s is %v, allowed is 0 to 1 hour", d.name, d.time))
		}
	}
	return errors.Join(errs...)
}

// SetImpairments sets the faults of the frames that this end sends, at once and
// in place of those before. Frames already on their way keep their times, except
// that setting none (the zero value) has what was held delivered before
// SetImpairments returns. It returns an error that names every field that is out
// of range, and then changes nothing.
func (e *Endpoint) SetImpairments(im Impairments) error {
	if err := im.validate(); err != nil {
		return err
	}
	e.changeImpairments(func(now *Impairments) { *now = im })
	return nil
}

// Impairments returns the faults of the frames that this end sends.
func (e *Endpoint) Impairments() Impairments {
	if im := e.peer.in.impair.Load(); im != nil {
		return im.impairments()
	}
	return Impairments{}
}

// SetCut begins (true) or ends (false) the loss of every frame that this end
// sends, and leaves the other impairments as they are.
func (e *Endpoint) SetCut(on bool) {
	e.changeImpairments(func(now *Impairments) { now.Cut = on })
}

// changeImpairments changes the faults of the frames that this end sends. The
// impairer is made the first time.
func (e *Endpoint) changeImpairments(change func(*Impairments)) {
	d := &e.peer.in
	e.cable.mu.Lock()
	if d.held == nil {
		d.held = newImpairer(e, d)
	}
	im := d.held
	e.cable.mu.Unlock()
	im.change(change)
}
