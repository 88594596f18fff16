package xdp

import "sync/atomic"

// Stats counts what an endpoint did since it was made. Counters only grow.
type Stats struct {
	// TXPackets and TXBytes are the frames handed to the kernel, and their
	// bytes with the Ethernet header.
	TXPackets, TXBytes uint64
	// TXDroppedNoBuffer counts frames dropped since all places for frames to
	// send were in use and stayed so for a few attempts.
	TXDroppedNoBuffer uint64
	// TXDroppedDevice counts frames that the kernel took and the driver then
	// dropped: its queue was full, or the carrier lost. They are in TXPackets.
	TXDroppedDevice uint64
	// TXRefusedDown counts frames that were not taken since the interface was
	// down or gone. Whoever sent them was told and may use
	// another link.
	TXRefusedDown uint64
	// TXDroppedInvalid counts frames longer than the MTU, without a whole
	// Ethernet header, or with checksum options that do not fit.
	TXDroppedInvalid uint64

	// RXPackets and RXBytes are the frames delivered, and their bytes with the
	// Ethernet header.
	RXPackets, RXBytes uint64
	// RXPartialChecksum counts frames that came with a partial checksum. They
	// were delivered, or dropped where Options.RefusePartial is set.
	RXPartialChecksum uint64
	// RXDroppedAddress counts unicast frames for other addresses.
	RXDroppedAddress uint64
	// RXDroppedChecksum counts frames with a wrong IPv4 header, TCP or UDP
	// checksum, and with RefusePartial those with a partial one.
	RXDroppedChecksum uint64
	// RXDroppedMalformed counts frames without a whole Ethernet header, and
	// what the kernel says that cannot be.
	RXDroppedMalformed uint64
	// RXDroppedUnattached counts frames that came while nothing was attached.
	RXDroppedUnattached uint64
	// RXDroppedRingFull counts frames that the kernel dropped since all places
	// held frames that the receiver had not looked at yet.
	RXDroppedRingFull uint64
	// RXDroppedKernel counts frames that the kernel dropped since they were
	// longer than a place; with zero-copy also where no place was free.
	RXDroppedKernel uint64

	// Reopened counts how often the sockets were opened anew on an interface
	// that came back.
	Reopened uint64
}

// txCounters are written by senders.
type txCounters struct {
	packets, bytes, noBuffer, device, down, invalid atomic.Uint64
}

// rxCounters are written by receivers, once a batch.
type rxCounters struct {
	packets, bytes, partial, address, checksum, malformed, unattached, ringFull, kernel atomic.Uint64
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
		TXDroppedDevice:     c.tx.device.Load(),
		TXRefusedDown:       c.tx.down.Load(),
		TXDroppedInvalid:    c.tx.invalid.Load(),
		RXPackets:           c.rx.packets.Load(),
		RXBytes:             c.rx.bytes.Load(),
		RXPartialChecksum:   c.rx.partial.Load(),
		RXDroppedAddress:    c.rx.address.Load(),
		RXDroppedChecksum:   c.rx.checksum.Load(),
		RXDroppedMalformed:  c.rx.malformed.Load(),
		RXDroppedUnattached: c.rx.unattached.Load(),
		RXDroppedRingFull:   c.rx.ringFull.Load(),
		RXDroppedKernel:     c.rx.kernel.Load(),
		Reopened:            c.reopened.Load(),
	}
}

// activity returns a number that grows with every frame sent, refused or
// received.
func (c *counters) activity() uint64 {
	return c.tx.packets.Load() + c.tx.down.Load() + c.rx.packets.Load()
}
