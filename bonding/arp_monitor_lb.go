package bonding

// passBalanced is a pass in the modes that send by several slaves: each slave is
// probed in each interval, and has to hear on its own.
func (b *Bond) passBalanced(t arpTiming, now instant) {
	proposals := make([]linkState, len(b.slaves))
	for i, s := range b.slaves {
		proposals[i] = b.say(s, monitorARP, t.judgeBalanced(b.sight(s)))
		if s.usable() {
			b.arp.due = append(b.arp.due, s)
		}
	}
	b.settleByEvidence(proposals, now)
	for _, s := range b.slaves {
		if s.link == linkDown && !s.backup {
			s.backup, b.dirty = true, true
		}
	}
}
