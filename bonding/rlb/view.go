package rlb

import "net/netip"

// Client is what a table knows of one client.
type Client struct {
	Ours, Theirs netip.Addr
	MAC          MAC // zero: not known
	Tags         Tags
	Slave        int // ID, or NoSlave
}

// Stats are figures of a table.
type Stats struct {
	Clients int
	Max     int
	Refused uint64 // times that a host found no room
	Evicted uint64 // clients that made room
}

// Stats returns the table's figures.
func (t *Table) Stats() Stats {
	return Stats{Clients: len(t.clients), Max: t.max, Refused: t.refused, Evicted: t.evicted}
}

// Load returns how many clients a slave has.
func (t *Table) Load(id int) int {
	for i := range t.links.Slaves {
		if t.links.Slaves[i].ID == id {
			return t.loads[i]
		}
	}
	return 0
}

// Clients returns up to limit clients, the newest first.
func (t *Table) Clients(limit int) []Client {
	list := make([]Client, 0, min(limit, len(t.clients)))
	for c := t.newest; c != nil && len(list) < limit; c = c.older {
		list = append(list, Client{c.ours, c.theirs, c.mac, c.tags, c.slave})
	}
	return list
}
