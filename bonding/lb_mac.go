package bonding

import (
	"fmt"

	"bondstack/bonding/rlb"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// In balance-tlb and balance-alb every slave has an address of its own, and the
// active one has the bond's. In balance-alb these are the links' addresses, which
// must be able to change while the link is up. In balance-tlb every link has the
// bond's address, and a slave's own is only recorded: balanced frames and
// learning packets have it as their source.

// recordMAC gives a slave an address in the way of the mode.
func (b *Bond) recordMAC(s *slave, addr tcpip.LinkAddress) {
	b.dirty = true
	if b.config.mode == BalanceTLB {
		s.mac = addr
		return
	}
	b.set(func() { b.warnError(s.setMAC(addr)) })
}

// withMAC returns the first slave that has an address, nil for none.
func (b *Bond) withMAC(addr tcpip.LinkAddress) *slave {
	return b.first(func(s *slave) bool { return s.mac == addr })
}

// giveOwnMAC gives a slave that has joined an address that no other one has.
func (b *Bond) giveOwnMAC(s *slave) {
	taken := func(addr tcpip.LinkAddress) bool {
		return b.first(func(other *slave) bool { return other != s && other.mac == addr }) != nil
	}
	valid := checkAddress(s.permMAC) == nil
	switch {
	case valid && !taken(s.permMAC) && (s.permMAC != b.mac || b.active == nil):
		b.recordMAC(s, s.permMAC)
		return
	case b.active == nil && !taken(b.mac):
		b.recordMAC(s, b.mac)
		return
	}
	for _, other := range b.slaves {
		if addr := other.permMAC; other != s && addr != b.mac && checkAddress(addr) == nil && !taken(addr) {
			b.warn("slave %s has an address that is in use, %s, and is given %s, that of slave %s", s.name, s.permMAC, addr, other.name)
			b.recordMAC(s, addr)
			return
		}
	}
	addr := randomAddress(b.options.Rand)
	b.warn("slave %s has an address that is in use, %s, and is given %s", s.name, s.permMAC, addr)
	b.recordMAC(s, addr)
}

// moveMAC gives the active slave the bond's address, and its own to the one
// that had that.
func (b *Bond) moveMAC(prev, next *slave) {
	partner := prev
	if partner == nil {
		partner = b.withMAC(b.mac)
	}
	switch partner {
	case nil:
		b.recordMAC(next, b.mac)
		b.announceMAC(next)
	case next:
		b.announceMAC(next)
	default:
		b.swapMAC(partner, next)
	}
}

// swapMAC exchanges the addresses of two slaves, of which the first may have
// left, and tells of it on those that can send.
func (b *Bond) swapMAC(x, y *slave) {
	xMAC, yMAC := x.mac, y.mac
	b.recordMAC(x, yMAC)
	b.recordMAC(y, xMAC)
	b.announceMAC(x)
	b.announceMAC(y)
	switch hears, lost := x.canTransmit(), y.canTransmit(); {
	case hears && !lost:
		b.teach(y.mac)
	case !hears && lost:
		b.teach(x.mac)
	}
}

// announceMAC tells the network where a slave's new address is, and those who
// send to the slave that it is new.
func (b *Bond) announceMAC(s *slave) {
	if s.canTransmit() {
		b.sendLearning(s, s.mac)
		b.clients().do(func(t *rlb.Table) { t.Announce(s.slot) })
	}
}

// teach has the active slave hear those who send to an address that no slave can
// receive on now. Only in balance-alb do others know the slaves' own addresses.
func (b *Bond) teach(addr tcpip.LinkAddress) {
	l := b.balancer
	if b.config.mode != BalanceALB || l == nil || b.active == nil {
		return
	}
	if l.teaching != b.active {
		l.endTeaching()
		if !b.promiscuous {
			b.warnError(b.active.setPromiscuous(true))
		}
		l.teaching, b.dirty = b.active, true
	}
	l.teachingUntil = l.tick(b.now().add(teachTime))
	b.sendLearning(b.active, addr)
}

// endTeaching takes the promiscuity back that was for another's address.
func (l *balancer) endTeaching() {
	s := l.teaching
	l.teaching, l.teachingUntil = nil, 0
	l.bond.dirty = l.bond.dirty || s != nil
	if s != nil && !l.bond.promiscuous {
		l.bond.warnError(s.setPromiscuous(false))
	}
}

// changeMACLB sets the bond's address in an adaptive mode. It is called from
// within Bond.set, as changeLinkAddress is: the active slave gets the address,
// and a slave that has it already gets that of the active one.
func (b *Bond) changeMACLB(addr tcpip.LinkAddress) error {
	if b.config.mode == BalanceTLB {
		if err := b.changeAllLinks(addr); err != nil {
			return err
		}
	} else if err := b.changeActiveLink(addr); err != nil {
		return err
	}
	b.mac, b.macFixed, b.dirty = addr, true, true
	b.tellTables()
	return nil
}

// changeAllLinks gives every link of balance-tlb the bond's new address.
func (b *Bond) changeAllLinks(addr tcpip.LinkAddress) error {
	for i, s := range b.slaves {
		if err := s.setLinkMAC(addr); err != nil {
			for _, back := range b.slaves[:i] {
				b.warnError(back.setLinkMAC(b.mac))
			}
			return err
		}
	}
	if holder := b.withMAC(addr); holder != nil && b.active != nil && holder != b.active {
		holder.mac = b.active.mac
		b.announceMAC(holder)
	}
	if b.active != nil {
		b.active.mac = addr
		b.announceMAC(b.active)
	}
	return nil
}

// changeActiveLink gives the active slave of balance-alb the bond's new
// address.
func (b *Bond) changeActiveLink(addr tcpip.LinkAddress) error {
	s := b.active
	if s == nil {
		return nil
	}
	if holder := b.withMAC(addr); holder != nil && holder != s {
		old := s.mac
		if err := s.setMAC(addr); err != nil {
			return err
		}
		b.warnError(holder.setMAC(old))
		b.announceMAC(holder)
	} else if err := s.setMAC(addr); err != nil {
		return err
	}
	b.announceMAC(s)
	return nil
}

// setLinkMAC gives a slave's link an address and leaves what is recorded.
func (s *slave) setLinkMAC(addr tcpip.LinkAddress) error {
	recorded := s.mac
	err := s.setMAC(addr)
	s.mac = recorded
	if err != nil {
		return fmt.Errorf("balance-tlb: %w", err)
	}
	return nil
}
