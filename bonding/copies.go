package bonding

import (
	"sync/atomic"
	"time"

	"bondstack/bonding/dedup"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// epochLength is how long a frame that one slave delivered is waited for on the
// others: more than the delays of two slaves can differ.
const epochLength = 500 * time.Millisecond

// copies finds the frames that another slave has delivered already: rx_dedup.
// The control side counts its epochs.
type copies struct {
	table *dedup.Table
	epoch atomic.Uint32
	due   instant // of the next epoch; guarded by Bond.mu
}

// isCopy notes a frame of a slave, and reports whether it is to be discarded.
func (c *copies) isCopy(slot int, eth []byte, pkt *stack.PacketBuffer) bool {
	return c.table.Copy(slot, c.table.Key(eth, pkt), c.epoch.Load())
}

// updateCopies makes, drops and ages the table of frames seen.
func (b *Bond) updateCopies(now instant) {
	switch want := b.config.dedup(); {
	case want && b.copies == nil:
		b.copies = &copies{table: dedup.New(dedup.Options{})}
		b.dirty = true
	case !want && b.copies != nil:
		b.copies = nil
		b.dirty = true
	}
	switch c := b.copies; {
	case c == nil:
	case b.dispatcher == nil:
		c.due = 0
	case now >= c.due:
		c.epoch.Add(1)
		c.due = now.add(epochLength)
	}
}
