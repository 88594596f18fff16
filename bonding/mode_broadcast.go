package bonding

import (
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writeBroadcast sends every packet by every slave that is up.
func writeBroadcast(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	if len(s.up) == 0 {
		return s.noSlave(pkts)
	}
	return s.copyTo(s.up, pkts, stripe)
}

// copyTo sends every packet by each of some slaves, one or more. It has
// succeeded where one of them took it: the count is that of the slave that took
// most.
func (s *snapshot) copyTo(slaves []*slave, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	sp := splitPool.Get().(*split)
	defer splitPool.Put(sp)
	for _, to := range slaves[1:] {
		for _, pkt := range pkts.AsSlice() {
			sp.add(to, pkt)
		}
	}
	most, err := s.sendCopy(slaves[0], pkts, stripe)
	for i := range sp.used {
		p := &sp.parts[i]
		n, e := s.sendCopy(p.to, p.list, stripe)
		if n > most || e == nil {
			most, err = max(n, most), e
		}
		p.to = nil
		empty(&p.list)
	}
	sp.used = 0
	for i := 0; most == 0 && i < len(s.reserve); i++ {
		most, err = s.sendCopy(s.reserve[i], pkts, stripe)
	}
	return most, err
}

// sendCopy sends to one slave. A link that is gone takes the rest with it, since
// the others have their own copies.
func (s *snapshot) sendCopy(to *slave, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	n, err := to.send(pkts, stripe)
	if err != nil && link.Gone(err) {
		to.counters.drop(dropTxLinkGone, pkts.Len()-n)
		s.bond.linkGone(to)
		err = nil
	}
	return n, err
}
