package drill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"bondstack/bonding"
)

// The bounds of a drill.
const (
	MinFor   = 100 * time.Millisecond // a cut
	MaxFor   = 60 * time.Second       // all cuts of a drill together
	MaxPeers = 16
	MaxCount = 20
	// maxRequest is the most bytes of a request.
	maxRequest = 16 << 10
)

// Request says what to do.
type Request struct {
	// Slave is who is cut.
	Slave string `json:"slave"`
	// ForMs is for how long, in milliseconds: 100 to 60000.
	ForMs int64 `json:"for_ms"`
	// How is the way: silence, disable or drain. Default: silence where a monitor
	// can find it (ARP or NS monitoring, probes, LACP), else disable.
	How bonding.CutHow `json:"how,omitempty"`
	// Peers are whom to ask, at most 16. Default: the gateways and the neighbours
	// that answer.
	Peers []netip.Addr `json:"peers,omitempty"`
	// Count is how many times, 1 to 20. Default 1.
	Count int `json:"count,omitempty"`
	// Force allows a cut that leaves no other slave.
	Force bool `json:"force,omitempty"`
}

// Check completes a request, and returns all its faults.
func (r *Request) Check() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Count == 0 {
		r.Count = 1
	}
	if r.Slave == "" {
		fault("slave: none is named")
	}
	if r.Count < 1 || r.Count > MaxCount {
		fault("count: %d is out of range, allowed are 1 to %d", r.Count, MaxCount)
		r.Count = 1
	}
	if r.ForMs < MinFor.Milliseconds() || r.ForMs > MaxFor.Milliseconds()/int64(r.Count) {
		fault("for: %d ms is out of range, allowed are %d to %d, %d of all cuts together", r.ForMs, MinFor.Milliseconds(),
			MaxFor.Milliseconds()/int64(r.Count), MaxFor.Milliseconds())
	}
	switch r.How {
	case "", bonding.CutSilence, bonding.CutDisable, bonding.CutDrain:
	default:
		fault("how: %q is unknown, allowed are %s, %s and %s", r.How, bonding.CutSilence, bonding.CutDisable, bonding.CutDrain)
	}
	if len(r.Peers) > MaxPeers {
		fault("peers: %d are given, allowed are %d", len(r.Peers), MaxPeers)
	}
	for _, p := range r.Peers {
		if !p.IsValid() || p.IsMulticast() || p.IsUnspecified() {
			fault("peers: %v is no address of a host", p)
		}
	}
	return errors.Join(errs...)
}

// ParseRequest reads and checks a request: one JSON value without unknown fields.
func ParseRequest(body []byte) (Request, error) {
	var r Request
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Request{}, fmt.Errorf("the request is not understood: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Request{}, errors.New("the request is not understood: there is more behind its JSON value")
	}
	return r, r.Check()
}
