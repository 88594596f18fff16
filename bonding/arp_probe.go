package bonding

import (
	"net/netip"
	"slices"
	"strings"

	"bondstack/bonding/probe"
	"bondstack/link"
)

// probeOrder says by which slave probes go out, and as whom.
type probeOrder struct {
	slave    *slave
	evidence *evidence
	mac      probe.MAC
}

// queueProbes has the probes sent that a pass asked for, once the lock is free:
// the stack is asked for the ways, and slaves are written to.
func (b *Bond) queueProbes() {
	if len(b.arp.due) == 0 {
		return
	}
	orders := make([]probeOrder, 0, len(b.arp.due))
	for _, s := range b.arp.due {
		if !s.released && len(s.mac) == len(probe.MAC{}) {
			orders = append(orders, probeOrder{s, s.evidence, probe.MAC([]byte(s.mac))})
		}
	}
	b.arp.due = nil
	targets, at := b.config.arp.targets, b.arp.looked
	b.later(func() { b.sendProbes(orders, targets, at) })
}

// sendProbes asks every target by every slave of the orders.
func (b *Bond) sendProbes(orders []probeOrder, targets probe.Targets, at instant) {
	ways := b.waysTo(targets)
	b.noteSources(ways)
	for _, o := range orders {
		if !o.slave.probing.CompareAndSwap(false, true) {
			o.slave.counters.drop(dropTxNoBuffer, len(ways)) // the endpoint still holds the last ones
			continue
		}
		for _, w := range ways {
			o.evidence.tx.Store(int64(at))
			o.slave.sendProbe(o.frame(w))
		}
		o.slave.probing.Store(false)
	}
}

// way is how one target is reached.
type way struct {
	target netip.Addr
	link.Way
}

// noteSources keeps the addresses that the probes come from, for the data path,
// and warns of the targets that are asked from none: with arp_validate what they
// answer does not count.
func (b *Bond) noteSources(ways []way) {
	var sources, unrouted []netip.Addr
	for _, w := range ways {
		switch {
		case !w.Source.IsValid():
			unrouted = append(unrouted, w.target)
		case !slices.Contains(sources, w.Source):
			sources = append(sources, w.Source)
		}
	}
	b.arp.sources.Store(&sources)
	if was := b.arp.unrouted.Swap(&unrouted); was != nil && slices.Equal(*was, unrouted) || was == nil && len(unrouted) == 0 {
		return
	}
	b.control(func(instant) {
		if len(unrouted) > 0 && b.config.arp.validate != ValidateNone {
			b.warn("no route to %s: probes go out from no address, and answers to them do not count", strings.Join(addressTexts(unrouted), ", "))
		}
	})
}

// waysTo asks the stack how the targets are reached. Those that it reaches by
// another link are left out. One that it has no way to is asked all the same,
// from no address, as in Linux.
func (b *Bond) waysTo(targets probe.Targets) []way {
	routes := b.stackRoutes()
	var ways []way
	for _, list := range [][]netip.Addr{targets.V4, targets.V6} {
		for _, a := range list {
			w := way{target: a}
			if routes != nil {
				found, ok := routes.Route(a)
				if !ok {
					continue
				}
				w.Way = found
			}
			ways = append(ways, w)
		}
	}
	return ways
}

// frame builds the probe of a target.
func (o *probeOrder) frame(w way) []byte {
	tags := make([]probe.Tag, min(len(w.Tags), probe.MaxTags))
	for i := range tags {
		tags[i] = probe.Tag(w.Tags[i])
	}
	if w.target.Is4() {
		return probe.ARPRequest(o.mac, w.Source, w.target, tags)
	}
	return probe.Solicitation(o.mac, w.Source, w.target, tags)
}

// sendProbe sends one probe past the mode.
func (s *slave) sendProbe(frame []byte) {
	switch err := s.writeControl(frame); {
	case err == nil:
	case link.Gone(err):
		s.counters.drop(dropTxLinkGone, 1)
		s.bond.linkGone(s)
	default:
		s.counters.drop(dropReasonOf(err), 1)
	}
}
