package rlb

// Decision is what becomes of a frame that the host sends.
type Decision struct {
	// Slave is the ID of the slave that it goes by, NoSlave where it is not
	// balanced.
	Slave int
	// MAC is what SetSender has to write into it, if Rewrite is set.
	MAC     MAC
	Rewrite bool
}

// Send decides on a frame that the host sends. A reply gives its client a
// slave and tells it under that slave's address; so does a solicitation, which
// one client alone looks at. An ARP request gives one to the client that it asks
// for, but others hear it too: it goes under the bond's address, and who has
// another one is told anew some time later.
func (t *Table) Send(p *Packet) Decision {
	none := Decision{Slave: NoSlave}
	switch {
	case p.Sender.IsUnspecified() || !t.mine(p.SenderMAC):
		return none // a probe, or not ours
	case p.Target == p.Sender || p.Group && !p.Request:
		t.tellAgain(p) // an announcement
		return none
	}
	s := t.assign(p)
	if o, ok := t.ours[p.Sender]; ok && !p.Request {
		o.router = p.Router
		t.ours[p.Sender] = o
	}
	arpRequest := p.Request && p.Sender.Is4()
	if arpRequest {
		t.tellAgain(p)
	}
	if s == nil {
		return none
	}
	return Decision{Slave: s.ID, MAC: s.MAC, Rewrite: !arpRequest && p.senderAt != 0 && p.SenderMAC != s.MAC}
}

// Receive takes notice of a frame that came from another host. It reports
// whether that host claims an address of ours that clients are balanced for: if
// the address is ours no more, Forget is to be called.
func (t *Table) Receive(p *Packet) (claimed bool) {
	if !p.SenderMAC.usable() || t.mine(p.SenderMAC) {
		return false
	}
	c := t.clients[key{p.Target, p.Sender, p.Tags}]
	if c != nil && !p.Request {
		c.seen = t.tick
		if c.asked || c.mac != p.SenderMAC {
			c.asked, c.mac = false, p.SenderMAC
			t.tell(c)
		}
	}
	_, claimed = t.ours[p.Sender]
	return claimed
}

// assign returns the slave of the client that a packet is for, nil where there
// is none to have.
func (t *Table) assign(p *Packet) *Slave {
	k := key{p.Sender, p.Target, p.Tags}
	c := t.clients[k]
	if c == nil {
		if c = t.add(k); c == nil {
			return nil
		}
	}
	c.seen, c.from = t.tick, p.SenderMAC
	c.asked = c.asked || p.Request && p.Sender.Is4()
	if p.TargetMAC.usable() {
		c.mac = p.TargetMAC
	}
	if s := t.slave(c.slave); s != nil {
		return s
	}
	s := t.next()
	if s == nil {
		t.remove(c)
		return nil
	}
	t.move(c, s.ID)
	if !p.Request {
		t.tell(c)
	}
	return s
}

// next chooses the slave for a client: that with the fewest clients for its
// weight, and among equals the one after that which was chosen last. Nil where
// none can send.
func (t *Table) next() *Slave {
	slaves, start, best := t.links.Slaves, 0, -1
	for i := range slaves {
		if slaves[i].ID == t.last {
			start = i + 1
		}
	}
	for i := range slaves {
		i = (start + i) % len(slaves)
		if slaves[i].CanSend && (best < 0 || t.freer(i, best)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	t.last = slaves[best].ID
	return &slaves[best]
}

// freer reports whether one more client would have more of slave a than of b.
func (t *Table) freer(a, b int) bool {
	weight := func(i int) uint64 { return uint64(max(t.links.Slaves[i].Weight, 1)) }
	return uint64(t.loads[a]+1)*weight(b) < uint64(t.loads[b]+1)*weight(a)
}

func (t *Table) move(c *client, id int) {
	t.count(c.slave, -1)
	c.slave = id
	t.count(id, 1)
}

// tell has a client told, if it is known where it is.
func (t *Table) tell(c *client) bool {
	if !c.mac.usable() {
		return false
	}
	c.tell = true
	if !t.pending {
		t.pending, t.since = true, t.tick
	}
	return true
}

// tellAgain has those clients told, after a while, who learn the bond's address
// from what the host sends now, and have another one. A stream of requests does
// not put that off for ever.
func (t *Table) tellAgain(p *Packet) {
	for c := t.newest; c != nil; c = c.older {
		if c.ours != p.Sender || !p.Group && c.theirs != p.Target {
			continue
		}
		if s := t.slave(c.slave); s != nil && s.MAC != t.links.Bond {
			t.tell(c)
		}
	}
	t.delay = updateDelay
	if t.pending {
		t.delay = min(t.delay, max(0, int(t.since+longestDelay)-int(t.tick)))
	}
}

// Lost gives the clients of a slave to others: its link is down, as SetLinks has
// told, or it left.
func (t *Table) Lost(id int) {
	if t.slave(id) == nil && t.last == id {
		t.last = NoSlave
	}
	for c := t.newest; c != nil; c = c.older {
		if c.slave != id {
			continue
		}
		if s := t.next(); s == nil {
			t.move(c, NoSlave)
		} else if t.move(c, s.ID); t.tell(c) {
			t.retry = retries
		}
	}
}

// Announce tells the clients of a slave that it has another address.
func (t *Table) Announce(id int) {
	for c := t.newest; c != nil; c = c.older {
		if c.slave == id && t.tell(c) {
			t.retry = retries
		}
	}
}

// Rebalance has the next tick spread the clients anew: a slave came or is up
// again.
func (t *Table) Rebalance() { t.rebalance = true }

func (t *Table) spread() {
	t.rebalance = false
	clear(t.loads)
	for c := t.newest; c != nil; c = c.older {
		s := t.next()
		if s == nil {
			t.count(c.slave, 1)
			continue
		}
		moved := c.slave != s.ID
		c.slave = s.ID
		t.count(s.ID, 1)
		if moved {
			t.tell(c)
		}
	}
}

// Tick is to be called every 100 ms. It returns what has to be sent now, in that
// order.
func (t *Table) Tick() []Update {
	t.tick++
	if t.tick%sweep == 0 {
		t.look()
	}
	if t.rebalance {
		t.spread()
	}
	list := t.goodbye
	t.goodbye = nil
	switch {
	case !t.pending:
	case t.delay > 0:
		t.delay--
	default:
		list = t.round(list)
	}
	return list
}

// round adds the updates of all clients that have to be told.
func (t *Table) round(list []Update) []Update {
	for c := t.newest; c != nil; c = c.older {
		if !c.tell {
			continue
		}
		if s := t.slave(c.slave); s != nil {
			list = appendBurst(list, t.update(c, s))
		}
		c.tell = t.retry > 0
	}
	t.delay, t.since = updateDelay, t.tick
	if t.retry > 0 {
		t.retry--
	} else {
		t.pending = false
	}
	return list
}

func appendBurst(list []Update, u Update) []Update {
	for range burst {
		list = append(list, u)
	}
	return list
}

// look takes over who has been sent packets since the last time.
func (t *Table) look() {
	for c := t.newest; c != nil; c = c.older {
		if t.Activity.has(c.place) {
			c.seen, c.met = t.tick, true
		}
	}
	t.Activity.clear()
}
