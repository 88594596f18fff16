package rlb

import "net/netip"

// DefaultMaxClients is how many clients a bond keeps: as many as make for two
// thousand small frames when all have to be told of a change.
const DefaultMaxClients = 1024

// Linux's times, in ticks of 100 ms, and counts.
const (
	updateDelay = 20 // between rounds of updates, and after a request
	burst       = 2  // identical frames of an update
	retries     = 3  // rounds in which a change of address is told again
)

// Our own times, in ticks.
const (
	// longestDelay bounds how long requests can put off an update.
	longestDelay = 50
	// sweep is how often the activity of clients is looked at.
	sweep = 10
	// A client makes room for another one when it has been idle for so long: a
	// short time if we only answered it, a long one if we have sent it packets.
	idleStranger = 50
	idleClient   = 3000
)

// NoSlave stands for none where a slave's ID is asked for.
const NoSlave = -1

// Slave is what the balancer knows of a slave.
type Slave struct {
	// ID is the caller's number of the slave, not negative.
	ID  int
	MAC MAC
	// Weight is how many clients it takes beside the others, such as its speed.
	// 0 counts as 1.
	Weight uint32
	// CanSend is whether the slave is in use.
	CanSend bool
}

// Links is the bond as it is at a moment.
type Links struct {
	Slaves []Slave // in the order of enslaving
	Active int     // the ID of the active slave, or NoSlave
	Bond   MAC
}

// key is what a client is known by: a host on a network, as it sees one of our
// addresses.
type key struct {
	ours, theirs netip.Addr
	tags         Tags
}

// client is one entry of the table.
type client struct {
	key
	mac   MAC // zero: not known yet
	from  MAC // under which the host spoke to it last
	slave int
	tell  bool   // it has to be told of its slave
	asked bool   // a request to it has no answer yet
	met   bool   // we have sent it packets, not only answers
	seen  uint64 // the tick when it last had a sign of life
	place uint32 // in Activity

	newer, older *client
}

// own is what the table knows of an address of ours.
type own struct {
	clients int
	router  bool // our advertisements say so
}

// Table knows the clients of a bond. It is made by New.
type Table struct {
	// Activity is marked with every address that packets are sent to.
	Activity Activity

	max     int
	links   Links
	loads   []int // clients by slave, beside links.Slaves
	last    int   // the ID of the slave that was chosen last
	clients map[key]*client
	ours    map[netip.Addr]own
	newest  *client

	tick      uint64
	pending   bool   // some client has to be told
	since     uint64 // when that began
	delay     int    // ticks until the next round
	retry     int
	rebalance bool
	fullUntil uint64 // no client can make room before this tick
	goodbye   []Update

	refused, evicted uint64
}

// New makes an empty table for up to max clients.
func New(max int) *Table {
	return &Table{max: max, last: NoSlave, clients: map[key]*client{}, ours: map[netip.Addr]own{},
		links: Links{Active: NoSlave}}
}

// SetLinks tells the table how the bond is from now on. It changes no client:
// who is lost or has another address is told by Lost and Announce.
func (t *Table) SetLinks(l Links) {
	t.links = l
	t.loads = make([]int, len(l.Slaves))
	for c := t.newest; c != nil; c = c.older {
		t.count(c.slave, 1)
	}
}

// slave returns the slave of an ID, nil if there is none.
func (t *Table) slave(id int) *Slave {
	for i := range t.links.Slaves {
		if t.links.Slaves[i].ID == id {
			return &t.links.Slaves[i]
		}
	}
	return nil
}

func (t *Table) count(id, n int) {
	for i := range t.links.Slaves {
		if t.links.Slaves[i].ID == id {
			t.loads[i] += n
		}
	}
}

// mine reports whether an address is that of the bond or of a slave.
func (t *Table) mine(mac MAC) bool {
	if mac == t.links.Bond {
		return true
	}
	for i := range t.links.Slaves {
		if t.links.Slaves[i].MAC == mac {
			return true
		}
	}
	return false
}

// add makes a client, if there is room.
func (t *Table) add(k key) *client {
	if len(t.clients) >= t.max && !t.makeRoom() {
		t.refused++
		return nil
	}
	c := &client{key: k, slave: NoSlave, seen: t.tick, place: placeOf(k.theirs), older: t.newest}
	if t.newest != nil {
		t.newest.newer = c
	}
	t.newest = c
	t.clients[k] = c
	o := t.ours[k.ours]
	o.clients++
	t.ours[k.ours] = o
	return c
}

func (t *Table) remove(c *client) {
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		t.newest = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	}
	t.count(c.slave, -1)
	delete(t.clients, c.key)
	if o := t.ours[c.ours]; o.clients > 1 {
		o.clients--
		t.ours[c.ours] = o
	} else {
		delete(t.ours, c.ours)
	}
}

// makeRoom removes the client that has been idle for longest, if one has been
// idle for long enough: strangers first. It is told the bond's own address,
// which needs no table.
func (t *Table) makeRoom() bool {
	if t.tick < t.fullUntil {
		return false
	}
	var victim *client
	for c := t.newest; c != nil; c = c.older {
		if t.tick-c.seen >= c.patience() && (victim == nil || !c.met && victim.met || c.met == victim.met && c.seen < victim.seen) {
			victim = c
		}
	}
	if victim == nil {
		t.fullUntil = t.tick + 1
		return false
	}
	t.evicted++
	if s := t.slave(t.links.Active); s != nil && victim.slave != s.ID && victim.mac.usable() {
		t.goodbye = appendBurst(t.goodbye, t.update(victim, s))
	}
	t.remove(victim)
	return true
}

func (c *client) patience() uint64 {
	if c.met {
		return idleClient
	}
	return idleStranger
}

// Forget removes the clients of an address of ours that has moved to another
// host, under another MAC address than the given one.
func (t *Table) Forget(addr netip.Addr, mac MAC) {
	t.removeIf(func(c *client) bool { return c.ours == addr && c.from != mac })
}

// ForgetVLAN removes the clients behind a VLAN of the bond.
func (t *Table) ForgetVLAN(tag Tag) {
	t.removeIf(func(c *client) bool { return c.tags[0] == tag })
}

func (t *Table) removeIf(f func(*client) bool) {
	for c := t.newest; c != nil; c = c.older {
		if f(c) {
			t.remove(c)
		}
	}
}
