package vlan

import (
	"encoding/binary"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// peekSize is how much of a frame shows whether it has a path's tags, and where
// its link header ends: both addresses, the path's tags, those of a device above
// a bond above, and the type.
const peekSize = addressesSize + 2*maxTags*tagSize + 2

// firstBytes returns the beginning of a packet, in place where one view holds
// enough of it, else copied to room. It changes nothing in the packet, which
// several goroutines may read.
func firstBytes(pkt *stack.PacketBuffer, room *[peekSize]byte) []byte {
	views, offset := pkt.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		if offset < v.Size() {
			if b := v.AsSlice()[offset:]; len(b) >= len(room) {
				return b
			}
			break
		}
		offset -= v.Size()
	}
	return room[:copyFrom(room[:], pkt, 0)]
}

// copyFrom copies a packet's bytes from a place on, and returns their number. It
// changes nothing in the packet.
func copyFrom(dst []byte, pkt *stack.PacketBuffer, at int) int {
	n := 0
	views, offset := pkt.AsViewList()
	offset += at
	for v := views.Front(); v != nil && n < len(dst); v = v.Next() {
		if offset >= v.Size() {
			offset -= v.Size()
			continue
		}
		n += copy(dst[n:], v.AsSlice()[offset:])
		offset = 0
	}
	return n
}

// linkSize returns the size of the link header at the beginning of a frame: that
// of Ethernet with what tags there are.
func linkSize(b []byte) int {
	n := ethernetSize
	for n+tagSize <= len(b) && isTag(binary.BigEndian.Uint16(b[n-2:])) {
		n += tagSize
	}
	return n
}

// taggedPool holds lists that are used again.
var taggedPool = sync.Pool{New: func() any { return new(stack.PacketBufferList) }}

// writeTagged writes a list in which some packets have not the path's tags. It
// returns how many packets of the list were taken. A packet without a whole link
// header is dropped and counted, and counts as taken.
func (d *Device) writeTagged(pkts stack.PacketBufferList) (int, tcpip.Error) {
	tagged := taggedPool.Get().(*stack.PacketBufferList)
	defer func() {
		tagged.Reset() // drops the references
		taggedPool.Put(tagged)
	}()
	list := pkts.AsSlice()
	for _, pkt := range list {
		var room [peekSize]byte
		switch b := firstBytes(pkt, &room); {
		case len(b) < ethernetSize:
			d.trunk.stats.short.Add(1)
		case bears(b, d.path):
			tagged.PushBack(pkt.IncRef())
		default:
			tagged.PushBack(d.tagged(pkt, linkSize(b)))
		}
	}
	if tagged.Len() == 0 {
		return len(list), nil
	}
	n, err := d.trunk.root.WritePackets(*tagged)
	if n == tagged.Len() {
		return len(list), err
	}
	for i, pkt := range list { // where the first that was not taken is
		if pkt.Size() < ethernetSize {
			continue
		}
		if n == 0 {
			return i, err
		}
		n--
	}
	return len(list), err
}

// tagged returns a copy of a packet with the path's tags behind its addresses. It
// shares the payload with pkt, of which link bytes are the link header. The other
// headers are one in the copy, the network header: links need to know where it
// begins, and where the payload does. The caller owns the reference.
func (d *Device) tagged(pkt *stack.PacketBuffer, link int) *stack.PacketBuffer {
	headers := max(link, pkt.HeaderSize())
	payload := pkt.ToBuffer()
	payload.TrimFront(int64(headers))
	tags := tagSize * len(d.path)
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: tags + headers + max(0, pkt.AvailableHeaderBytes()),
		Payload:            payload,
		Mark:               pkt.Mark,
	})
	p.NetworkProtocolNumber = pkt.NetworkProtocolNumber
	p.TransportProtocolNumber = pkt.TransportProtocolNumber
	p.Hash, p.Owner, p.GSOOptions, p.EgressRoute = pkt.Hash, pkt.Owner, pkt.GSOOptions, pkt.EgressRoute
	if headers > link {
		copyFrom(p.NetworkHeader().Push(headers-link), pkt, link)
	}
	b := p.LinkHeader().Push(link + tags)
	copyFrom(b[:addressesSize], pkt, 0)
	for i, device := range d.path {
		putTag(b[addressesSize+tagSize*i:], device.tag, device.priorityFor(p))
	}
	copyFrom(b[addressesSize+tags:], pkt, addressesSize)
	return p
}
