package lacp

import (
	"fmt"
	"time"
)

// DrainStage is how far a port is that is taken out of use without a frame lost
// (SetDrain). It hides bits of the actor's state, whatever the mux machine says,
// and the data path does what the bits say:
//
//	stage      synchronization  collecting  distributing
//	InUse      as the machine   as the machine  as the machine
//	Quiet      as the machine   as the machine  clear
//	Leaving    clear            as the machine  clear
//	Drained    clear            clear       clear
//	Returning  as the machine   as the machine  clear
//
// Quiet has what other goroutines are still sending reach a partner that
// collects. In Leaving the partner learns that the port is out of sync, stops
// sending, and what it sent before is still taken. Returning waits until the
// partner collects again.
type DrainStage uint8

// The stages of a drain.
const (
	InUse DrainStage = iota
	Quiet
	Leaving
	Drained
	Returning
)

// The times of a drain.
const (
	QuietTime = 100 * time.Millisecond
	LeaveTime = time.Second
)

var drainNames = [...]string{"in use", "quiet", "leaving", "drained", "returning"}

// String returns the stage in a word or two.
func (d DrainStage) String() string {
	if int(d) < len(drainNames) {
		return drainNames[d]
	}
	return fmt.Sprintf("DrainStage(%d)", uint8(d))
}

// drain is a port's drain.
type drain struct {
	wanted bool
	stage  DrainStage
	until  Instant // the end of Quiet and Leaving
	// told is whether the partner has acknowledged that the port is out of
	// sync: what it says of the port afterwards is about its return.
	told bool
}

// SetDrain takes a port out of use, or back, in such a way that neither side
// sends what the other does not take. The port stays drained when its link is
// lost and comes back.
func (s *System) SetDrain(now Instant, id PortID, on bool) error {
	p := s.port(id)
	switch {
	case p == nil:
		return unknownPort(id)
	case p.drain.wanted == on:
		return nil
	}
	s.enter(now, TriggerConfig)
	p.touched = true
	p.drain.wanted = on
	s.settle()
	return nil
}

// drainNext returns the stage that a port goes to from here, and why.
func (p *port) drainNext(now Instant) (to DrainStage, why string) {
	d := &p.drain
	switch st := d.stage; {
	case st == InUse && d.wanted && p.actor.State.Has(Distributing):
		return Quiet, "the port is drained"
	case st == InUse && d.wanted:
		return Drained, "the port is drained before it was in use"
	case st == Quiet && !d.wanted:
		return InUse, "the drain was undone"
	case st == Quiet && now >= d.until:
		return Leaving, "nothing is sent any more"
	case st == Leaving && now >= d.until:
		return Drained, "the partner had time to stop"
	case st == Leaving && !d.wanted && d.told, st == Drained && !d.wanted:
		return Returning, "the drain was undone"
	case st == Returning && d.wanted:
		return Leaving, "the port is drained"
	case st == Returning && p.partner.State.Has(Collecting) && p.view.State.Has(Synchronization):
		return InUse, "the partner collects"
	}
	return d.stage, ""
}

// runDrain brings a port's drain up to date.
func (s *System) runDrain(p *port) {
	d := &p.drain
	if d.stage == Leaving || d.stage == Drained {
		d.told = d.told || !p.view.State.Has(Synchronization)
	}
	for {
		to, why := p.drainNext(s.now)
		if to == d.stage {
			return
		}
		s.note(p, Drain, uint16(d.stage), uint16(to), why)
		d.stage, d.until = to, Never
		switch to {
		case Quiet:
			d.until = s.now + QuietTime
		case Leaving:
			d.until, d.told = s.now+LeaveTime, false
		}
		p.showMux()
	}
}

// restart has a port whose link comes back begin in the last stage: there is
// nobody to take leave of.
func (d *drain) restart() {
	d.stage, d.until, d.told = InUse, Never, false
	if d.wanted {
		d.stage = Drained
	}
}

// hides are the bits that a drain hides.
func (d *drain) hides() State {
	switch d.stage {
	case Quiet, Returning:
		return Distributing
	case Leaving:
		return Synchronization | Distributing
	case Drained:
		return Synchronization | Collecting | Distributing
	}
	return 0
}

// churnState is the state that churn detection looks at: a port that is out of
// sync on purpose has not churned.
func (p *port) churnState() State {
	if p.drain.hides().Has(Synchronization) {
		return p.actor.State | Synchronization
	}
	return p.actor.State
}

func (s *System) explainDrain(p *port, _ Instant) (state, remedy string) {
	switch p.drain.stage {
	case Returning:
		return "does not distribute yet: it returns from a drain, and the partner does not collect yet", "wait"
	case Quiet, Leaving, Drained:
		return "does not distribute: it is drained (" + p.drain.stage.String() + ")", "undo the drain"
	}
	return "", ""
}
