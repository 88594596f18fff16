package bonding

import (
	"net/netip"
	"time"

	"bondstack/bonding/probe"
)

// ARPSlave is what the ARP monitor knows of a slave. Times are in milliseconds
// before now, null where there was none, and as exact as the monitor looks: twice
// in each arp_interval.
type ARPSlave struct {
	HeardMsAgo *int64 `json:"heard_ms_ago"` // the last evidence that it works
	AskedMsAgo *int64 `json:"asked_ms_ago"` // its last probe
	// Targets is when each target was heard, where frames are validated.
	Targets map[string]*int64 `json:"targets,omitempty"`
}

// arpStatus is the monitor's account of a slave, nil while it does not run.
func (b *Bond) arpStatus(s *slave, now instant) *ARPSlave {
	if b.arp.next == 0 {
		return nil
	}
	ago := func(at instant) *int64 {
		if at < 0 { // never, or before the clock began
			return nil
		}
		ms := time.Duration(max(now-at, 0)).Milliseconds()
		return &ms
	}
	st := &ARPSlave{HeardMsAgo: ago(s.lastRx), AskedMsAgo: ago(instant(s.evidence.tx.Load()))}
	c := &b.config.arp
	if !c.validate.covers(s.backup) {
		return st
	}
	st.Targets = map[string]*int64{}
	list := func(targets []netip.Addr, base int) {
		for i, a := range targets {
			st.Targets[a.String()] = ago(s.targetRx[base+i])
		}
	}
	list(c.targets.V4, 0)
	list(c.targets.V6, probe.MaxTargets)
	return st
}
