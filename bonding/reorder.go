package bonding

import (
	"time"

	"bondstack/bonding/reorder"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// reordering is the stage that restores the order of TCP streams: rx_reorder.
// What is counted outlives the stages.
type reordering struct {
	// stage, made with limits, is nil while the option is off. Bond.mu guards
	// all but counters.
	stage    *reorder.Stage
	limits   reorderLimits
	links    uint32 // that may deliver, as told the stage last
	counters reorder.Counters
}

// reorderLimits are the options rx_reorder_hold, rx_reorder_bytes and
// rx_reorder_flows.
type reorderLimits struct {
	hold  time.Duration
	bytes uint32
	flows uint32
}

// reorders reports whether the order of streams is to be restored.
func (c *config) reorders() bool {
	return c.rxReorder == ReorderOn || c.rxReorder == ReorderAuto && c.mode == BalanceRR
}

// updateReorder makes, replaces or ends the stage, and tells it of links that
// deliver no more. What a stage delivers thereby goes up with no lock held. There
// is a stage only where it can have work: while a NIC has the bond, since there
// were two slaves.
func (b *Bond) updateReorder() {
	r := &b.reordering
	want := b.config.reorders() && b.dispatcher != nil && (len(b.slaves) > 1 || r.stage != nil)
	if old := r.stage; old != nil && (!want || r.limits != b.config.reorderLimits) {
		r.stage, b.dirty = nil, true
		b.later(old.Close)
	}
	if want && r.stage == nil {
		r.limits, r.links = b.config.reorderLimits, 0
		r.stage, b.dirty = reorder.New(reorder.Options{
			Deliver: b.deliverInOrder, Clock: b.clock, Counters: &r.counters, Seed: b.options.Rand(),
			Hold: r.limits.hold, Bytes: int(r.limits.bytes), Flows: int(r.limits.flows),
		}), true
	}
	if r.stage == nil {
		return
	}
	links := b.deliveringLinks()
	if lost := r.links &^ links; lost != 0 {
		stage := r.stage
		b.later(func() { stage.Gone(lost) })
	}
	r.links = links
}

// deliveringLinks are the slots of the slaves whose frames may come, of those
// too that are leaving and not yet detached.
func (b *Bond) deliveringLinks() uint32 {
	var links uint32
	add := func(s *slave) {
		if s.slot < reorder.MaxLinks && s.usable() {
			links |= 1 << s.slot
		}
	}
	for _, s := range b.slaves {
		add(s)
	}
	for _, s := range b.leaving {
		if s.apart.Load() != nil {
			add(s)
		}
	}
	return links
}

// deliverInOrder gives the NIC a frame whose turn has come.
func (b *Bond) deliverInOrder(pkt *stack.PacketBuffer) {
	s := b.snap.Load()
	if s.dispatcher == nil {
		b.drops.add(dropRxNoNIC, 1) // it left while the frame was held
		return
	}
	s.dispatcher.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
}

// ReorderStatus is what the restoring of the order of TCP streams holds at one
// moment, and what it has done while the bond lived.
type ReorderStatus struct {
	// On is whether it is at work: rx_reorder is on, or auto in balance-rr, a NIC
	// has the bond, and there were two slaves since.
	On bool `json:"on"`
	reorder.State
	reorder.Counts
}

// reorderStatus returns nil where the stage has never done anything.
func (b *Bond) reorderStatus() *ReorderStatus {
	st := ReorderStatus{On: b.reordering.stage != nil, Counts: b.reordering.counters.Counts()}
	if st.On {
		st.State = b.reordering.stage.State()
	}
	if !st.On && st.Counts == (reorder.Counts{}) {
		return nil
	}
	return &st
}
