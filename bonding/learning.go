package bonding

import (
	"encoding/binary"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

const (
	// learningType is the EtherType of learning packets: Ethernet's old
	// configuration test (loopback), which nobody answers that it is not sent to.
	learningType = 0x9000
	// learningSize is the least size of an Ethernet frame without its check sum.
	learningSize = 60
)

// sendLearning tells switches that an address is behind a slave: by frames from
// and to that address, untagged and for each VLAN device on the bond. Of one
// with an address of its own the active slave tells that, since it receives for
// it. They are sent once the lock is free, and only while a NIC has the bond and
// the slave's link is there.
func (b *Bond) sendLearning(s *slave, addr tcpip.LinkAddress) {
	if b.balancer == nil || !s.usable() {
		return
	}
	frames := [][]byte{learningFrame(addr)}
	for _, v := range b.vlans {
		m := addr
		if own := v.address(); s == b.active && own != b.mac && checkAddress(own) == nil {
			m = own
		}
		frames = append(frames, tagged(learningFrame(m), v.tag))
	}
	b.later(func() { s.sendOnce(frames) })
}

// learningFrame makes a learning packet for an address.
func learningFrame(addr tcpip.LinkAddress) []byte {
	frame := make([]byte, learningSize)
	header.Ethernet(frame).Encode(&header.EthernetFields{SrcAddr: addr, DstAddr: addr, Type: learningType})
	return frame
}

// tagged returns a frame with a tag behind its addresses.
func tagged(frame []byte, tag link.VLANTag) []byte {
	list := append([]byte(nil), frame[:etherTypeOffset]...)
	list = binary.BigEndian.AppendUint16(list, tag.Protocol)
	list = binary.BigEndian.AppendUint16(list, tag.ID)
	return append(list, frame[etherTypeOffset:]...)
}

// sendOnce sends frames of the bond's own on one slave, past the mode, without
// the lock. What finds no room, or another goroutine that is still sending such
// frames, is counted as dropped: the next ones come soon.
func (s *slave) sendOnce(frames [][]byte) {
	if !s.learning.CompareAndSwap(false, true) {
		s.counters.drop(dropTxNoBuffer, len(frames))
		return
	}
	defer s.learning.Store(false)
	for _, frame := range frames {
		if err := s.writeControl(frame); err != nil {
			s.counters.drop(dropReasonOf(err), 1)
		}
	}
}
