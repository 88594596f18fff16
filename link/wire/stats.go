package wire

import "sync/atomic"

// Stats counts the frames of one end since it was made. A frame with GSO counts
// as one. Sizes include the Ethernet header.
type Stats struct {
	// TxFrames and TxBytes count the frames that this end sent and that were
	// taken by the wire.
	TxFrames, TxBytes uint64
	// RxFrames and RxBytes count the frames delivered to this end's
	// dispatcher.
	RxFrames, RxBytes uint64

	// Tx counts the frames that this end wrote and that the wire did not take.
	Tx TxDrops
	// Impaired counts what impairments did to frames that this end sent. They
	// count in TxFrames too.
	Impaired Impaired
	// Rx counts the frames that reached this end and were not delivered.
	Rx RxDrops
}

// TxDrops counts frames that an end wrote and that the wire did not take.
type TxDrops struct {
	// Down counts writes, by frame, while the end was administratively down.
	Down uint64
	// Closed counts writes, by frame, after the end was closed.
	Closed uint64
	// NoCarrier counts frames written while there was no carrier.
	NoCarrier uint64
	// Short counts frames shorter than an Ethernet header (14 bytes).
	Short uint64
	// Oversize counts frames longer than the MTU allows.
	Oversize uint64
	// QueueFull counts frames refused with ErrNoBufferSpace.
	QueueFull uint64
}

// Impaired counts what impairments did to the frames that an end sent.
type Impaired struct {
	// Cut and Lost count frames dropped.
	Cut, Lost uint64
	// Duplicated counts the copies added, Corrupted the frames with a bit
	// turned, Reordered the frames held back.
	Duplicated, Corrupted, Reordered uint64
}

// RxDrops counts frames that reached an end and were not delivered.
type RxDrops struct {
	// Down counts frames that arrived while the end was administratively down.
	Down uint64
	// Closed counts frames that waited or arrived when the end was closed.
	Closed uint64
	// Unattached counts frames that arrived while no dispatcher was attached.
	Unattached uint64
	// Filtered counts unicast frames for other addresses.
	Filtered uint64
	// Oversize counts frames longer than this end's MTU allows.
	Oversize uint64
	// QueueFull counts frames that found this end's queue full behind an
	// impairment, when the writer could no longer be told.
	QueueFull uint64
}

// counters are the live Stats of an end.
type counters struct {
	txFrames, txBytes                                  atomic.Uint64
	txDown, txClosed, txNoCarrier, txShort, txOversize atomic.Uint64
	txQueueFull                                        atomic.Uint64
	cut, lost, duplicated, corrupted, reordered        atomic.Uint64
	_                                                  [64]byte // what the receiver writes is on other cache lines
	rxFrames, rxBytes                                  atomic.Uint64
	rxDown, rxClosed, rxUnattached, rxFiltered         atomic.Uint64
	rxOversize, rxQueueFull                            atomic.Uint64
}

// Stats returns the counters now. Each is exact by itself; together they are not
// of one instant while frames flow.
func (e *Endpoint) Stats() Stats {
	c := &e.stats
	return Stats{
		TxFrames: c.txFrames.Load(),
		TxBytes:  c.txBytes.Load(),
		RxFrames: c.rxFrames.Load(),
		RxBytes:  c.rxBytes.Load(),
		Tx: TxDrops{
			Down:      c.txDown.Load(),
			Closed:    c.txClosed.Load(),
			NoCarrier: c.txNoCarrier.Load(),
			Short:     c.txShort.Load(),
			Oversize:  c.txOversize.Load(),
			QueueFull: c.txQueueFull.Load(),
		},
		Impaired: Impaired{
			Cut:        c.cut.Load(),
			Lost:       c.lost.Load(),
			Duplicated: c.duplicated.Load(),
			Corrupted:  c.corrupted.Load(),
			Reordered:  c.reordered.Load(),
		},
		Rx: RxDrops{
			Down:       c.rxDown.Load(),
			Closed:     c.rxClosed.Load(),
			Unattached: c.rxUnattached.Load(),
			Filtered:   c.rxFiltered.Load(),
			Oversize:   c.rxOversize.Load(),
			QueueFull:  c.rxQueueFull.Load(),
		},
	}
}
