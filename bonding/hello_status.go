package bonding

import (
	"fmt"
	"time"
)

// ProbeStatus is what the fast probes (probe_interval) know of one slave.
type ProbeStatus struct {
	// Verdict is "unknown" where no peer speaks, "alive", "not heard by the
	// peer", "nothing heard" or "peer heard on other ports only". The slave is
	// down in the last three.
	Verdict string      `json:"verdict"`
	Peers   []ProbePeer `json:"peers"` // up to 8, in the order in which they were heard first
	// SilenceMs is how long ago the slave received a frame of anybody, as far as
	// is known.
	SilenceMs uint64 `json:"silence_ms"`
}

// ProbePeer is one bond's port that is or was heard on a slave.
type ProbePeer struct {
	System        string `json:"system"` // the same for all ports of one bond
	Discriminator string `json:"discriminator"`
	// State is "heard" until it has heard us, "up", "deaf" when it is heard and
	// does not hear us any more, or "silent".
	State     string `json:"state"`
	SilenceMs uint64 `json:"silence_ms"` // since its last hello
}

// probeStatus is the status of a slave's hellos, nil where there are none.
func (b *Bond) probeStatus(s *slave, now instant) *ProbeStatus {
	if b.hellos == nil {
		return nil
	}
	h := b.hellos
	h.mu.Lock()
	defer h.mu.Unlock()
	ago := func(at time.Duration) uint64 { return ms(max(time.Duration(now)-at, 0)) }
	st := &ProbeStatus{Verdict: h.monitor.Verdict(s.portID()).String(), Peers: []ProbePeer{},
		SilenceMs: ago(h.monitor.HeardAt(s.portID()))}
	for _, p := range h.monitor.Peers(s.portID()) {
		st.Peers = append(st.Peers, ProbePeer{fmt.Sprintf("%016x", p.System), fmt.Sprintf("%016x", p.Discriminator),
			p.State.String(), ago(p.HeardAt)})
	}
	return st
}
