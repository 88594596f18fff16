package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"bondstack/bonding"
)

// The operations. Each needs the fields named.
const (
	Set      = "set"          // Option, Value: an option by its Linux name
	Add      = "add_slave"    // Slave; Kind, Prio, Weight, QueueID if wanted
	Delete   = "delete_slave" // Slave
	Activate = "activate"     // Slave: who is active at once, as active_slave
	Drain    = "drain"        // Slave: no new frames on it, none lost
	Undrain  = "undrain"      // Slave
	Enable   = "enable"       // Slave
	Disable  = "disable"      // Slave: out of use, whatever its link says
	Rename   = "rename"       // Slave, To
	Prio     = "prio"         // Slave, Value: -2147483648 to 2147483647
	Weight   = "weight"       // Slave, Value: 0 to 1000000000
)

// Operations are the names of all operations.
var Operations = []string{Set, Add, Delete, Activate, Drain, Undrain, Enable, Disable, Rename, Prio, Weight}

// Bounds of requests.
const (
	MaxRequest    = 64 << 10  // bytes of a request
	MaxOperations = 64        // operations of one
	MaxConfirm    = time.Hour // to wait for a confirmation
)

// Operation is one change. Fields that the operation does not need are empty.
type Operation struct {
	Op      string `json:"op"`
	Slave   string `json:"slave,omitempty"`
	Option  string `json:"option,omitempty"`
	Value   string `json:"value,omitempty"`
	To      string `json:"to,omitempty"`
	Kind    string `json:"kind,omitempty"`     // of a link, as the program knows them; "" is its default
	Prio    int32  `json:"prio,omitempty"`     // of a new slave
	Weight  uint32 `json:"weight,omitempty"`   // of a new slave; 0: its speed
	QueueID uint16 `json:"queue_id,omitempty"` // of a new slave
}

// Request is the body of POST /v1/change.
type Request struct {
	Operations []Operation `json:"operations"`
	// DryRun has the operations tried, and nothing changed.
	DryRun bool `json:"dry_run,omitempty"`
	// ConfirmWithinMs has the change taken back unless it is confirmed within so
	// many milliseconds, up to an hour. 0: it stays.
	ConfirmWithinMs int64 `json:"confirm_within_ms,omitempty"`
}

// Answer is the answer to POST /v1/change.
type Answer struct {
	Applied bool `json:"applied"` // false in a dry run
	bonding.Outcome
	Confirm *Pending `json:"confirm,omitempty"` // what waits for a confirmation
}

// Pending is a change that waits to be confirmed.
type Pending struct {
	ID       string    `json:"id"`
	Deadline time.Time `json:"deadline"` // when it is taken back, by the server's clock
}

// Event is a line of GET /v1/events: an event of the bond, or, of the kind
// "missed", how many events this reader has lost since the line before.
type Event struct {
	bonding.Event
	Missed uint64 `json:"missed,omitempty"`
}

// EventMissed is the kind of a line that tells of lost events.
const EventMissed bonding.EventKind = "missed"

// String returns the event as a line for people.
func (e Event) String() string {
	if e.Kind == EventMissed {
		return fmt.Sprintf("%d events were missed: this reader was too slow", e.Missed)
	}
	return e.Event.String()
}

// ParseRequest reads a request and checks its form: one JSON value without
// unknown fields, each operation with the fields that it needs and no others.
// Whether the bond can do it is for the bond to say.
func ParseRequest(body []byte) (Request, error) {
	var r Request
	if err := decode(body, &r); err != nil {
		return Request{}, err
	}
	return r, r.check()
}

// decode reads exactly one JSON value without unknown fields.
func decode(body []byte, v any) error {
	if len(body) > MaxRequest {
		return fmt.Errorf("the request has %d bytes, allowed are %d", len(body), MaxRequest)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("the request is not understood: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the request is not understood: there is more behind its JSON value")
	}
	return nil
}

