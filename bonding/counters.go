package bonding

import (
	"sync/atomic"

	"bondstack/bonding/rcu"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// dropReason is why a frame was not sent or not delivered.
type dropReason uint8

const (
	dropTxNoSlave      dropReason = iota // no slave was there to send by
	dropTxNoBuffer                       // the slave had no room
	dropTxLinkGone                       // the slave's link was gone, and no other took it
	dropTxMalformed                      // a GSO packet that cannot be cut
	dropTxError                          // the slave returned another error
	dropTxSilenced                       // the slave is silenced by Cut
	dropRxShort                          // shorter than an Ethernet header
	dropRxNotMember                      // came while the slave was joining or leaving
	dropRxNoNIC                          // no NIC has the bond
	dropRxInactive                       // the slave is a backup
	dropRxOwn                            // our own frame came back
	dropRxOtherHost                      // for another host's address
	dropRxCopy                           // another slave has delivered it
	dropRxChecksum                       // wrong checksum
	dropRxSilenced                       // the slave is silenced by Cut
	dropRxControlFlood                   // more control frames than a partner can have reason for
	numDropReasons
)

var dropNames = [numDropReasons]string{
	"tx_no_slave", "tx_no_buffer", "tx_link_gone", "tx_malformed", "tx_error", "tx_silenced",
	"rx_short", "rx_not_member", "rx_no_nic", "rx_inactive", "rx_own", "rx_other_host", "rx_copy", "rx_checksum", "rx_silenced", "rx_control_flood",
}

// inError reports whether a frame dropped for this reason was lost. The others
// were not for the bond, or not by this slave: every switch floods some.
func (r dropReason) inError() bool {
	switch r {
	case dropRxInactive, dropRxOwn, dropRxOtherHost, dropRxCopy:
		return false
	}
	return true
}

// String returns the reason's name in the status.
func (r dropReason) String() string { return dropNames[r] }

// dropCounters counts frames that were dropped, by reason. Drops are rare, so
// they are not striped.
type dropCounters [numDropReasons]atomic.Uint64

func (d *dropCounters) add(r dropReason, n int) { d[r].Add(uint64(n)) }

// slaveCounters counts what passes one slave. Transmission is counted in
// stripes, as read sections are, since many goroutines send at once; reception
// is mostly one goroutine's.
type slaveCounters struct {
	_     [128]byte // what lies before is read by all
	tx    [rcu.Stripes]txCounter
	rx    rxCounter
	drops dropCounters
	gone  atomic.Bool // a report of a failed write is on its way
	// goneAt is when that write failed, rescuedAt when another slave sent in
	// place of this one for the first time since; instants.
	goneAt, rescuedAt atomic.Int64
}

// txCounter fills two cache lines: see rcu.
type txCounter struct {
	tally
	_ [96]byte
}

type rxCounter struct {
	tally
	multicast atomic.Uint64
	_         [88]byte
}

// sent counts the first n packets of a list.
func (c *slaveCounters) sent(pkts stack.PacketBufferList, n int, stripe uint32) {
	if n <= 0 {
		return
	}
	bytes := 0
	for _, pkt := range pkts.AsSlice()[:n] {
		bytes += pkt.Size()
	}
	c.tx[stripe].add(n, bytes)
}

// received counts a frame of a size that counts the Ethernet header.
func (c *slaveCounters) received(size int) { c.rx.add(1, size) }

// frames returns how many frames were received.
func (c *slaveCounters) frames() uint64 {
	n, _ := c.rx.load()
	return n
}

func (c *slaveCounters) drop(r dropReason, n int) { c.drops.add(r, n) }

// transmitted sums the stripes.
func (c *slaveCounters) transmitted() (packets, bytes uint64) {
	for i := range c.tx {
		p, b := c.tx[i].load()
		packets += p
		bytes += b
	}
	return packets, bytes
}

// totals is a sum of counters.
type totals struct {
	txPackets, txBytes, rxPackets, rxBytes, rxMulticast uint64
	drops                                               [numDropReasons]uint64
}

// add adds what a slave has counted.
func (t *totals) add(s *slave) {
	c := &s.counters
	packets, bytes := c.transmitted()
	t.txPackets += packets
	t.txBytes += bytes
	packets, bytes = c.rx.load()
	t.rxPackets += packets
	t.rxBytes += bytes
	t.rxMulticast += c.rx.multicast.Load()
	t.addDrops(&c.drops)
}

func (t *totals) addDrops(d *dropCounters) {
	for i := range d {
		t.drops[i] += d[i].Load()
	}
}

// dropMap returns the drops by reason, those of zero too, so that every reason
// is seen.
func (t *totals) dropMap() map[string]uint64 {
	m := make(map[string]uint64, numDropReasons)
	for i, n := range t.drops {
		m[dropReason(i).String()] = n
	}
	return m
}
