package packet

import "sync/atomic"

// Stats counts what an endpoint did since it was made. Counters only grow.
type Stats struct {
	// TXPackets and TXBytes are the frames that the kernel took, and their
	// bytes with the Ethernet header. A frame of 64 KiB counts once.
	TXPackets, TXBytes uint64
	// TXDroppedNoBuffer counts frames dropped since the socket's send buffer
	// or the interface's queue was full and stayed so for a few attempts.
	TXDroppedNoBuffer uint64
	// TXRefusedDown counts frames that were not taken since the interface was
	// down or gone. Whoever sent them was told and may use another link.
	TXRefusedDown uint64
	// TXDroppedInvalid counts frames that the kernel would not take: longer
	// than the interface's MTU, without a whole Ethernet header, with
	// segmentation data that make no sense.
	TXDroppedInvalid uint64

	// RXPackets and RXBytes are the frames delivered, and their bytes with the
	// Ethernet header.
	RXPackets, RXBytes uint64
	// RXDroppedAddress counts unicast frames for other addresses.
	RXDroppedAddress uint64
	// RXDroppedChecksum counts frames with a wrong IPv4 header, TCP or UDP
	// checksum.
	RXDroppedChecksum uint64
	// RXDroppedMalformed counts frames without a whole Ethernet header.
	RXDroppedMalformed uint64
	// RXDroppedOversize counts frames longer than 64 KiB and some headers.
	RXDroppedOversize uint64
	// RXDroppedUnattached counts frames that came while nothing was attached.
	RXDroppedUnattached uint64
	// RXDroppedKernel counts frames that the kernel dropped since the socket's
	// receive buffer was full.
	RXDroppedKernel uint64
	// RXErrors counts errors of the sockets while receiving, such as that the
	// interface went down. No frame is lost by the error itself.
	RXErrors uint64

	// Reopened counts how often the sockets were opened anew on an interface
	// that came back.
	Reopened uint64
}

// txCounters are written by senders.
type txCounters struct {
	packets, bytes, noBuffer, down, invalid atomic.Uint64
}

// rxCounters are written by receivers, once a batch.
type rxCounters struct {
	packets, bytes, address, checksum, malformed, oversize, unattached, kernel, errors atomic.Uint64
}

// counters are the live ones. The padding keeps senders and receivers from
// sharing a cache line.
type counters struct {
	tx       txCounters
	_        [64]byte
	rx       rxCounters
	_        [64]byte
	reopened atomic.Uint64
}

// snapshot returns the counters as they are now.
func (c *counters) snapshot() Stats {
	return Stats{
		TXPackets:           c.tx.packets.Load(),
		TXBytes:             c.tx.bytes.Load(),
		TXDroppedNoBuffer:   c.tx.noBuffer.Load(),
		TXRefusedDown:       c.tx.down.Load(),
		TXDroppedInvalid:    c.tx.invalid.Load(),
		RXPackets:           c.rx.packets.Load(),
		RXBytes:             c.rx.bytes.Load(),
		RXDroppedAddress:    c.rx.address.Load(),
		RXDroppedChecksum:   c.rx.checksum.Load(),
		RXDroppedMalformed:  c.rx.malformed.Load(),
		RXDroppedOversize:   c.rx.oversize.Load(),
		RXDroppedUnattached: c.rx.unattached.Load(),
		RXDroppedKernel:     c.rx.kernel.Load(),
		RXErrors:            c.rx.errors.Load(),
		Reopened:            c.reopened.Load(),
	}
}

// activity returns a number that grows with every frame sent, refused or
// received.
func (c *counters) activity() uint64 {
	return c.tx.packets.Load() + c.tx.down.Load() + c.rx.packets.Load()
}