func (r *Request) check() error {
	switch n := len(r.Operations); {
	case n == 0:
		return errors.New("operations: none is given; 1 to " + strconv.Itoa(MaxOperations) + " are allowed")
	case n > MaxOperations:
		return fmt.Errorf("operations: %d are given; 1 to %d are allowed", n, MaxOperations)
	case r.ConfirmWithinMs < 0 || r.ConfirmWithinMs > MaxConfirm.Milliseconds():
		return fmt.Errorf("confirm_within_ms: %d; allowed are 0 to %d", r.ConfirmWithinMs, MaxConfirm.Milliseconds())
	case r.ConfirmWithinMs > 0 && r.DryRun:
		return errors.New("confirm_within_ms: a dry run has nothing to confirm")
	}
	var errs []error
	for i := range r.Operations {
		if err := r.Operations[i].check(); err != nil {
			errs = append(errs, fmt.Errorf("operation %d: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

// needs are the fields that an operation must have.
var needs = map[string]struct{ slave, option, value, to bool }{
	Set: {option: true}, Add: {slave: true}, Delete: {slave: true}, Activate: {slave: true},
	Drain: {slave: true}, Undrain: {slave: true}, Enable: {slave: true}, Disable: {slave: true},
	Rename: {slave: true, to: true}, Prio: {slave: true, value: true}, Weight: {slave: true, value: true},
}

func (o *Operation) check() error {
	need, known := needs[o.Op]
	if !known {
		return fmt.Errorf("op %q: allowed are %s", o.Op, strings.Join(Operations, ", "))
	}
	for _, f := range []struct {
		name, value string
		must, may   bool
	}{
		{"slave", o.Slave, need.slave, false},
		{"option", o.Option, need.option, false},
		{"value", o.Value, need.value, o.Op == Set}, // "" clears an option
		{"to", o.To, need.to, false},
		{"kind", o.Kind, false, o.Op == Add},
	} {
		switch {
		case f.must && f.value == "":
			return fmt.Errorf("%s: %s is missing", o.Op, f.name)
		case !f.must && !f.may && f.value != "":
			return fmt.Errorf("%s: %s %q has no meaning", o.Op, f.name, f.value)
		}
	}
	if o.Op != Add && (o.Prio != 0 || o.Weight != 0 || o.QueueID != 0) {
		return fmt.Errorf("%s: prio, weight and queue_id are of %s", o.Op, Add)
	}
	return nil
}

// transaction makes operations what the bond takes, but for new slaves.
func transaction(ops []Operation) (bonding.Transaction, error) {
	t := bonding.Transaction{Options: map[string]string{}}
	var errs []error
	fault := func(i int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("operation %d: %s: "+format, append([]any{i + 1, ops[i].Op}, args...)...))
	}
	set := func(i int, name, value string) {
		if old, twice := t.Options[name]; twice {
			fault(i, "option %s is set twice, to %q and %q", name, old, value)
		}
		t.Options[name] = value
	}
	yes, no := true, false
	for i, o := range ops {
		c := bonding.SlaveChange{Slave: o.Slave}
		switch o.Op {
		case Add:
			if o.Weight > bonding.MaxWeight {
				fault(i, "weight %d: allowed are 0 to %d", o.Weight, bonding.MaxWeight)
			}
			continue
		case Set:
			set(i, o.Option, o.Value)
			continue
		case Activate:
			set(i, "active_slave", o.Slave)
			continue
		case Delete:
			t.Remove = append(t.Remove, o.Slave)
			continue
		case Drain:
			c.Drained = &yes
		case Undrain:
			c.Drained = &no
		case Enable:
			c.Enabled = &yes
		case Disable:
			c.Enabled = &no
		case Rename:
			to := o.To
			c.NewName = &to
		case Prio:
			v, err := strconv.ParseInt(o.Value, 10, 32)
			if err != nil {
				fault(i, "%q is no number from -2147483648 to 2147483647", o.Value)
			}
			prio := int32(v)
			c.Priority = &prio
		case Weight:
			v, err := strconv.ParseUint(o.Value, 10, 32)
			if err != nil || v > bonding.MaxWeight {
				fault(i, "%q is no number from 0 to %d", o.Value, bonding.MaxWeight)
			}
			weight := uint32(v)
			c.Weight = &weight
		}
		t.Slaves = append(t.Slaves, c)
	}
	return t, errors.Join(errs...)
}
