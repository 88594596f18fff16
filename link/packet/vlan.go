package packet

import "encoding/binary"

// vlanTagSize is the size in bytes of an 802.1Q or 802.1ad tag.
const vlanTagSize = 4

// tagOffset is where in a frame the tag is: after both addresses.
const tagOffset = 12

// ethertypeVLAN is the tag protocol of 802.1Q, which the kernel means where it
// does not say.
const ethertypeVLAN = 0x8100

// vlanTag is a tag that the kernel took out of a frame.
type vlanTag struct {
	protocol uint16
	control  uint16
}

// restoreTag puts a tag back into a frame that begins vlanTagSize bytes into b:
// the frame then begins at b[0]. It is false, and b unchanged, where b is too
// short to hold both addresses.
func restoreTag(b []byte, tag vlanTag) bool {
	if len(b) < vlanTagSize+tagOffset {
		return false
	}
	copy(b[:tagOffset], b[vlanTagSize:])
	binary.BigEndian.PutUint16(b[tagOffset:], tag.protocol)
	binary.BigEndian.PutUint16(b[tagOffset+2:], tag.control)
	return true
}
