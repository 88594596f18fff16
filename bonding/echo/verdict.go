package echo

import "fmt"

// Verdict is what the hellos say of a port.
type Verdict uint8

// The verdicts. Those from NotHeard on mean that the port is down.
const (
	// Unknown: no peer has spoken, or all have fallen silent in a way that does
	// not tell the port from others.
	Unknown Verdict = iota
	// doubtful: the peers are silent, but not everybody is. It is shown as
	// Unknown.
	doubtful
	// Alive: a peer is heard, and hears us.
	Alive
	// NotHeard: a peer is heard, and says that it does not hear us.
	NotHeard
	// NothingHeard: the peers are silent, and so is everybody else.
	NothingHeard
	// Unreached: the peers are silent here, and one of them is heard on another
	// port of the bond.
	Unreached
	numVerdicts
)

var verdictNames = [numVerdicts]string{"unknown", "unknown", "alive", "not heard by the peer", "nothing heard", "peer heard on other ports only"}

// String returns the verdict in a few words.
func (v Verdict) String() string {
	if v < numVerdicts {
		return verdictNames[v]
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// Down reports whether the port should not be used.
func (v Verdict) Down() bool { return v >= NotHeard }

// Verdict returns what is to be thought of a port.
func (m *Monitor) Verdict(id PortID) Verdict {
	if p := m.port(id); p != nil {
		return p.verdict
	}
	return Unknown
}

// HeardAt returns the last moment at which the port is known to have received a
// frame of others.
func (m *Monitor) HeardAt(id PortID) Instant {
	if p := m.port(id); p != nil {
		return p.heardAt
	}
	return 0
}

// judge brings the verdicts up to date.
func (m *Monitor) judge() {
	for _, p := range m.ports {
		if raw := m.rawVerdict(p); raw != p.raw {
			p.raw, p.rawSince = raw, m.now
		}
	}
	for _, p := range m.ports {
		m.conclude(p)
	}
}

// rawVerdict is what a port's peers say of it.
func (m *Monitor) rawVerdict(port *port) Verdict {
	confirmed, deaf, other := false, false, false
	for _, p := range port.peers {
		switch {
		case p.state == Up:
			return Alive
		case p.confirmed():
			confirmed = true
			deaf = deaf || p.state == Deaf
			other = other || m.reaches(p.system, port)
		}
	}
	switch {
	case !confirmed:
		return Unknown
	case !port.link:
		return NothingHeard
	case deaf:
		return NotHeard
	case m.now-port.heardAt >= m.detection(port.slowest()):
		return NothingHeard
	case other:
		return Unreached
	}
	return doubtful
}

// slowest is the confirmed peer with the longest interval.
func (p *port) slowest() (slow *peer) {
	for _, q := range p.peers {
		if q.confirmed() && (slow == nil || q.interval > slow.interval) {
			slow = q
		}
	}
	return slow
}

// reaches reports whether another port hears a system and is heard by it.
func (m *Monitor) reaches(system uint64, not *port) bool {
	for _, port := range m.ports {
		if port == not || !port.link {
			continue
		}
		for _, p := range port.peers {
			if p.system == system && p.state == Up {
				return true
			}
		}
	}
	return false
}

// conclude makes the port's verdict of what its peers say. A port goes down only
// where another is no worse: peers that fall silent on all ports are dead
// themselves, and then nothing is known. It comes back when it has been alive for
// a detection time; where others than its peers are heard on it, after so long
// that a frame now and then does not make it go up and down.
func (m *Monitor) conclude(p *port) {
	since := m.now - p.rawSince
	switch {
	case p.raw.Down():
		p.down = !p.link || m.otherServes(p)
	case p.raw == Alive:
		p.down = p.down && since < m.detection(nil)
	case p.raw == doubtful:
		p.down = p.down && since < forgetLinkUp && m.otherServes(p)
	default:
		p.down = false
	}
	switch {
	case !p.down && p.raw == Alive:
		p.verdict = Alive
	case !p.down:
		p.verdict = Unknown
	case p.raw.Down():
		p.verdict = p.raw
	}
}

// spokenTo reports whether a peer that is up has been heard within two intervals:
// one that has not may be about to fall silent too.
func (m *Monitor) spokenTo(port *port) bool {
	for _, p := range port.peers {
		if p.state == Up && m.now-p.heardAt <= 2*max(m.cfg.Interval, p.interval) {
			return true
		}
	}
	return false
}

// otherServes reports whether there is a port that is no worse: one whose peers
// are alive and have spoken lately, or one of which nothing was ever known. Peers
// that have only just come back may be about to speak on the other port too.
func (m *Monitor) otherServes(than *port) bool {
	for _, p := range m.ports {
		switch {
		case p == than || !p.link:
		case p.raw == Unknown, p.raw == Alive && !p.down && m.now-p.rawSince >= 2*m.cfg.Interval && m.spokenTo(p):
			return true
		}
	}
	return false
}
