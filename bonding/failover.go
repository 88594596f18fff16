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
			next.verdicts.all(linkUp)
			b.linkEvent(next, linkBack)
		}
	}
	b.active = next
	b.activeEvent(prev, next)
	b.startResend(next, now)
	if b.config.mode.balances() {
		b.moveFilters(prev, next)
		b.switchLB(prev, next, now)
	}
	if b.config.mode != ActiveBackup {
		return
	}
	if prev != nil {
		prev.setInactive()
	}
	b.endTrial(next)
	b.moveFilters(prev, next)
	if next != nil {
		next.setActive()
		b.moveAddress(next)
		b.notify.start(b.config.numPeerNotif, now)
	}
}

// hasCarrier is Linux's rule for the carrier: the link of a slave is up; in
// 802.3ad min_links ports of the active aggregator are usable.
func (b *Bond) hasCarrier() bool {
	if b.config.mode == IEEE8023AD {
		return b.lag != nil && b.lag.system.Carrier()
	}
	for _, s := range b.slaves {
		if s.link == linkUp {
			return true
		}
	}
	return false
}

// belowMinLinks reports whether a bond in 802.3ad has fewer ports than it must
// have: it sends no data then. Linux leaves that to those above, who see that
// the carrier is off; netstack does not look.
func (b *Bond) belowMinLinks() bool { return b.config.mode == IEEE8023AD && !b.carrier }

// updateCarrier makes the bond's carrier what its slaves say: up while the link
// of one is.
func (b *Bond) updateCarrier(now instant) {
	carrier := b.hasCarrier()
	if carrier == b.carrier {
		return
	}
	b.carrier = carrier
	b.dirty = true
	b.carrierEvent(carrier)
	b.later(b.stateSubs.call)
	if carrier && b.dispatcher != nil && (b.config.mode != IEEE8023AD || b.anyDistributes()) {
		// Neighbours may have forgotten us, or moved us to another port.
		b.notify.start(b.config.numPeerNotif, now)
	}
}

// receiveOnBackups applies all_slaves_active to the slaves that are backups
// now.
func (b *Bond) receiveOnBackups() {
	for _, s := range b.slaves {
		if s.backup || b.config.mode.balances() && s != b.active {
			s.rxInactive = !b.config.allSlavesActive
		}
	}
}
