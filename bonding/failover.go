package bonding

import "time"

// changeActive makes another slave the active one, or none. In modes without a
// meaningful active slave it is only kept for IGMP.
func (b *Bond) changeActive(next *slave, now instant) {
	prev := b.active
	if next == prev {
		return
	}
	b.dirty = true
	if next != nil {
		next.lastLinkUp = now
		if next.link == linkBack {
			b.log(levelInfo, "slave %s: link is up, %v before its updelay is over", next.name, time.Duration(next.until-now))
			next.link, next.until = linkUp, now
			b.linkEvent(next, linkBack)
		}
	}
	b.active = next
	b.activeEvent(prev, next)
	if b.config.mode != ActiveBackup {
		return
	}
	if prev != nil {
		prev.setInactive()
	}
	b.moveFilters(prev, next)
	if next != nil {
		next.setActive()
		b.notify.start(b.config.numPeerNotif, now)
	}
}

// updateCarrier makes the bond's carrier what its slaves say: up while the link
// of one is.
func (b *Bond) updateCarrier(now instant) {
	carrier := false
	for _, s := range b.slaves {
		carrier = carrier || s.link == linkUp
	}
	if carrier == b.carrier {
		return
	}
	b.carrier = carrier
	b.carrierEvent(carrier)
	b.later(b.stateSubs.call)
	if carrier && b.dispatcher != nil {
		// Neighbours may have forgotten us, or moved us to another port.
		b.notify.start(b.config.numPeerNotif, now)
	}
}

// receiveOnBackups applies all_slaves_active to the slaves that are backups
// now.
func (b *Bond) receiveOnBackups() {
	for _, s := range b.slaves {
		if s.backup {
			s.rxInactive = !b.config.allSlavesActive
		}
	}
}
