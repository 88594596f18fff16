package bonding

import (
	"fmt"
	"sync"

	"bondstack/bonding/offload"
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// maxDepth is how deep bonds may be nested (Linux's limit for stacked devices).
const maxDepth = 8

// enslaving is held while any bond takes in an endpoint: of two bonds that want
// the same one, or each other, the second sees what the first has done.
var enslaving sync.Mutex

// Enslave makes an endpoint a slave under a name of 1 to 15 bytes. The endpoint
// must carry Ethernet and be attached to nothing; from here on the bond is its
// dispatcher. It is given the bond's MAC address and MTU; the first slave gives
// the bond its own unless Options said which. An error names the slave and the
// reason, and leaves both bond and endpoint as they were.
func (b *Bond) Enslave(name string, ep stack.LinkEndpoint, o SlaveOptions) error {
	b.configMu.Lock()
	defer b.configMu.Unlock()
	return b.enslave(name, ep, o, nil)
}

// enslave is Enslave with configMu held; device is nil for an endpoint that is
// in no table.
func (b *Bond) enslave(name string, ep stack.LinkEndpoint, o SlaveOptions, device *deviceSlave) error {
	s, err := b.join(name, ep, o, device)
	if err != nil {
		return err
	}
	stopNews := b.forwardNews(s)
	s.cancel = stopNews
	if e, ok := ep.(link.StateEndpoint); ok {
		stopState := e.SubscribeLinkState(func() { b.linkChanged(s) })
		s.cancel = func() { stopState(); stopNews() }
		b.linkChanged(s) // what changed before the subscription
	}
	return nil
}

// join makes an endpoint a member if it can be one.
func (b *Bond) join(name string, ep stack.LinkEndpoint, o SlaveOptions, device *deviceSlave) (*slave, error) {
	enslaving.Lock()
	defer enslaving.Unlock()
	if err := b.mayEnslave(name, ep, o); err != nil {
		return nil, err
	}
	s := &slave{name: name, bond: b, ep: ep, listener: o.Listener, disabled: o.Disabled,
		queueID: o.QueueID, prio: o.Priority, weight: o.Weight, room: offload.Room(ep), slot: b.freeSlot(), device: device,
		untagged: !link.TakesTaggedGSO(ep)}
	mtu, err := b.fitMTU(s)
	if err != nil {
		return nil, err
	}
	if err := b.fitAddress(s); err != nil {
		ep.SetMTU(s.permMTU)
		return nil, err
	}
	told, err := b.tellVLANs(s)
	if err != nil {
		b.restore(s)
		return nil, err
	}
	if err := b.number(s, o); err != nil {
		b.restore(s)
		return nil, err
	}
	b.beginToReceive(s)
	ep.Attach(b.portOf(s))
	s.look()
	b.control(func(now instant) {
		b.tellAbove(s, told)
		b.admit(s, mtu, now)
	})
	return s, nil
}

// mayEnslave checks what can be known without touching the endpoint.
func (b *Bond) mayEnslave(name string, ep stack.LinkEndpoint, o SlaveOptions) error {
	fail := func(kind error, format string, args ...any) error {
		return &SlaveError{"enslave", name, fmt.Sprintf(format, args...), kind}
	}
	if err := CheckName(name); err != nil {
		return fail(ErrInvalid, "%v", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch inner, isBond := link.Lowest(ep).(*Bond); {
	case b.closed:
		return fail(ErrClosed, "bond %s", b.Name())
	case ep == nil, isBond && inner == nil:
		return fail(ErrInvalid, "the endpoint is nil")
	case o.QueueID > maxQueueID:
		return fail(ErrInvalid, "queue_id %d: allowed are 0 to %d", o.QueueID, maxQueueID)
	case o.Weight > MaxWeight:
		return fail(ErrInvalid, "weight %d: allowed are 0 to %d", o.Weight, MaxWeight)
	case isBond && inner == b:
		return fail(ErrLoop, "the endpoint is, or is on, bond %s itself", b.Name())
	case isBond && inner.holds(b, maxDepth):
		return fail(ErrLoop, "bond %s is, or has below it, %s, or bonds are nested deeper than %d", inner.Name(), b.Name(), maxDepth)
	}
	for _, s := range b.slaves {
		switch {
		case s.name == name:
			return fail(ErrSlaveExists, "in bond %s", b.Name())
		case s.ep == ep:
			return fail(ErrBusy, "the endpoint is slave %s already", s.name)
		case o.QueueID != 0 && s.queueID == o.QueueID:
			return fail(ErrInvalid, "queue_id %d: slave %s has it", o.QueueID, s.name)
		}
	}
	switch {
	case ep.IsAttached():
		return fail(ErrBusy, "the endpoint is attached to a NIC or to another bond")
	case !isEthernet(ep):
		return fail(ErrLinkType, "its hardware type is %d, allowed is %d (Ethernet)", ep.ARPHardwareType(), header.ARPHardwareEther)
	}
	return nil
}

// holds reports whether a bond is among the slaves of b, or what these are on, at
// any depth up to a limit; deeper nesting counts as holding everything.
func (b *Bond) holds(other *Bond, depth int) bool {
	if depth == 0 {
		return true
	}
	for _, s := range b.snap.Load().all {
		if inner, ok := link.Lowest(s.ep).(*Bond); ok && (inner == other || inner.holds(other, depth-1)) {
			return true
		}
	}
	return false
}

// fitMTU gives a slave the bond's MTU and returns it; the first slave of a bond
// without an MTU of its own gives it its own. A slave that cannot is refused
// rather than the bond lowered, since connections keep the segment size that
// they began with.
func (b *Bond) fitMTU(s *slave) (uint32, error) {
	s.permMTU = s.ep.MTU()
	b.mu.Lock()
	want := b.MTU()
	if b.adoptsMTU() {
		want = min(max(s.permMTU, minMTU), maxMTU)
	}
	b.mu.Unlock()
	s.ep.SetMTU(want)
	if got := s.ep.MTU(); got < want {
		s.ep.SetMTU(s.permMTU)
		reason := fmt.Sprintf("it has %d bytes and cannot take the bond's %d", s.permMTU, want)
		if l, ok := s.ep.(link.MTUEndpoint); ok {
			least, greatest := l.MTURange()
			reason += fmt.Sprintf(" (it takes %d to %d)", least, greatest)
		}
		return 0, &SlaveError{"enslave", s.name, reason, ErrMTU}
	}
	return want, nil
}

// adoptsMTU reports whether the bond has no MTU of its own until a slave comes.
func (b *Bond) adoptsMTU() bool { return !b.mtuFixed && len(b.slaves) == 0 }

// admit makes an attached slave, which has been given an MTU, a member.
func (b *Bond) admit(s *slave, mtu uint32, now instant) {
	s.device.admitted(s)
	b.adoptAddress(s)
	if b.adoptsMTU() {
		b.mtu.Store(mtu)
	}
	b.set(func() { b.catchUp(s, mtu) })
	b.slaves = append(b.slaves, s)
	b.dirty = true
	b.headers.Store(max(b.headers.Load(), uint32(s.ep.MaxHeaderLength())))
	s.link, s.until = b.firstLink(s, now)
	s.verdicts.begin(s.link)
	s.forget(now, b.config.arp.interval)
	if s.link != linkDown {
		s.lastLinkUp = now
	}
	if s.name == b.config.primary {
		b.primary, b.takeOver = s, true
	}
	switch b.config.mode {
	case ActiveBackup:
		s.setInactive()
	case IEEE8023AD:
		s.setInactive() // until LACP has agreed
		b.warnError(s.promiscuousAs(b))
	case BalanceTLB, BalanceALB:
		b.joinLB(s, now)
	default:
		s.setActive()
		b.warnError(s.promiscuousAs(b))
	}
	b.slaveEvent(EventEnslave, s)
	switch {
	case s.disabled: // it joins out of use: nothing moves
	case b.config.mode.info().primary, b.active == nil && s.link == linkUp:
		b.reselect(now)
	}
}

// catchUp gives a new slave the MTU and the address that the bond was given
// while the slave was made ready for the old ones.
func (b *Bond) catchUp(s *slave, mtu uint32) {
	if want := b.MTU(); want != mtu {
		s.ep.SetMTU(want)
		if got := s.ep.MTU(); got != want {
			b.warn("slave %s: MTU %d is not taken, it stays at %d", s.name, want, got)
		}
	}
	if b.config.macPolicy() == FailOverMACNone {
		b.warnError(s.setMAC(b.mac))
	}
}

// promiscuousAs gives a new slave the bond's promiscuity.
func (s *slave) promiscuousAs(b *Bond) error {
	if !b.promiscuous {
		return nil
	}
	return s.setPromiscuous(true)
}

// firstLink is the state in which a slave's link begins: as it is, with
// updelay before it is used; up where nobody looks, but for a slave that was
// disabled by hand.
func (b *Bond) firstLink(s *slave, now instant) (linkState, instant) {
	switch {
	case s.disabled:
		return linkDown, 0
	case b.config.monitors() == 0:
		return linkUp, 0
	case !s.usable():
		return linkDown, 0
	case b.config.updelay > 0 && b.config.miimon > 0:
		return linkBack, now.add(b.config.passes(b.config.updelay))
	}
	return linkUp, 0
}

// freeSlot returns the least slot that no slave has. configMu is held, so it
// stays free until it is taken: before the endpoint is attached, whose frames
// read it.
func (b *Bond) freeSlot() int {
	for slot := 0; ; slot++ {
		taken := false
		for _, s := range b.slaves {
			taken = taken || s.slot == slot
		}
		if !taken {
			return slot
		}
	}
}

// SetMTU sets the MTU of the bond, 68 to 65535, and of every slave. Where a
// slave does not take it, all go back to what they had, and the status says so:
// the interface returns no error. It implements stack.LinkEndpoint.
func (b *Bond) SetMTU(mtu uint32) {
	b.report(b.ChangeMTU(mtu))
}

// ChangeMTU is SetMTU with an error that names the slave that refused.
func (b *Bond) ChangeMTU(mtu uint32) error {
	if mtu < minMTU || mtu > maxMTU {
		return fmt.Errorf("bond %s: MTU %d: %w: allowed are %d to %d", b.Name(), mtu, ErrMTU, minMTU, maxMTU)
	}
	var err error
	b.fromAbove(func(instant) {
		b.set(func() { err = b.changeMTU(mtu) })
	})
	return err
}

func (b *Bond) changeMTU(mtu uint32) error {
	for i, s := range b.slaves {
		old := s.ep.MTU()
		s.ep.SetMTU(mtu)
		if s.ep.MTU() == mtu {
			continue
		}
		s.ep.SetMTU(old)
		for _, back := range b.slaves[:i] {
			back.ep.SetMTU(b.MTU())
		}
		return &SlaveError{"set", s.name, fmt.Sprintf("MTU %d is not taken, it stays at %d", mtu, old), ErrMTU}
	}
	b.mtu.Store(mtu)
	b.mtuFixed = true
	b.tellTables()
	return nil
}

// MTURange implements link.MTUEndpoint.
func (b *Bond) MTURange() (least, greatest uint32) { return minMTU, maxMTU }

// SetLinkAddress sets the MAC address of the bond and of every slave. Where a
// slave does not take it, all go back, and the status says so. Where the slaves
// decide (fail_over_mac active and follow) nothing happens, as in Linux, but for
// a warning. It implements stack.LinkEndpoint.
func (b *Bond) SetLinkAddress(addr tcpip.LinkAddress) {
	b.report(b.ChangeLinkAddress(addr))
}

// ChangeLinkAddress is SetLinkAddress with an error that names what refused.
func (b *Bond) ChangeLinkAddress(addr tcpip.LinkAddress) error {
	if err := checkAddress(addr); err != nil {
		return fmt.Errorf("bond %s: %w", b.Name(), err)
	}
	var err error
	b.fromAbove(func(instant) {
		if policy := b.config.macPolicy(); policy != FailOverMACNone {
			b.warn("link address %s is not taken: fail_over_mac is %s, and the slaves' addresses decide", addr, policy)
			return
		}
		b.set(func() { err = b.changeLinkAddress(addr) })
	})
	return err
}

func (b *Bond) changeLinkAddress(addr tcpip.LinkAddress) error {
	if b.config.mode.balances() {
		return b.changeMACLB(addr)
	}
	for i, s := range b.slaves {
		err := s.setMAC(addr)
		if err == nil {
			continue
		}
		for _, back := range b.slaves[:i] {
			b.warnError(back.setMAC(b.mac))
		}
		return err
	}
	b.mac, b.macFixed, b.dirty = addr, true, true
	b.tellTables()
	return nil
}
