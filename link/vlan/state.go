package vlan

import "bondstack/link"

// none is a subscription to a link that tells nothing.
func none() {}

// LinkState is the link's. It implements link.StateEndpoint.
func (t *Trunk) LinkState() link.State { return link.StateOf(t.base) }

// SubscribeLinkState implements link.StateEndpoint.
func (t *Trunk) SubscribeLinkState(f func()) (cancel func()) {
	if s, ok := t.base.(link.StateEndpoint); ok {
		return s.SubscribeLinkState(f)
	}
	return none
}

// SubscribeNotifyPeers implements link.Notifier.
func (t *Trunk) SubscribeNotifyPeers(f func()) (cancel func()) {
	if n, ok := t.base.(link.Notifier); ok {
		return n.SubscribeNotifyPeers(f)
	}
	return none
}

// SubscribeResendMemberships implements link.MembershipNotifier.
func (t *Trunk) SubscribeResendMemberships(f func()) (cancel func()) {
	if n, ok := t.base.(link.MembershipNotifier); ok {
		return n.SubscribeResendMemberships(f)
	}
	return none
}

// SubscribeChanges implements link.ChangeReporter.
func (t *Trunk) SubscribeChanges(f func()) (cancel func()) {
	if c, ok := t.base.(link.ChangeReporter); ok {
		return c.SubscribeChanges(f)
	}
	return none
}

// MTURange implements link.MTUEndpoint. Of a link that does not know its range it
// is the present MTU alone.
func (t *Trunk) MTURange() (least, greatest uint32) {
	if m, ok := t.base.(link.MTUEndpoint); ok {
		return m.MTURange()
	}
	return t.base.MTU(), t.base.MTU()
}

// LinkState is the link's, and down once the device is closed. It implements
// link.StateEndpoint.
func (d *Device) LinkState() link.State {
	s := d.trunk.LinkState()
	if d.closed.Load() {
		s.Up, s.Carrier = false, false
	}
	return s
}

// SubscribeLinkState implements link.StateEndpoint. That the device is closed is
// told by its close action alone.
func (d *Device) SubscribeLinkState(f func()) (cancel func()) { return d.trunk.SubscribeLinkState(f) }

// SubscribeNotifyPeers implements link.Notifier: what the link asks for has to be
// told in the VLAN as well.
func (d *Device) SubscribeNotifyPeers(f func()) (cancel func()) {
	return d.trunk.SubscribeNotifyPeers(f)
}

// SubscribeResendMemberships implements link.MembershipNotifier, as
// SubscribeNotifyPeers does.
func (d *Device) SubscribeResendMemberships(f func()) (cancel func()) {
	return d.trunk.SubscribeResendMemberships(f)
}

// SubscribeChanges implements link.ChangeReporter: the device's address and MTU
// may be the link's.
func (d *Device) SubscribeChanges(f func()) (cancel func()) { return d.trunk.SubscribeChanges(f) }
