package bonding

import (
	"sync"
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
	if !s.control.allow(b.now(), controlFrames) {
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

// allow counts a frame, of which most may come in a window. Two goroutines that meet at the border of a window may
// let one frame more through.
func (l *controlLimiter) allow(now instant, most int64) bool {
	w := int64(now) / int64(controlWindow)
	if l.window.Swap(w) != w {
		l.count.Store(0)
	}
	return l.count.Add(1) <= most
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

// A slave that has no room for a LACPDU takes no data until it has taken that,
// for as long as controlTries waits at most: queues are first in, first out, and
// a partner that hears nothing for three seconds gives the port up.
const (
	controlTries = 20
	controlWait  = time.Millisecond
)

// sendControls sends the frames of the bond's own that wait on one slave, past the
// mode. It is called without the lock. While another goroutine is sending on the
// slave they are left to that one: an endpoint that blocks holds up one goroutine,
// not the control frames of the other slaves too. Who has begun is in a read
// section, so that Close can wait for the farewell.
func (s *slave) sendControls() {
	section := s.bond.readers.Enter()
	defer s.bond.readers.Exit(section)
	for frame := s.controls.begin(); frame != nil; frame = s.controls.next() {
		s.sendNow(frame)
	}
}

// controlQueue holds the control frames that are to be sent: the last LACPDU,
// which says all that those before it said, and one other frame. What is put in
// under the bond's lock goes out in that order, whoever comes first to send it: a
// partner must not take an older LACPDU for the last.
type controlQueue struct {
	mu     sync.Mutex
	busy   bool
	lacpdu []byte
	other  []byte
}

// put adds a frame.
func (q *controlQueue) put(frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if frame[ethernetHeader] == lacp.SubtypeLACP {
		q.lacpdu = frame
	} else {
		q.other = frame
	}
}

// begin is next for who is not sending yet. It returns nil where another one is.
func (q *controlQueue) begin() []byte {
	q.mu.Lock()
	busy := q.busy
	q.busy = true
	q.mu.Unlock()
	if busy {
		return nil
	}
	return q.next()
}

// next returns the next frame to send, nil when there is none and the caller is
// done.
func (q *controlQueue) next() (frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.lacpdu != nil:
		frame, q.lacpdu = q.lacpdu, nil
	case q.other != nil:
		frame, q.other = q.other, nil
	default:
		q.busy = false
	}
	return frame
}

func (s *slave) sendNow(frame []byte) {
	if frame[ethernetHeader] == lacp.SubtypeLACP {
		s.tryControl(frame, s.controlTurn.Add(1), controlTries)
		return
	}
	s.tryControl(frame, s.controlTurn.Load(), 1)
}

// tryControl sends a control frame now or, where there is no room, soon. One
// that a later one has overtaken is not sent any more.
func (s *slave) tryControl(frame []byte, turn uint32, tries int) {
	var err tcpip.Error = &tcpip.ErrNoBufferSpace{}
	if turn == s.controlTurn.Load() {
		err = s.writeControl(frame)
	} else {
		tries = 1
	}
	again := tries > 1 && err != nil && dropReasonOf(err) == dropTxNoBuffer
	if tries > 1 || turn == s.controlTurn.Load() {
		s.urgent.Store(again)
	}
	switch {
	case again:
		s.bond.clock.AfterFunc(controlWait, func() { s.tryControl(frame, turn, tries-1) })
	case err != nil:
		s.counters.drop(dropReasonOf(err), 1)
	}
}

// writeControl writes a control frame. A slave that has been detached in the
// meantime gets nothing more: Release waits for this section too.
func (s *slave) writeControl(frame []byte) tcpip.Error {
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
		return nil
	}
	if taps := s.taps.Load(); taps != nil && taps.take(s, true, pkt) {
		return nil
	}
	n, err := s.ep.WritePackets(list)
	s.counters.sent(list, n, section.Stripe())
	if n == 0 && err == nil {
		err = &tcpip.ErrNoBufferSpace{}
	}
	return err
}
