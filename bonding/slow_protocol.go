package bonding

import (
	"sync/atomic"
	"time"

	"bondstack/bonding/lacp"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// slowGroup48 is the group address of the slow protocols (IEEE 802.3, annex
// 57A), packed.
const slowGroup48 = 0x0180c2000002

// receiveSlow hands a slow-protocol frame of a slave to LACP, and reports
// whether it is done with. What is none of LACP's business goes on as an
// ordinary frame, as in Linux.
func (b *Bond) receiveSlow(s *slave, eth []byte, pkt *stack.PacketBuffer) (consumed bool) {
	if mac48(eth) != slowGroup48 {
		return false
	}
	if !s.control.allow(b.now()) {
		s.counters.drop(dropRxControlFlood, 1)
		return true
	}
	size := min(pkt.Data().Size(), maxSlowPayload)
	payload, ok := pkt.Data().PullUp(size)
	if !ok {
		return false
	}
	b.control(func(now instant) {
		if b.lag != nil && !s.released {
			consumed = b.lag.system.Receive(time.Duration(now), lacp.PortID(s.portNumber), payload)
		}
	})
	return consumed
}

// maxSlowPayload is how much of a slow-protocol frame is looked at: a LACPDU has
// 110 bytes, and the standard allows 128 in all.
const maxSlowPayload = 128

// controlLimiter bounds what a hostile partner costs: each control frame takes
// the bond's lock. LACP needs three a second.
type controlLimiter struct {
	window atomic.Int64 // number of the present window
	count  atomic.Int64 // frames in it
}

const (
	controlWindow = 100 * time.Millisecond
	controlFrames = 16 // in each window
)

// allow counts a frame. Two goroutines that meet at the border of a window may
// let one frame more through.
func (l *controlLimiter) allow(now instant) bool {
	w := int64(now) / int64(controlWindow)
	if l.window.Swap(w) != w {
		l.count.Store(0)
	}
	return l.count.Add(1) <= controlFrames
}

// slowFrame makes a frame of a PDU.
func (s *slave) slowFrame(pdu []byte) []byte {
	frame := make([]byte, ethernetHeader+len(pdu))
	header.Ethernet(frame).Encode(&header.EthernetFields{
		SrcAddr: s.permanentAddress(),
		DstAddr: tcpip.LinkAddress(lacp.Group[:]),
		Type:    lacp.EtherType,
	})
	copy(frame[ethernetHeader:], pdu)
	return frame
}

// sendControl sends a frame of the bond's own on one slave, past the mode. It
// is called without the lock. A slave that has been detached in the meantime
// gets nothing more: Release waits for this section too.
func (s *slave) sendControl(frame []byte) {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: ethernetHeader,
		Payload:            buffer.MakeWithData(frame[ethernetHeader:]),
	})
	defer pkt.DecRef()
	copy(pkt.LinkHeader().Push(ethernetHeader), frame)
	pkt.NetworkProtocolNumber = header.Ethernet(frame).Type()
	var list stack.PacketBufferList
	list.PushBack(pkt)
	section := s.bond.readers.Enter()
	defer s.bond.readers.Exit(section)
	if s.detached.Load() {
		return
	}
	n, err := s.ep.WritePackets(list)
	s.counters.sent(list, n, section.Stripe())
	if n == 0 {
		if err == nil {
			err = &tcpip.ErrNoBufferSpace{}
		}
		s.counters.drop(dropReasonOf(err), 1)
	}
}
