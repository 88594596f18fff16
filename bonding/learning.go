package bonding

import (
	"encoding/binary"
	"sync"

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
	b.later(func() { s.sendOwn(frames) })
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

// maxOwnFrames is how many frames of the bond's own may wait on a slave for one
// that is being written: what a full table of clients is told twice over.
const maxOwnFrames = 2048

// ownFrames are those that wait while another goroutine writes. The latest says
// where an address is now, so none may be lost to one that was begun before.
type ownFrames struct {
	mu      sync.Mutex
	waiting [][]byte
	busy    bool
}

// begin returns what to write for who is not writing yet, and nothing where
// another one is: that one writes these too. refused is how many found no room.
func (o *ownFrames) begin(frames [][]byte) (list [][]byte, refused int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.busy {
		o.busy = len(frames) > 0
		return frames, 0
	}
	room := min(len(frames), maxOwnFrames-len(o.waiting))
	o.waiting = append(o.waiting, frames[:room]...)
	return nil, len(frames) - room
}

// next returns what has come in the meantime, nothing when the caller is done.
func (o *ownFrames) next() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.waiting
	o.waiting = nil
	o.busy = len(list) > 0
	return list
}

// sendOwn sends frames of the bond's own on one slave, past the mode, without
// the lock, in the order of the calls. What finds no room is counted as dropped.
func (s *slave) sendOwn(frames [][]byte) {
	list, refused := s.own.begin(frames)
	s.counters.drop(dropTxNoBuffer, refused)
	for len(list) > 0 {
		for _, frame := range list {
			if err := s.writeControl(frame); err != nil {
				s.counters.drop(dropReasonOf(err), 1)
			}
		}
		list = s.own.next()
	}
}
