package lacptest

import (
	"time"

	"bondstack/bonding/lacp"
)

// Port is a station's port.
type Port struct {
	Station Station
	ID      lacp.PortID

	net   *Net
	cable *Cable
	side  int
	sent  [3]lacp.Instant // of the last LACPDUs, by count
	count uint64
}

// Up reports whether the port has a link: it is plugged in, and the cable is
// up.
func (p *Port) Up() bool { return p.cable != nil && p.cable.Up }

// Cable returns the cable that is plugged in, or nil.
func (p *Port) Cable() *Cable { return p.cable }

// Peer returns the port at the other end, or nil.
func (p *Port) Peer() *Port {
	if p.cable == nil {
		return nil
	}
	return p.cable.Ends[1-p.side]
}

// Send puts a PDU on the cable.
func (p *Port) Send(pdu []byte) {
	if p.Up() {
		p.cable.send(p.side, pdu)
	}
}

// Way is what a cable does to PDUs in one direction. The zero value delivers
// each at once.
type Way struct {
	Cut       bool          // nothing arrives
	Loss      float64       // share that is lost
	Duplicate float64       // share that arrives twice
	Delay     time.Duration // of each
	Jitter    time.Duration // and up to so much more, by chance: PDUs overtake each other
}

// Cable joins two ports. Ways[i] is from Ends[i] to the other.
type Cable struct {
	Ends [2]*Port
	Ways [2]Way
	Up   bool // both ends have a carrier

	net   *Net
	since lacp.Instant // of a disagreement of its ends
	apart bool
}

// Join plugs a cable into two ports. What was plugged in there is pulled out.
// Ports that had a link keep it all the time, so they do not notice: pull the
// old cable first to have them lose it.
func (n *Net) Join(a, b *Port) *Cable {
	c := &Cable{Ends: [2]*Port{a, b}, Up: true, net: n}
	n.cables = append(n.cables, c)
	for side, p := range c.Ends {
		if old := p.cable; old != nil {
			n.pull(old, p)
		}
		p.cable, p.side = c, side
	}
	n.dirty = true
	for _, p := range c.Ends {
		p.Station.Plugged(n.now, p)
	}
	return c
}

// pull takes a cable out of all its ports but keep, which gets another one.
func (n *Net) pull(c *Cable, keep *Port) {
	c.end()
	for i, o := range n.cables {
		if o == c {
			n.cables = append(n.cables[:i], n.cables[i+1:]...)
			break
		}
	}
	for _, p := range c.Ends {
		if p.cable == c {
			p.cable = nil
			if p != keep {
				p.Station.Plugged(n.now, p)
			}
		}
	}
	n.dirty = true
}

// Pull unplugs the cable for good.
func (c *Cable) Pull() { c.net.pull(c, nil) }

// SetUp gives both ends a carrier, or takes it away.
func (c *Cable) SetUp(up bool) {
	if c.Up == up {
		return
	}
	c.Up = up
	c.net.dirty = true
	for _, p := range c.Ends {
		p.Station.Plugged(c.net.now, p)
	}
}

func (c *Cable) send(side int, pdu []byte) {
	n, w := c.net, &c.Ways[side]
	n.PDUs++
	if w.Cut || w.Loss > 0 && n.Rand.Float64() < w.Loss {
		return
	}
	copies := 1
	if w.Duplicate > 0 && n.Rand.Float64() < w.Duplicate {
		copies = 2
	}
	for range copies {
		at := n.now + w.Delay
		if w.Jitter > 0 {
			at += time.Duration(n.Rand.Int64N(int64(w.Jitter)))
		}
		n.queue.push(event{at: at, to: c.Ends[1-side], cable: c, frame: n.queue.take(pdu)})
	}
}
