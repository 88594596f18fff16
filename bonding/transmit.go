package bonding

import (
	"encoding/binary"

	"bondstack/bonding/offload"
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// send writes a list to the slave, whole if the slave can take it so. It
// returns how many packets the slave took. What it did not take for lack of
// room is counted as dropped here; what it did not take because its link is
// gone is left to the mode, which may have another slave, and then the error
// is one for which link.Gone is true.
func (s *slave) send(pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	if s.urgent.Load() {
		s.counters.drop(dropTxNoBuffer, pkts.Len())
		return 0, &tcpip.ErrNoBufferSpace{}
	}
	if (s.room < gsoMaxSize || s.untagged) && s.needsOffload(pkts) {
		return s.sendPrepared(pkts, stripe)
	}
	return s.sendFrames(pkts, stripe)
}

// sendFrames sends what the slave can take as it is.
func (s *slave) sendFrames(pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	if taps := s.taps.Load(); taps != nil && taps.take(s, true, pkts.AsSlice()...) {
		return pkts.Len(), nil
	}
	n, err := s.ep.WritePackets(pkts)
	s.counters.sent(pkts, n, stripe)
	if n == pkts.Len() {
		return n, nil
	}
	return s.sendRest(pkts, n, err, stripe)
}

// sendRest goes on after a slave took only the first n packets: for as long as
// each attempt moves forward. There is no waiting: a slave that takes nothing
// has no room, and TCP is told by the loss.
func (s *slave) sendRest(pkts stack.PacketBufferList, n int, err tcpip.Error, stripe uint32) (int, tcpip.Error) {
	skip(&pkts, n)
	sent := n
	for n > 0 && pkts.Len() > 0 && (err == nil || !link.Gone(err)) {
		n, err = s.ep.WritePackets(pkts)
		s.counters.sent(pkts, n, stripe)
		skip(&pkts, n)
		sent += n
	}
	switch {
	case pkts.Len() == 0:
		return sent, nil
	case err == nil:
		err = &tcpip.ErrNoBufferSpace{}
	case link.Gone(err):
		return sent, err
	}
	s.counters.drop(dropReasonOf(err), pkts.Len())
	return sent, err
}

// dropReasonOf names why a slave did not take a packet.
func dropReasonOf(err tcpip.Error) dropReason {
	switch err.(type) {
	case *tcpip.ErrNoBufferSpace, *tcpip.ErrWouldBlock:
		return dropTxNoBuffer
	default:
		return dropTxError
	}
}

// skip drops the first n packets from a list, without their references.
func skip(pkts *stack.PacketBufferList, n int) {
	for range n {
		pkts.PopFront()
	}
}

// needsOffload reports whether a packet of the list is more than the slave can
// do.
func (s *slave) needsOffload(pkts stack.PacketBufferList) bool {
	for _, pkt := range pkts.AsSlice() {
		if s.needs(pkt) != offload.Nothing {
			return true
		}
	}
	return false
}

// needs returns what has to be done to a packet before the slave can take it.
func (s *slave) needs(pkt *stack.PacketBuffer) offload.Need {
	if s.untagged && isTagged(pkt) {
		return offload.Needs(pkt, 0)
	}
	return offload.Needs(pkt, s.room)
}

// isTagged reports whether a packet for segmentation offload has a VLAN tag.
// netstack pushes all headers into one piece.
func isTagged(pkt *stack.PacketBuffer) bool {
	if pkt.GSOOptions.Type == stack.GSONone {
		return false
	}
	b := firstBytes(pkt)
	if len(b) < ethernetHeader {
		return true // cut it: that copes with headers in any pieces
	}
	typ := binary.BigEndian.Uint16(b[ethernetHeader-2:])
	return typ == link.TagProtocolQ || typ == link.TagProtocolAD
}
