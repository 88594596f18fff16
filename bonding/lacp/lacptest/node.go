package lacptest

import (
	"time"

	"bondstack/bonding/lacp"
)

// Node is a station with a lacp.System.
type Node struct {
	Name  string
	Sys   *lacp.System
	Ports []*NodePort
	// OnSend is called for each PDU that the System sends, if it is not nil.
	OnSend func(now lacp.Instant, id lacp.PortID, pdu []byte)
	// Rings is how often the System told of changes, Rang when it last did.
	Rings int
	Rang  lacp.Instant

	net    *Net
	config lacp.Config
	late   time.Duration // of the next advance
	parts  bool          // a farewell is being said, which the limit does not count
	arcs   func(*lacp.System)
}

// NodePort is a port of a Node.
type NodePort struct {
	Port
	Config lacp.PortConfig // without Up, which the cable decides
}

var (
	_ Station     = (*Node)(nil)
	_ lacp.Output = (*Node)(nil)
)

// NewNode adds a node. It panics if the settings are not valid.
func (n *Net) NewNode(name string, c lacp.Config) *Node {
	node := &Node{Name: name, net: n, config: c}
	node.boot()
	n.stations = append(n.stations, node)
	return node
}

func (d *Node) boot() {
	s, err := lacp.New(d.config, d)
	if err != nil {
		panic(err)
	}
	d.Sys = s
}

// AddPort adds a port of the next number that is not used, without a cable.
// l is its speed and duplex.
func (d *Node) AddPort(l lacp.LinkState) *Port {
	return d.AddPortConfig(lacp.PortConfig{Number: lacp.PortID(len(d.Ports) + 1), Priority: lacp.DefaultPortPriority, Link: l})
}

// AddPortConfig adds a port, without a cable. It panics if the configuration
// is not valid.
func (d *Node) AddPortConfig(c lacp.PortConfig) *Port {
	p := &NodePort{Port: Port{Station: d, ID: c.Number, net: d.net}, Config: c}
	d.Ports = append(d.Ports, p)
	d.start(p)
	return &p.Port
}

func (d *Node) start(p *NodePort) {
	c := p.Config
	c.Link.Up = p.Up()
	if err := d.Sys.AddPort(d.net.now, c); err != nil {
		panic(err)
	}
}

// Restart replaces the System by a new one, as if the process had been killed,
// or, where clean, ended. The count of arcs starts anew.
func (d *Node) Restart(clean bool) {
	if d.arcs != nil {
		d.arcs(d.Sys)
	}
	if clean {
		d.parts = true
		d.Sys.Close(d.net.now)
		d.parts = false
	}
	d.boot()
	for _, p := range d.Ports {
		p.count = 0 // the limit holds for one life
		d.start(p)
	}
	d.net.dirty = true
}

// Again removes a port and adds it again.
func (d *Node) Again(p *NodePort) {
	d.parts = true
	if err := d.Sys.RemovePort(d.net.now, p.ID); err != nil {
		panic(err)
	}
	d.parts = false
	p.count = 0
	d.start(p)
}

// Config returns the settings.
func (d *Node) Config() lacp.Config { return d.config }

// SetConfig changes the settings. It panics if they are not valid.
func (d *Node) SetConfig(c lacp.Config) {
	d.config = c
	if err := d.Sys.SetConfig(d.net.now, c); err != nil {
		panic(err)
	}
}

// SetLink changes a port's speed and duplex.
func (d *Node) SetLink(p *NodePort, l lacp.LinkState) {
	p.Config.Link = l
	d.Plugged(d.net.now, &p.Port)
}

// Port returns what the System shows of a port. It panics if there is none of
// the number.
func (d *Node) Port(id lacp.PortID) lacp.PortStatus {
	st, ok := d.Sys.Port(id)
	if !ok {
		panic("no such port")
	}
	return st
}

// Receive implements Station.
func (d *Node) Receive(now lacp.Instant, p *Port, pdu []byte) { d.Sys.Receive(now, p.ID, pdu) }

// Plugged implements Station.
func (d *Node) Plugged(now lacp.Instant, p *Port) {
	d.net.dirty = true // a port may go from one kind of sending to another
	for _, np := range d.Ports {
		if &np.Port == p {
			l := np.Config.Link
			l.Up = p.Up()
			_ = d.Sys.LinkChanged(now, p.ID, l) // fails while a restart is on
		}
	}
}

// Deadline implements Station.
func (d *Node) Deadline() (lacp.Instant, bool) {
	at, ok := d.Sys.Deadline()
	if ok {
		at += d.late
	}
	return at, ok
}

// Advance implements Station.
func (d *Node) Advance(now lacp.Instant) {
	d.Sys.Advance(now)
	if d.net.Late > 0 {
		d.late = time.Duration(d.net.Rand.Int64N(int64(d.net.Late)))
	}
	if at, ok := d.Sys.Deadline(); ok && at <= now {
		d.net.fault("%s: deadline %v is not after the advance", d.Name, at)
	}
}

// Send implements lacp.Output.
func (d *Node) Send(id lacp.PortID, pdu []byte) {
	for _, p := range d.Ports {
		if p.ID != id {
			continue
		}
		if pdu[0] == lacp.SubtypeLACP && !d.parts {
			d.limit(p)
		}
		if d.OnSend != nil {
			d.OnSend(d.net.now, id, pdu)
		}
		p.Port.Send(pdu)
	}
}

// limit checks that no four LACPDUs of a port are sent within a second.
func (d *Node) limit(p *NodePort) {
	slot := p.count % uint64(len(p.sent))
	if p.count >= uint64(len(p.sent)) && d.net.now-p.sent[slot] <= lacp.FastPeriod {
		d.net.fault("%s: port %d sent four LACPDUs in %v", d.Name, p.ID, d.net.now-p.sent[slot])
	}
	p.sent[slot] = d.net.now
	p.count++
}

// Changed implements lacp.Output.
func (d *Node) Changed(c lacp.Changes) {
	d.Rings++
	d.Rang = d.net.now
	if c&lacp.DataChanged != 0 {
		d.net.dirty = true
	}
}
