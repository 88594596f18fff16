package bonding

import (
	"sync"

	"bondstack/bonding/rlb"
	"bondstack/link"
)

// receiveBalancer is the receiving half of balance-alb: which clients send to
// which slave. It lives while a NIC has the bond.
//
// Its lock is taken by ARP and neighbour discovery on the data path, and by the
// control side with Bond.mu held. Nothing is called with it held but the table.
// Other packets only mark Table.Activity, which is atomic.
type receiveBalancer struct {
	bond  *Bond
	mu    sync.Mutex
	table *rlb.Table
}

func newReceiveBalancer(b *Bond) *receiveBalancer {
	r := &receiveBalancer{bond: b, table: rlb.New(rlb.DefaultMaxClients)}
	r.look()
	return r
}

// do runs f with the lock, on slaves as they are. Bond.mu is held.
func (r *receiveBalancer) do(f func(*rlb.Table)) {
	if r == nil {
		return
	}
	links := r.bond.receiveLinks()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.SetLinks(links)
	f(r.table)
}

// look takes over how the slaves are.
func (r *receiveBalancer) look() { r.do(func(*rlb.Table) {}) }

// receiveLinks is the bond as the table sees it. A slave whose link did not take
// an address of its own is no place for clients: they would reach the active
// one.
func (b *Bond) receiveLinks() rlb.Links {
	l := rlb.Links{Active: rlb.NoSlave, Bond: rlb.MAC([]byte(b.mac))}
	for _, s := range b.slaves {
		l.Slaves = append(l.Slaves, rlb.Slave{ID: s.slot, MAC: rlb.MAC([]byte(s.mac)),
			Weight: s.weightAmong(b.slaves), CanSend: s.canTransmit() && !b.sharesMAC(s)})
		if s == b.active {
			l.Active = s.slot
		}
	}
	return l
}

// sharesMAC reports whether a slave of balance-alb that is not the active one
// has the bond's address, since its link takes no other. Nothing is sent by it:
// a switch would take the bond for two hosts.
func (b *Bond) sharesMAC(s *slave) bool {
	return b.config.mode == BalanceALB && s != b.active && s.mac == b.mac
}

// clients returns the receiving half, nil where there is none.
func (b *Bond) clients() *receiveBalancer {
	if b.balancer == nil {
		return nil
	}
	return b.balancer.clients
}

// clientsLost gives a slave's clients to others. Where the slave is not the
// active one, that is made to hear those who do not know yet.
func (b *Bond) clientsLost(s *slave) {
	if b.clients() == nil {
		return
	}
	b.clients().do(func(t *rlb.Table) { t.Lost(s.slot) })
	if s != b.active {
		b.teach(s.mac)
	}
}

// advanceClients takes over what has changed of the slaves, and does what is due
// at a tick.
func (l *balancer) advanceClients(now instant) {
	b := l.bond
	if now < l.clientsAt {
		if b.dirty {
			l.clients.look()
		}
		return
	}
	l.clientsAt = l.tick(now + 1)
	var updates []rlb.Update
	l.clients.do(func(t *rlb.Table) { updates = t.Tick() })
	if len(updates) == 0 {
		return
	}
	for _, s := range b.slaves {
		var frames [][]byte
		for _, u := range updates {
			if u.Slave == s.slot {
				frames = append(frames, u.Frame)
			}
		}
		if len(frames) > 0 {
			b.later(func() { s.sendOwn(frames) })
		}
	}
}

// forgetClients forgets those behind a VLAN that is there no more.
func (b *Bond) forgetClients(tag link.VLANTag) {
	b.clients().do(func(t *rlb.Table) { t.ForgetVLAN(rlb.Tag{Protocol: tag.Protocol, ID: tag.ID}) })
}

// heardBy are the packed addresses besides the bond's that a slave receives for
// in balance-alb: its own, and those of others that cannot receive now, if it is
// the active one.
func (b *Bond) heardBy(s *slave) []uint64 {
	list := []uint64{mac48([]byte(s.mac))}
	if s != b.active {
		return list
	}
	teaching := b.balancer != nil && b.balancer.teaching == s
	for _, other := range b.slaves {
		if other != s && (teaching || !other.canTransmit()) {
			list = append(list, mac48([]byte(other.mac)))
		}
	}
	return list
}
