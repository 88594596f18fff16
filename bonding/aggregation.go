package bonding

import (
	"time"

	"bondstack/bonding/lacp"
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// aggregation is mode 802.3ad of a bond that a NIC has: the LACP system, and
// what the bond does for it. It is guarded by Bond.mu, as the bond's other
// state. Frames come to it by slow_protocol.go.
type aggregation struct {
	bond    *Bond
	system  *lacp.System
	config  lacp.Config // as the system was told last
	members map[lacp.PortID]*slave
}

var _ lacp.Output = (*aggregation)(nil)

// updateAggregation starts and ends the LACP system with the bond, and brings
// it up to date with the slaves' links and with time. It is called after every
// change; telling the system what it knows already costs next to nothing.
func (b *Bond) updateAggregation(now instant) {
	want := b.config.mode == IEEE8023AD && b.dispatcher != nil
	switch {
	case want && b.lag == nil:
		b.startAggregation()
	case !want && b.lag != nil:
		b.lag.stop(now)
		b.lag = nil
		b.dirty = true
	}
	if b.lag != nil {
		b.lag.sync(now)
	}
}

func (b *Bond) startAggregation() {
	a := &aggregation{bond: b, members: map[lacp.PortID]*slave{}}
	a.config = b.lacpConfig()
	system, err := lacp.New(a.config, a)
	if err != nil {
		// The bond's address and options were checked when they were set.
		b.warn("802.3ad does not start: %v", err)
		return
	}
	a.system = system
	b.lag = a
}

// lacpConfig is what the options say to LACP.
func (b *Bond) lacpConfig() lacp.Config {
	c := &b.config.lacp
	system := c.system
	if system == "" {
		system = b.mac
	}
	return lacp.Config{
		System:         lacp.MAC([]byte(system)),
		SystemPriority: c.sysPrio,
		Passive:        c.passive,
		Fast:           c.fast,
		Select:         lacp.Policy(b.config.adSelect),
		MinLinks:       b.config.minLinks,
		Independent:    c.independent,
		Strict:         c.strict,
	}
}

// stop says farewell on every port.
func (a *aggregation) stop(now instant) {
	a.system.Close(time.Duration(now))
	for _, s := range a.members {
		s.setInactive()
		a.tell(s, false, now)
	}
}

// sync tells the system of what is new, runs what is due, and gives the slaves
// the roles that come of it.
func (a *aggregation) sync(now instant) {
	b, at := a.bond, time.Duration(now)
	if c := b.lacpConfig(); c != a.config {
		a.config = c
		b.warnError(a.system.SetConfig(at, c))
	}
	for id, s := range a.members {
		if s.released {
			b.warnError(a.system.RemovePort(at, id))
			delete(a.members, id)
		}
	}
	for _, s := range b.slaves {
		a.syncPort(s, at)
	}
	a.system.Advance(at)
	for _, s := range b.slaves {
		receive, transmit := a.system.Data(lacp.PortID(s.portNumber))
		a.give(s, receive, transmit)
		a.tell(s, transmit, now)
	}
}

// syncPort makes a slave a port, and tells of its link.
func (a *aggregation) syncPort(s *slave, at time.Duration) {
	id := lacp.PortID(s.portNumber)
	l := lacpLink(s)
	if a.members[id] != s {
		a.members[id] = s
		a.bond.warnError(a.system.AddPort(at, lacp.PortConfig{Number: id, Priority: s.actorPortPrio,
			UserKey: a.bond.config.lacp.userKey, Link: l}))
		return
	}
	a.bond.warnError(a.system.LinkChanged(at, id, l))
	a.bond.warnError(a.system.SetDrain(at, id, s.standsBack))
	if p, ok := a.system.Port(id); ok && p.Actor.PortPriority != s.actorPortPrio {
		a.bond.warnError(a.system.SetPortPriority(at, id, s.actorPortPrio))
	}
}

// lacpLink is a slave's link as LACP is told of it: up while the bond's monitor
// says so, and the link itself.
func lacpLink(s *slave) lacp.LinkState {
	return lacp.LinkState{
		Up:    s.link == linkUp && s.usable(),
		Speed: s.state.Speed,
		Half:  s.state.Duplex == link.DuplexHalf,
	}
}

// give gives a slave its role.
func (a *aggregation) give(s *slave, receive, transmit bool) {
	inactive := !receive && !a.bond.config.allSlavesActive
	if s.backup == !transmit && s.rxInactive == inactive {
		return
	}
	s.backup, s.rxInactive = !transmit, inactive
	a.bond.dirty = true
}

// tell tells of a port that begins to send data or ends. With the first that
// does the neighbours are told of the bond: it had a carrier before, but could
// not send. With broadcast_neighbor they are told with each, since the switch
// behind the port may know nothing of the bond.
func (a *aggregation) tell(s *slave, distributes bool, now instant) {
	if s.distributes == distributes {
		return
	}
	b := a.bond
	if distributes && (b.config.lacp.broadcastNeighbor || !b.anyDistributes()) {
		b.notify.start(b.config.numPeerNotif, now)
	}
	s.distributes = distributes
	b.portEvent(s, distributes)
	b.later(b.stateSubs.call) // the bond's speed is another
}

// anyDistributes reports whether LACP lets a slave send.
func (b *Bond) anyDistributes() bool {
	for _, s := range b.slaves {
		if s.distributes {
			return true
		}
	}
	return false
}

// deadline is when the system wants to run next, or zero.
func (a *aggregation) deadline() instant {
	if at, ok := a.system.Deadline(); ok {
		return instant(at)
	}
	return 0
}

// Send sends a LACPDU or a marker response. It implements lacp.Output.
func (a *aggregation) Send(id lacp.PortID, pdu []byte) {
	s := a.members[id]
	if s == nil {
		return
	}
	s.controls.put(s.slowFrame(pdu))
	a.bond.later(s.sendControls)
}

// Changed implements lacp.Output: sync looks at what it tells of.
func (a *aggregation) Changed(lacp.Changes) {}

// number makes a new slave of an 802.3ad bond a port.
func (b *Bond) number(s *slave, o SlaveOptions) (err error) {
	if b.Mode() != IEEE8023AD {
		return nil
	}
	s.actorPortPrio = o.ActorPortPriority
	if s.actorPortPrio == 0 {
		s.actorPortPrio = lacp.DefaultPortPriority
	}
	if s.portNumber, err = takePortNumber(); err != nil {
		return &SlaveError{"enslave", s.name, "", err}
	}
	return nil
}

// permanentAddress is the address that a slave's control frames come from: its
// own, so that a partner tells the ports of one bond apart.
func (s *slave) permanentAddress() tcpip.LinkAddress {
	if checkAddress(s.permMAC) == nil {
		return s.permMAC
	}
	return s.ep.LinkAddress()
}
