package bonding

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"bondstack/bonding/probe"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// never is a moment before all others.
const never = -instant(longest)

// evidence is what a slave has heard since the control side looked last. The
// data path writes it; the control side looks twice in each arp_interval. That
// bounds what a flood costs: once a target was heard, its further frames up to
// the next look need one load each.
//
// Evidence of frames that are not validated has no clock: the control side sees
// that some came between two looks, and takes the first look for when. As it
// looks each half interval, and each limit of the monitor is a whole number of
// intervals and a half after a frame, no decision comes out otherwise than it
// would with the exact time.
type evidence struct {
	heard atomic.Uint64             // by slot; bit filtered for frames that only have to be ARP or IPv6
	at    [probe.Slots]atomic.Int64 // when a target was heard first since the last look
	asked atomic.Int32              // questions to the stack since the last look
	tx    atomic.Int64              // when the last probe was sent
}

const (
	filtered = probe.Slots // a bit of evidence.heard

	// maxQuestions bounds how often the stack is asked whether an address is
	// its own. Answers to our own probes need no question.
	maxQuestions = 32
)

func newEvidence() *evidence {
	e := &evidence{}
	e.tx.Store(int64(never))
	return e
}

func (e *evidence) has(slot int) bool { return e.heard.Load()&(1<<slot) != 0 }

// arpWatch is what the data path needs to know of the ARP monitor: a part of the
// snapshot, nil where frames need no look.
type arpWatch struct {
	bond      *Bond
	targets   probe.Targets
	slaves    []watchedSlave // by slot
	proven    bool           // probe.Standing.Proven
	candidate *evidence      // of the slave that is being tried
	timing    arpTiming
}

type watchedSlave struct {
	slave    *slave
	evidence *evidence
	mac48    uint64
	active   bool // or of a mode in which each slave is probed
	validate bool
	filter   bool
}

// look takes a received frame for evidence, if it is any. It is called for every
// frame, before anything is dropped.
func (w *arpWatch) look(from *slave, protocol tcpip.NetworkProtocolNumber, eth []byte, pkt *stack.PacketBuffer) {
	switch protocol {
	case header.ARPProtocolNumber, probe.TypeVLAN, probe.TypeQinQ:
	case header.IPv6ProtocolNumber:
		if len(w.targets.V6) == 0 && (from.slot >= len(w.slaves) || !w.slaves[from.slot].filter) {
			return
		}
	default:
		return
	}
	if from.slot >= len(w.slaves) || w.slaves[from.slot].slave != from {
		return
	}
	s := &w.slaves[from.slot]
	if s.filter && s.evidence.has(filtered) || !s.filter && !s.validate {
		return
	}
	payload, ok := pkt.Data().PullUp(min(pkt.Data().Size(), probe.Peek))
	if !ok {
		return
	}
	if s.validate {
		w.validate(s, protocol, eth, payload)
		return
	}
	if inner, _, ok := probe.Inner(uint16(protocol), payload); ok && (inner == probe.TypeARP || inner == probe.TypeIPv6) {
		s.evidence.heard.Or(1 << filtered)
	}
}

// validate notes when a target was heard.
func (w *arpWatch) validate(s *watchedSlave, protocol tcpip.NetworkProtocolNumber, eth, payload []byte) {
	if dst := mac48(eth); dst&groupBit == 0 && dst != s.mac48 {
		return // for another host
	}
	m, ok := probe.Parse(uint16(protocol), payload)
	if !ok {
		return
	}
	standing := probe.Standing{Active: s.active, Proven: w.proven}
	if !s.active && !w.proven && w.candidate != nil {
		standing.Asked = w.timing.at(w.bond.now()).fresh(instant(w.candidate.tx.Load()), 1)
	}
	target, ours, ok := m.Witness(standing)
	if !ok {
		return
	}
	slot, ok := w.targets.Slot(target)
	if !ok || s.evidence.has(slot) || !w.isOurs(s, ours) {
		return
	}
	s.evidence.at[slot].Store(int64(w.bond.now()))
	s.evidence.heard.Or(1 << slot)
}

// isOurs reports whether an address is one of the stack's on the bond.
func (w *arpWatch) isOurs(s *watchedSlave, a netip.Addr) bool {
	if probe.IsAllNodes(a) {
		return true
	}
	if known := w.bond.arp.sources.Load(); known != nil && slices.Contains(*known, a) {
		return true
	}
	if a.IsUnspecified() || s.evidence.asked.Load() >= maxQuestions {
		return false
	}
	s.evidence.asked.Add(1)
	routes := w.bond.stackRoutes()
	return routes != nil && routes.Owns(a)
}

// watch builds what the data path needs; nil while no frame has to be looked at.
func (b *Bond) watch() *arpWatch {
	c := &b.config.arp
	if b.arp.next == 0 || c.validate == ValidateNone {
		return nil
	}
	w := &arpWatch{bond: b, targets: c.targets, proven: b.activeProven(), timing: b.arpTiming(0)}
	b.arp.proven = w.proven
	if b.arp.candidate != nil {
		w.candidate = b.arp.candidate.evidence
	}
	for _, s := range b.slaves {
		for len(w.slaves) <= s.slot {
			w.slaves = append(w.slaves, watchedSlave{})
		}
		validate := c.validate.covers(s.backup)
		w.slaves[s.slot] = watchedSlave{slave: s, evidence: s.evidence, mac48: mac48([]byte(s.mac)),
			active: !s.backup || b.config.mode != ActiveBackup, validate: validate, filter: !validate && c.validate.filters()}
	}
	return w
}
