package bonding

import "gvisor.dev/gvisor/pkg/tcpip/stack"

// WriteBroadcastNeighbor writes as 802.3ad does with broadcast_neighbor, by a
// bond that needs no partners.
func WriteBroadcastNeighbor(b *Bond, pkts stack.PacketBufferList) {
	writeBroadcastNeighbor(b.snap.Load(), pkts, 0)
}

// WriteXOR is the same without broadcast_neighbor.
func WriteXOR(b *Bond, pkts stack.PacketBufferList) {
	writeBalanceXOR(b.snap.Load(), pkts, 0)
}

// CaptureForTest captures a packet as the data path does, and reads what waits.
func CaptureForTest(c *Capture, pkt *stack.PacketBuffer) {
	record([]*Capture{c}, nil, true, pkt)
	for c.ring.next() != nil {
	}
}
