package bonding

// A link carries frames before its slave is a member, and after it was one: the
// other end sends for as long as it sees a link. So these are received as well,
// from the moment at which the endpoint is attached until it is detached.

// receiverOf returns how frames of a slave are received, nil where they are not.
func (s *snapshot) receiverOf(from *slave) *receiver {
	if from.slot < len(s.receivers) && s.receivers[from.slot].slave == from {
		return &s.receivers[from.slot]
	}
	return from.apart.Load()
}

// beginToReceive makes ready for the frames of a slave that is about to be
// attached: until it is a member they are received in the modes in which every
// slave receives. In the others it begins as one that does not.
func (b *Bond) beginToReceive(s *slave) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.copies != nil {
		b.copies.table.Forget(s.slot)
	}
	b.tap(s)
	switch b.config.mode {
	case BalanceRR, BalanceXOR, Broadcast:
		s.apart.Store(&receiver{slave: s})
	}
}

// leavingReceiver is for a slave that is about to be dismissed. Where another
// takes its place, and hears what is for all, it receives only what is for the
// bond or for itself. The bond's lock is held.
func (b *Bond) leavingReceiver(s *slave) *receiver {
	r := b.receiver(s)
	if b.config.mode.info().primary && !r.inactive {
		r.inactive, r.lingers, r.own48 = true, true, mac48([]byte(s.mac))
	}
	return &r
}
