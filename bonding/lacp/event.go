package lacp

import (
	"fmt"
	"slices"
	"time"
)

// Trigger is what made the machines run.
type Trigger uint8

// The triggers.
const (
	TriggerTime Trigger = iota
	TriggerPDU
	TriggerLink
	TriggerConfig
	TriggerAdd
	TriggerRemove
)

var triggerNames = [...]string{"time", "PDU", "link", "configuration", "port added", "port removed"}

// String returns the trigger in a word or two.
func (t Trigger) String() string {
	if int(t) < len(triggerNames) {
		return triggerNames[t]
	}
	return fmt.Sprintf("Trigger(%d)", uint8(t))
}

// Event is a change of state, with its cause.
type Event struct {
	At      time.Duration // the instant
	Port    PortID        // 0 for what concerns the whole System
	Machine Machine
	From    uint16 // a MachineState, or as Machine says
	To      uint16
	Trigger Trigger
	Why     string
}

// String returns the event in a line, without its instant.
func (e Event) String() string {
	name := func(v uint16) string {
		if e.Machine < machineCount {
			return e.Machine.StateName(MachineState(v))
		}
		return fmt.Sprint(v)
	}
	where := "bond"
	if e.Port != 0 {
		where = fmt.Sprintf("port %d", e.Port)
	}
	return fmt.Sprintf("%s: %v %s -> %s (%v: %s)", where, e.Machine, name(e.From), name(e.To), e.Trigger, e.Why)
}

// ringSize is how many events are kept for each port, and for the System. Each
// port has its own, so that a port that flaps does not push out what the
// others did.
const ringSize = 32

type ring struct {
	events [ringSize]Event
	count  uint64 // of all that were ever added
}

func (r *ring) add(e Event) {
	r.events[r.count%ringSize] = e
	r.count++
}

func (r *ring) appendTo(list []Event) []Event {
	for i := r.count - min(r.count, ringSize); i < r.count; i++ {
		list = append(list, r.events[i%ringSize])
	}
	return list
}

// Events returns the last changes of state, in order of time: up to 32 of each
// port and of the System as a whole, those of the ports that were removed gone.
func (s *System) Events() []Event {
	list := s.events.appendTo(nil)
	for _, p := range s.ports {
		list = p.events.appendTo(list)
	}
	slices.SortStableFunc(list, func(a, b Event) int { return int(min(1, max(-1, a.At-b.At))) })
	return list
}

// note remembers an event that is no arc of a machine.
func (s *System) note(p *port, m Machine, from, to uint16, why string) {
	e := Event{At: s.now, Machine: m, From: from, To: to, Trigger: s.trigger, Why: why}
	if p == nil {
		s.events.add(e)
		return
	}
	e.Port = p.id
	p.events.add(e)
}
