package vlan

import (
	"encoding/binary"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	ethernetSize = header.EthernetMinimumSize
	// addressesSize is what goes before the first tag: both addresses.
	addressesSize = 2 * header.EthernetAddressSize
	// tagSize is the size of a tag: its protocol, and the control information.
	tagSize = 4
	// maxTags is how many tags a frame can be sent with.
	maxTags = 2

	idBits        = 0x0fff
	priorityShift = 13
)

// isTag reports whether an EtherType is that of a tag.
func isTag(etherType uint16) bool {
	return etherType == link.TagProtocolQ || etherType == link.TagProtocolAD
}

// peekTag reads the control information of the tag number n and the EtherType
// behind it from the front of a packet's data, where a link has left them. ok is
// false when the data are too short. The data stay as they are.
func peekTag(pkt *stack.PacketBuffer, n int) (control, etherType uint16, ok bool) {
	b, ok := pkt.Data().PullUp(tagSize * (n + 1))
	if !ok {
		return 0, 0, false
	}
	b = b[tagSize*n:]
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), true
}

// putTag writes a tag.
func putTag(b []byte, tag link.VLANTag, priority uint8) {
	binary.BigEndian.PutUint16(b, tag.Protocol)
	binary.BigEndian.PutUint16(b[2:], uint16(priority&7)<<priorityShift|tag.ID)
}

// bears reports whether a frame, of which b is the beginning, has the tags of a
// path, whatever their priorities.
func bears(b []byte, path []*Device) bool {
	if len(b) < addressesSize+tagSize*len(path) {
		return false
	}
	for i, d := range path {
		t := b[addressesSize+tagSize*i:]
		if binary.BigEndian.Uint16(t) != d.tag.Protocol || binary.BigEndian.Uint16(t[2:])&idBits != d.tag.ID {
			return false
		}
	}
	return true
}

// mac48 packs an Ethernet address, so that comparing two is one instruction. b
// has at least six bytes, or the result is zero.
func mac48(b []byte) uint64 {
	if len(b) < header.EthernetAddressSize {
		return 0
	}
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

// groupBit is the bit of a packed address that makes it a group's.
const groupBit = 1 << 40
