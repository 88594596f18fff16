package echo

import (
	"fmt"
	"slices"
	"time"
)

// Instant is a moment: the time since any fixed one, and not zero.
type Instant = time.Duration

// Config are the settings of a Monitor.
type Config struct {
	// System is the bond's identity, random and not zero.
	System uint64
	// Interval is the time between hellos, a whole number of milliseconds from
	// 1 ms to MaxInterval.
	Interval time.Duration
	// Missed is how many hellos in a row may be lost, 1 to 255.
	Missed int
}

// Validate returns an error that names the first setting that is wrong.
func (c *Config) Validate() error {
	switch {
	case c.System == 0:
		return fmt.Errorf("echo: system 0: it must not be zero")
	case c.Interval < time.Millisecond || c.Interval > MaxInterval || c.Interval%time.Millisecond != 0:
		return fmt.Errorf("echo: interval %v: allowed are whole milliseconds from 1ms to %v", c.Interval, MaxInterval)
	case c.Missed < 1 || c.Missed > 255:
		return fmt.Errorf("echo: missed %d: allowed are 1 to 255", c.Missed)
	}
	return nil
}

// PortID is the caller's number of a port.
type PortID int

// Output is what a Monitor asks of the one who has it. Its methods are called
// from within those of the Monitor, which they must not call.
type Output interface {
	// Send sends a hello on a port. It is valid until Send returns.
	Send(id PortID, pdu []byte)
	// Received returns how many frames of any kind the port has received so far.
	Received(id PortID) uint64
}

// Monitor is the hellos of one bond.
type Monitor struct {
	cfg   Config
	out   Output
	ports []*port
	now   Instant
	hello Instant // when the next hellos are due; 0: at once
	// quietUntil is how long it is no news that peers do not hear us, since we
	// did not run.
	quietUntil Instant
	arcs       [numPeerStates][numPeerStates]uint64
	pdu        PDU // scratch
	frame      []byte
}

// port is one port of the bond.
type port struct {
	id            PortID
	discriminator uint64
	sequence      uint32
	link          bool
	peers         []*peer

	sampled   uint64  // frames received when last looked at
	own       uint64  // of these, hellos of the bond's other ports since
	sampledAt Instant // when that was
	heardAt   Instant // the last moment for which a frame is known
	sentAt    Instant
	news      bool    // a peer has just fallen silent, and should know at once
	takenAt   Instant // when an unconfirmed peer was last replaced

	raw      Verdict // what the port's own peers say
	rawSince Instant
	down     bool    // what has become of it
	verdict  Verdict // as reported
}

// New makes a Monitor without ports.
func New(c Config, out Output) (*Monitor, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Monitor{cfg: c, out: out, frame: make([]byte, 0, MaxSize)}, nil
}

// AddPort adds a port whose link is up. The discriminator is random, not zero,
// and never used again.
func (m *Monitor) AddPort(now Instant, id PortID, discriminator uint64) {
	m.enter(now)
	m.ports = append(m.ports, &port{id: id, discriminator: discriminator, link: true,
		sampled: m.out.Received(id), sampledAt: m.now, heardAt: m.now, rawSince: m.now})
}

// RemovePort takes a port out. Its farewell keeps the peers from finding it
// silent.
func (m *Monitor) RemovePort(now Instant, id PortID) {
	m.enter(now)
	if p := m.port(id); p != nil {
		m.send(p, true)
		m.ports = slices.DeleteFunc(m.ports, func(q *port) bool { return q == p })
	}
	m.judge()
}

// SetLink tells whether the link of a port is up. When it comes back, the port is
// down until a peer that was there before is heard again; after ten seconds those
// that stay silent are forgotten, since it may lead elsewhere now.
func (m *Monitor) SetLink(now Instant, id PortID, up bool) {
	p := m.port(id)
	if p == nil || p.link == up {
		return
	}
	m.enter(now)
	p.link = up
	for _, q := range p.peers {
		switch {
		case up:
			q.forgetAt = m.now + forgetLinkUp
		case q.state == Up || q.state == Deaf:
			m.move(q, Silent)
			q.forgetAt = 0
		}
	}
	if up {
		m.hello = min(m.hello, m.now)
	}
	m.judge()
}

// Receive takes in the payload of a frame that came on a port. It returns an
// error if that is no hello.
func (m *Monitor) Receive(now Instant, id PortID, payload []byte) error {
	pdu := &m.pdu
	if err := pdu.Parse(payload); err != nil {
		return err
	}
	port := m.port(id)
	if port == nil || !port.link {
		return nil
	}
	m.enter(now)
	if due, _ := m.Deadline(); m.late(due) {
		m.quietUntil = m.now + m.detection(nil)
	}
	if pdu.System == m.cfg.System {
		port.own++
		return nil
	}
	port.heardAt = max(port.heardAt, m.now)
	p := port.peer(pdu.Discriminator)
	switch {
	case pdu.Farewell:
		if p != nil && p.system == pdu.System && later(pdu.Sequence, p.sequence) {
			m.move(p, None)
			port.drop(p)
		}
	case p == nil:
		if p = m.meet(port, pdu); p != nil {
			m.listen(port, p, pdu)
		}
	case p.system == pdu.System && later(pdu.Sequence, p.sequence):
		m.listen(port, p, pdu)
	}
	m.judge()
	return nil
}

