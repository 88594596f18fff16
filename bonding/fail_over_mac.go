package bonding

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// FailOverMAC is what happens to MAC addresses in active-backup when another
// slave becomes the active one.
type FailOverMAC uint8

// The values of fail_over_mac.
const (
	// FailOverMACNone has all slaves carry the bond's address: nothing changes
	// in a failover.
	FailOverMACNone FailOverMAC = 0
	// FailOverMACActive has each slave keep its own address. The bond takes
	// that of the active slave, so peers have to learn another one.
	FailOverMACActive FailOverMAC = 1
	// FailOverMACFollow has the active slave alone carry the bond's address:
	// it exchanges addresses with the one before it.
	FailOverMACFollow FailOverMAC = 2
)

var failOverMACNames = []string{"none", "active", "follow"}

// String returns Linux's name.
func (f FailOverMAC) String() string { return nameOf(failOverMACNames, uint64(f)) }

// macPolicy is fail_over_mac where it acts: in active-backup.
func (c *config) macPolicy() FailOverMAC {
	if c.mode != ActiveBackup {
		return FailOverMACNone
	}
	return c.failOverMAC
}

// longMode is the mode as /proc/net/bonding names it.
func (c *config) longMode() string {
	name := c.mode.info().long
	if policy := c.macPolicy(); policy != FailOverMACNone {
		name += fmt.Sprintf(" (fail_over_mac %s)", policy)
	}
	return name
}

// fitAddress gives a new slave the address that it joins with. The first slave
// of a bond without an address of its own gives the bond its own. A link that
// cannot change its address can be in the bond if it need not.
func (b *Bond) fitAddress(s *slave) error {
	s.permMAC = s.ep.LinkAddress()
	b.mu.Lock()
	policy, first := b.config.macPolicy(), len(b.slaves) == 0
	mac := b.joiningAddress(s)
	b.mu.Unlock()
	err := s.setMAC(mac)
	if err == nil && policy == FailOverMACFollow {
		err = s.tryAnotherMAC()
	}
	switch {
	case err == nil:
		return nil
	case b.Mode() != ActiveBackup || checkAddress(s.permMAC) != nil:
		return &SlaveError{"enslave", s.name, fmt.Sprintf("it keeps %s and does not take %s", s.permMAC, mac), ErrAddress}
	case first:
		b.forceActiveMAC(s)
		return nil
	}
	return &SlaveError{"enslave", s.name, fmt.Sprintf("it keeps %s and does not take %s; with fail_over_mac=active, set before there are slaves, it need not", s.permMAC, mac), ErrAddress}
}

// joiningAddress is the address that a slave joins with. The bond's lock is
// held.
func (b *Bond) joiningAddress(s *slave) tcpip.LinkAddress {
	own := checkAddress(s.permMAC) == nil
	switch b.config.macPolicy() {
	case FailOverMACActive:
		if own {
			return s.permMAC
		}
		return randomAddress(b.options.Rand)
	case FailOverMACFollow:
		// The bond's address is with the active slave already, or will be; and
		// a slave that was released may find its own with another.
		taken := b.first(func(other *slave) bool { return other.mac == s.permMAC }) != nil
		if own && !taken && !(len(b.slaves) > 0 && s.permMAC == b.mac) {
			return s.permMAC
		}
		return randomAddress(b.options.Rand)
	}
	if !b.macFixed && own {
		return s.permMAC
	}
	return b.mac
}

// tryAnotherMAC finds out whether a link can change its address, which follow
// needs in a failover and not before: it goes to another one and back.
func (s *slave) tryAnotherMAC() error {
	own := s.mac
	if err := s.setMAC(randomAddress(s.bond.options.Rand)); err != nil {
		return err
	}
	return s.setMAC(own)
}

// forceActiveMAC sets fail_over_mac to active because the first slave of the
// bond cannot change its address, as Linux does.
func (b *Bond) forceActiveMAC(s *slave) {
	s.mac = s.permMAC
	b.control(func(instant) {
		b.warn("fail_over_mac is %s, but slave %s keeps its address %s: it is active now", b.config.failOverMAC, s.name, s.permMAC)
		b.config.failOverMAC = FailOverMACActive
		b.dirty = true
	})
}

// adoptAddress makes a first slave's address the bond's, unless the bond has
// one of its own.
func (b *Bond) adoptAddress(s *slave) {
	if !b.macFixed && checkAddress(s.permMAC) == nil {
		b.mac, b.macFixed = s.permMAC, true
	}
}

// moveAddress does what fail_over_mac says when the active slave changes.
func (b *Bond) moveAddress(next *slave) {
	switch b.config.macPolicy() {
	case FailOverMACActive:
		b.takeMAC(next)
	case FailOverMACFollow:
		b.set(func() { b.exchangeMACs(next) })
		for _, s := range b.slaves {
			if s.graceUntil != 0 && s != next && s.lingerAddr == "" {
				s.lingerAddr = b.mac
				b.warnError(s.addAddresses(b.mac))
			}
		}
	}
}

// lingerMAC is the address that a drained slave takes frames for besides the
// bond's, packed: with active its own, which switches have in their tables for a
// moment yet. With follow that is the bond's, and the slave's link is told.
func (b *Bond) lingerMAC(s *slave) uint64 {
	if s.graceUntil == 0 || b.config.macPolicy() != FailOverMACActive {
		return 0
	}
	return mac48([]byte(s.mac))
}

// endLinger is the end of the time in which a drained slave still receives.
func (b *Bond) endLinger(s *slave) {
	if s.lingerAddr != "" {
		b.warnError(s.removeAddresses(s.lingerAddr))
		s.lingerAddr = ""
	}
}

// takeMAC gives the bond the address of its active slave.
func (b *Bond) takeMAC(active *slave) {
	if active.mac == b.mac || checkAddress(active.mac) != nil {
		return
	}
	b.log(levelInfo, "the address is %s now, that of slave %s", active.mac, active.name)
	b.mac, b.macFixed, b.dirty = active.mac, true, true
	b.tellTables()
	b.later(b.stateSubs.call) // a bond above this one looks at the address too
}

// exchangeMACs has the active slave and the one that carries the bond's address,
// the active one before it as a rule, exchange their addresses. Where no slave
// carries it, that one being released or never there, it is free.
func (b *Bond) exchangeMACs(active *slave) {
	if active.mac == b.mac {
		return
	}
	holder := b.first(func(s *slave) bool { return s.mac == b.mac })
	free := active.mac
	if err := active.setMAC(b.mac); err != nil {
		b.warnError(err)
		return
	}
	if holder != nil {
		b.warnError(holder.setMAC(free))
	}
	b.tellTables()
}

// watchMAC follows the address of the active slave where the bond's is that
// one's, and the link has changed it by itself, as a bond of its own does.
func (b *Bond) watchMAC() {
	if b.config.macPolicy() != FailOverMACActive {
		return
	}
	for _, s := range b.slaves {
		s.mac = s.ep.LinkAddress()
	}
	if b.active != nil {
		b.takeMAC(b.active)
	}
}

// keepsOwnMAC reports whether a slave was never given an address, and so has
// none to be given back.
func (b *Bond) keepsOwnMAC(s *slave) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config.macPolicy() == FailOverMACActive && checkAddress(s.permMAC) == nil
}
