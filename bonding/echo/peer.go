package echo

import (
	"fmt"
	"time"
)

// PeerState is what a port knows of a peer.
type PeerState uint8

// The states of a peer.
const (
	None   PeerState = iota // not known
	Heard                   // heard, and never yet heard us
	Up                      // heard, and hears us
	Deaf                    // heard, and does not hear us though it did
	Silent                  // not heard any more, though it was Up
	numPeerStates
)

var peerStateNames = [numPeerStates]string{"none", "heard", "up", "deaf", "silent"}

// String returns the state in a word.
func (s PeerState) String() string {
	if s < numPeerStates {
		return peerStateNames[s]
	}
	return fmt.Sprintf("PeerState(%d)", uint8(s))
}

// Arc is a way from one state of a peer to another.
type Arc struct {
	From, To PeerState
	When     string
}

// Arcs lists every arc of a peer.
var Arcs = []Arc{
	{None, Heard, "a hello of an unknown discriminator, and there is room or an unconfirmed peer to replace"},
	{Heard, Up, "a hello that lists us as heard, with a sequence number that we sent lately"},
	{Heard, None, "no hello for the detection time, a farewell, or replaced by another"},
	{Up, Deaf, "a hello that lists us as not heard, or none that lists us for the detection time"},
	{Up, Silent, "no hello for the detection time, or the link went down"},
	{Up, None, "a farewell"},
	{Deaf, Up, "a hello that lists us as heard"},
	{Deaf, Silent, "no hello for the detection time, or the link went down"},
	{Deaf, None, "a farewell"},
	{Silent, Up, "a hello that lists us as heard"},
	{Silent, Deaf, "a hello that does not list us as heard"},
	{Silent, None, "not heard since long while the port is not down for it, or since the link came back"},
}

// peer is another port on the segment.
type peer struct {
	discriminator uint64
	system        uint64
	state         PeerState
	sequence      uint32        // of its last hello
	interval      time.Duration // that it tells
	heardAt       Instant       // of its last hello
	hearsAt       Instant       // of its last hello that lists us as heard
	forgetAt      Instant       // when a silent one is forgotten; 0: not yet
}

// confirmed reports whether the peer has ever heard us.
func (p *peer) confirmed() bool { return p.state >= Up }

// The times after which a silent peer is forgotten.
const (
	forgetTime   = time.Minute      // where the port is not down for it
	forgetLinkUp = 10 * time.Second // since the link came back
)

// maxRatio is how many times our interval a peer's may be. One that is slower is
// no witness: its silence would say too little, too late.
const maxRatio = 16

// sequenceWindow is how old a sequence number may be that a peer has heard from
// us: more hellos than are on their way on any link.
const sequenceWindow = 1024

// detection is for how long a peer may be silent: Missed of the longer interval,
// and an eighth of it for what the last one may be late.
func (m *Monitor) detection(p *peer) time.Duration {
	d := m.cfg.Interval
	if p != nil {
		d = max(d, p.interval)
	}
	return time.Duration(m.cfg.Missed)*d + d/8
}

// listen takes in a hello of a peer that is known.
func (m *Monitor) listen(port *port, p *peer, pdu *PDU) {
	p.sequence, p.interval, p.heardAt = pdu.Sequence, pdu.Interval, m.now
	e, listed := pdu.entry(port.discriminator)
	listed = listed && port.sequence-e.Sequence < sequenceWindow && p.interval <= maxRatio*m.cfg.Interval
	switch {
	case listed && e.Hears:
		p.hearsAt = m.now
		m.move(p, Up)
	case p.state == Silent, p.state == Up && listed && m.now >= m.quietUntil:
		m.move(p, Deaf)
	}
}

// age looks at what time makes of a peer. It reports false when it is to be
// forgotten.
func (m *Monitor) age(port *port, p *peer) (keep bool) {
	silent := m.now-p.heardAt >= m.detection(p)
	switch {
	case p.state == Heard && silent:
		m.move(p, None)
	case silent && (p.state == Up || p.state == Deaf):
		m.move(p, Silent)
		p.forgetAt, port.news = 0, true
	case p.state == Up && m.now-p.hearsAt >= m.detection(p):
		m.move(p, Deaf)
	case p.state == Silent && p.forgetAt != 0 && m.now >= p.forgetAt,
		p.state == Silent && !port.down && m.now-p.heardAt >= forgetTime:
		m.move(p, None)
	}
	return p.state != None
}

func (m *Monitor) move(p *peer, to PeerState) {
	if p.state == to {
		return
	}
	m.arcs[p.state][to]++
	p.state = to
}
