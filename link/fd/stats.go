package fd

import "sync/atomic"

// Stats counts what an endpoint did since it was made. Counters only grow.
type Stats struct {
	// TXPackets and TXBytes are the frames that were taken, and their bytes
	// with the Ethernet header.
	TXPackets, TXBytes uint64
	// TXDroppedFull counts frames that the other side had no room for.
	TXDroppedFull uint64
	// TXRefusedDown counts frames that were not taken since the link was down
	// or gone.
	TXRefusedDown uint64
	// TXDroppedInvalid counts frames that are too long, or were not taken for
	// another reason of their own.
	TXDroppedInvalid uint64
	// RXPackets and RXBytes are the frames delivered.
	RXPackets, RXBytes uint64
	// RXDroppedMalformed counts frames without a whole Ethernet header.
	RXDroppedMalformed uint64
	// RXDroppedOversize counts frames longer than 64 KiB.
	RXDroppedOversize uint64
	// RXDroppedUnattached counts frames that came while nothing was attached.
	RXDroppedUnattached uint64
	// RXErrors counts errors while receiving.
	RXErrors uint64
}

// counters are the live ones. The padding keeps senders and the receiver from
// sharing a cache line.
type counters struct {
	txPackets, txBytes, txFull, txDown, txInvalid atomic.Uint64

	_ [64]byte

	rxPackets, rxBytes, rxMalformed, rxOversize, rxUnattached, rxErrors atomic.Uint64
}

// snapshot returns the counters as they are now.
func (c *counters) snapshot() Stats {
	return Stats{
		TXPackets:           c.txPackets.Load(),
		TXBytes:             c.txBytes.Load(),
		TXDroppedFull:       c.txFull.Load(),
		TXRefusedDown:       c.txDown.Load(),
		TXDroppedInvalid:    c.txInvalid.Load(),
		RXPackets:           c.rxPackets.Load(),
		RXBytes:             c.rxBytes.Load(),
		RXDroppedMalformed:  c.rxMalformed.Load(),
		RXDroppedOversize:   c.rxOversize.Load(),
		RXDroppedUnattached: c.rxUnattached.Load(),
		RXErrors:            c.rxErrors.Load(),
	}
}
