package wire

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// completeChecksum finishes the transport checksum of a frame that copyFrame
// made, where the sender left that to the link: the field then holds the sum of
// the pseudo header. A receiver that verifies would drop the frame otherwise.
func completeChecksum(f *stack.PacketBuffer) {
	gso := &f.GSOOptions
	if !gso.NeedsCsum {
		return
	}
	gso.NeedsCsum = false
	start := linkSize(f) + int(gso.L3HdrLen)
	at := start + int(gso.CsumOffset)
	b, ok := f.Data().PullUp(at + 2)
	if !ok {
		return // a sender that says where its checksum is, beyond its own end
	}
	binary.BigEndian.PutUint16(b[at:], ^f.Data().ChecksumAtOffset(start))
}
