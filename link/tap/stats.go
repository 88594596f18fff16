package tap

import "sync/atomic"

// Stats counts what an endpoint did since it was made. Counters only grow.
type Stats struct {
	// TXPackets and TXBytes are the frames that the kernel took, and their
	// bytes with the Ethernet header. A frame of 64 KiB counts once.
	TXPackets, TXBytes uint64
	// TXDroppedNoBuffer counts frames that the kernel had no memory for.
	TXDroppedNoBuffer uint64
	// TXRefusedDown counts frames that were not taken since the device was
	// down or gone.
	TXRefusedDown uint64
	// TXDroppedInvalid counts frames that the kernel would not take: without a
	// whole Ethernet header, or with segmentation data that make no sense.
	TXDroppedInvalid uint64

	// RXPackets and RXBytes are the frames delivered, and their bytes with the
	// Ethernet header.
	RXPackets, RXBytes uint64
	// RXDroppedChecksum counts frames with a wrong checksum.
	RXDroppedChecksum uint64
	// RXDroppedMalformed counts frames without a whole Ethernet header, and
	// segmented datagrams that are none.
	RXDroppedMalformed uint64
	// RXDroppedOversize counts frames longer than 64 KiB and some headers.
	RXDroppedOversize uint64
	// RXDroppedUnattached counts frames that came while nothing was attached.
	RXDroppedUnattached uint64
	// RXDroppedKernel counts frames that the kernel dropped since the device's
	// queue (txqueuelen, 1000 frames) was full.
	RXDroppedKernel uint64
	// RXErrors counts errors while receiving. No frame is lost by the error
	// itself.
	RXErrors uint64
}

// txCounters are written by senders.
type txCounters struct {
	packets, bytes, noBuffer, down, invalid atomic.Uint64
}

// rxCounters are written by receivers, once a batch.
type rxCounters struct {
	packets, bytes, checksum, malformed, oversize, unattached, errors atomic.Uint64
}

// counters are the live ones. The padding keeps senders and receivers from
// sharing a cache line.
type counters struct {
	tx txCounters
	_  [64]byte
	rx rxCounters
}

// snapshot returns the counters as they are now, without the kernel's.
func (c *counters) snapshot() Stats {
	return Stats{
		TXPackets:           c.tx.packets.Load(),
		TXBytes:             c.tx.bytes.Load(),
		TXDroppedNoBuffer:   c.tx.noBuffer.Load(),
		TXRefusedDown:       c.tx.down.Load(),
		TXDroppedInvalid:    c.tx.invalid.Load(),
		RXPackets:           c.rx.packets.Load(),
		RXBytes:             c.rx.bytes.Load(),
		RXDroppedChecksum:   c.rx.checksum.Load(),
		RXDroppedMalformed:  c.rx.malformed.Load(),
		RXDroppedOversize:   c.rx.oversize.Load(),
		RXDroppedUnattached: c.rx.unattached.Load(),
		RXErrors:            c.rx.errors.Load(),
	}
}
