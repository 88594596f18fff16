package bonding

import (
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// listPool has lists that are empty and keep their storage.
var listPool = sync.Pool{New: func() any { return new(stack.PacketBufferList) }}

// sendOwn sends a list by a slave, with the slave's own address as the source
// of what comes from the bond's. The active slave's own is the bond's.
//
// The packets are not ours to change: TCP, a packet socket or another slave may
// be reading them. So the slave is given clones, which share everything but the
// first bytes. Clones, their views and those bytes come from pools.
func (s *snapshot) sendOwn(to *slave, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	source := s.lb.sources[to.slot]
	if to == s.active || source == s.mac {
		return to.send(pkts, stripe)
	}
	list := listPool.Get().(*stack.PacketBufferList)
	for _, pkt := range pkts.AsSlice() {
		if sourceOf(pkt) == s.mac48 {
			list.PushBack(withSource(pkt, source))
		} else {
			list.PushBack(pkt.IncRef())
		}
	}
	n, err := to.send(*list, stripe)
	list.Reset() // drops the references
	listPool.Put(list)
	return n, err
}

const sourceOffset = 6

// sourceOf returns a packet's packed source address, 0 where it has none.
func sourceOf(pkt *stack.PacketBuffer) uint64 {
	if b := firstBytes(pkt); len(b) >= ethernetHeader {
		return mac48(b[sourceOffset:])
	}
	var buf [ethernetHeader]byte
	if gather(pkt, buf[:]) < ethernetHeader {
		return 0
	}
	return mac48(buf[sourceOffset:])
}

// withSource returns a clone of a packet with another source address. The
// packet has an Ethernet header.
func withSource(pkt *stack.PacketBuffer, source tcpip.LinkAddress) *stack.PacketBuffer {
	clone := pkt.Clone()
	views, offset := clone.AsViewList()
	overwrite(views.Front(), offset+sourceOffset, source)
	return clone
}

// overwrite writes bytes at an offset into a row of views. View.WriteAt copies
// what a view shares with others before it writes.
func overwrite(v *buffer.View, offset int, b tcpip.LinkAddress) {
	var bytes [6]byte
	rest := bytes[:copy(bytes[:], b)]
	for ; v != nil && len(rest) > 0; v = v.Next() {
		if offset >= v.Size() {
			offset -= v.Size()
			continue
		}
		n := min(len(rest), v.Size()-offset)
		v.WriteAt(rest[:n], offset)
		rest, offset = rest[n:], 0
	}
}
