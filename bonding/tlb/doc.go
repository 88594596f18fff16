// Package tlb decides by which slave each flow leaves in Linux's modes
// balance-tlb and balance-alb. It is pure: no I/O, no clock, no lock.
//
// Flows are sorted into the 256 entries of a Table by a hash. The first packet
// of an entry assigns it to the slave that is least loaded for its speed; later
// ones follow it and are counted. After a period (ten seconds, in Linux) the
// owner asks for the Next table, which knows from those counts how much each
// entry carries, and places the heavy ones anew where that evens the load.
//
//	t := tlb.New()
//	among := []tlb.Candidate{{tlb.NewMember(0), 1000}, {tlb.NewMember(0), 10000}}
//	i := t.Pick(hash, size, among) // the packet goes by the slave of among[i]
//
// # Who owns what
//
// A Table and its Members are those of one period. Pick may be called from any
// number of goroutines, with no lock: an entry's member and its bytes are
// atomics, an assignment is one compare-and-swap, and who wins it adds the entry
// to the member's load. Next changes nothing of the old table but reads it, and
// fills a new one, with new members, before anybody else sees it. So a writer
// that still has the old table cannot disturb the new one's sums; what it counts
// after Next has read is lost to the statistics, and nothing else.
//
// Release may run beside Pick. A Pick that began before may assign an entry to
// the released member once more; that does no harm, since the next Pick whose
// candidates lack the member assigns the entry anew.
//
// # Beside Linux
//
// Linux computes the gap between a slave's speed and its load in 32 bits, which
// wrap: 25 Gbit/s look slower than 1. It takes the slave of the greatest gap, so
// that slow links carry nothing until the fast ones are nearly full, and counts
// a new flow for nothing, so that all flows of a new bond go by its first slave
// for ten seconds. Here load is measured against speed, a new flow counts as an
// average one, and a rebalance places the heaviest flows first, but leaves all
// where it is when that is about as even.
package tlb
