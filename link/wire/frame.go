package wire

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	ethernetSize = header.EthernetMinimumSize
	// vlanTagSize is what an IEEE 802.1Q tag adds to a frame beyond the MTU.
	vlanTagSize = 4
	maxTags     = 2      // in a frame, as IEEE 802.1ad has them
	typeVLAN    = 0x8100 // IEEE 802.1Q customer tag
	typeSVLAN   = 0x88a8 // IEEE 802.1Q service tag
)

// ownHeaderSize is how many bytes of a frame whose headers nobody has parsed are
// copied: enough for Ethernet with a tag (18), IPv6 (40) and TCP with all
// options (60). Frames up to this size are copied whole.
const ownHeaderSize = 128

// copyFrame returns a new packet, with one reference, that holds the bytes of
// pkt as a link receives them: no header parsed. The memory of its headers is its
// own and in one piece; that of the payload is shared with pkt.
func copyFrame(pkt *stack.PacketBuffer, size int) *stack.PacketBuffer {
	own := pkt.HeaderSize()
	if own < ownHeaderSize && len(pkt.TransportHeader().Slice()) == 0 || size <= ownHeaderSize {
		own = ownHeaderSize
	}
	own = min(own, size)
	views, skip := pkt.AsViewList()
	head := buffer.NewView(own)
	var frame buffer.Buffer
	for v := views.Front(); v != nil; v = v.Next() {
		n := v.Size()
		if skip >= n {
			skip -= n
			continue
		}
		if own > 0 {
			part := v.AsSlice()[skip:]
			part = part[:min(own, len(part))]
			head.Write(part) // never short: head has room for own bytes
			own -= len(part)
			skip += len(part)
			if skip == n {
				skip = 0
				continue
			}
		}
		rest := v.Clone()
		rest.TrimFront(skip)
		skip = 0
		frame.Append(rest) // the error is always nil: rest is not nil
	}
	frame.Prepend(head)
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: frame})
	p.GSOOptions = pkt.GSOOptions
	p.Hash = pkt.Hash
	return p
}

// linkSize returns the length of a frame's link header: that of Ethernet, and up
// to two tags. frame is one that copyFrame made.
func linkSize(frame *stack.PacketBuffer) int {
	n := ethernetSize
	for range maxTags {
		b, ok := frame.Data().PullUp(n + vlanTagSize)
		if !ok {
			break
		}
		if typ := binary.BigEndian.Uint16(b[n-2:]); typ != typeVLAN && typ != typeSVLAN {
			break
		}
		n += vlanTagSize
	}
	return n
}

// etherType returns the type field of an Ethernet header.
func etherType(eth []byte) uint16 { return binary.BigEndian.Uint16(eth[12:]) }

// mac returns six bytes as a number that compares like them.
func mac(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint32(b))<<16 | uint64(binary.BigEndian.Uint16(b[4:]))
}

// groupBit is that of a multicast or broadcast address in a number made by mac.
const groupBit = 1 << 40

// broadcast is the broadcast address as a number made by mac.
const broadcast = 1<<48 - 1