// later reports whether a sequence number is after another, so that a hello that
// was recorded, or comes twice, says nothing.
func later(a, b uint32) bool { return int32(a-b) > 0 }

// meet makes a place for a new peer. Where all places are taken the oldest of the
// unconfirmed peers gives way, once an interval, so that a flood of made-up ones
// can neither displace those that are confirmed nor keep others out for long.
func (m *Monitor) meet(port *port, pdu *PDU) *peer {
	if len(port.peers) == MaxPeers {
		i := slices.IndexFunc(port.peers, func(p *peer) bool { return !p.confirmed() })
		if i < 0 || m.now-port.takenAt < m.cfg.Interval {
			return nil
		}
		m.move(port.peers[i], None)
		port.peers = slices.Delete(port.peers, i, i+1)
		port.takenAt = m.now
	}
	p := &peer{discriminator: pdu.Discriminator, system: pdu.System}
	m.move(p, Heard)
	port.peers = append(port.peers, p)
	return p
}

// Advance does what is due. Calling it early does nothing.
func (m *Monitor) Advance(now Instant) {
	due, _ := m.Deadline()
	m.enter(now)
	if late := m.now - due; m.late(due) {
		m.excuse(late)
	}
	for _, port := range m.ports {
		m.sample(port)
		port.peers = slices.DeleteFunc(port.peers, func(p *peer) bool { return port.link && !m.age(port, p) })
	}
	m.judge()
	tick := m.now >= m.hello
	if tick {
		m.hello = max(m.hello, m.now-m.cfg.Interval+1) + m.cfg.Interval // no burst after a stop
	}
	for _, port := range m.ports {
		if tick || port.news && m.now-port.sentAt >= m.cfg.Interval/2 {
			m.send(port, false)
		}
	}
}

// late reports whether the Monitor should have run long ago.
func (m *Monitor) late(due Instant) bool { return due != 0 && m.now-due > m.cfg.Interval/2 }

// excuse takes a time in which the Monitor did not run, as when the process was
// stopped, out of the account: nothing can have been heard in it.
func (m *Monitor) excuse(late time.Duration) {
	m.quietUntil = m.now + m.detection(nil)
	for _, port := range m.ports {
		port.heardAt += late
		for _, p := range port.peers {
			p.heardAt = min(p.heardAt+late, m.now)
			p.hearsAt = min(p.hearsAt+late, m.now)
		}
		port.heardAt = min(port.heardAt, m.now)
	}
}

// sample looks whether a port has received frames, whatever they were. Those that
// came since it looked last came after that moment: that much is certain.
func (m *Monitor) sample(p *port) {
	n := m.out.Received(p.id) - p.own
	if n > p.sampled {
		p.heardAt = max(p.heardAt, p.sampledAt)
	}
	p.sampled, p.sampledAt = n, m.now
}

// send sends a hello.
func (m *Monitor) send(p *port, farewell bool) {
	if !p.link {
		return
	}
	p.sequence++
	p.sentAt, p.news = m.now, false
	pdu := &m.pdu
	*pdu = PDU{Farewell: farewell, Interval: m.cfg.Interval, System: m.cfg.System, Discriminator: p.discriminator,
		Sequence: p.sequence, Count: len(p.peers)}
	for i, q := range p.peers {
		pdu.Entries[i] = Entry{q.discriminator, q.sequence, q.state != Silent}
	}
	m.frame = pdu.AppendTo(m.frame[:0])
	m.out.Send(p.id, m.frame)
}

// Deadline returns when Advance has to be called next, and false where there are
// no ports.
func (m *Monitor) Deadline() (at Instant, ok bool) {
	at = m.hello
	for _, port := range m.ports {
		if !port.link {
			continue
		}
		for _, p := range port.peers {
			if d := m.detection(p); p.state == Up || p.state == Deaf {
				at = min(at, p.heardAt+d)
			} else if p.state == Silent && !port.down && port.heardAt+d > m.now {
				at = min(at, port.heardAt+d)
			}
		}
	}
	return at, len(m.ports) > 0
}

// enter begins a call. Time does not go back.
func (m *Monitor) enter(now Instant) { m.now = max(m.now, now) }

func (m *Monitor) port(id PortID) *port {
	for _, p := range m.ports {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (p *port) peer(discriminator uint64) *peer {
	for _, q := range p.peers {
		if q.discriminator == discriminator {
			return q
		}
	}
	return nil
}

func (p *port) drop(gone *peer) {
	p.peers = slices.DeleteFunc(p.peers, func(q *peer) bool { return q == gone })
}
