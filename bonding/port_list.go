package bonding

import (
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var _ link.ListDispatcher = (*port)(nil)

// DeliverList is DeliverNetworkPacket for frames that came together. What of them
// the bond takes goes up together where whoever has the bond takes lists. All of
// them meet the same snapshot. It implements link.ListDispatcher.
func (p *port) DeliverList(list stack.PacketBufferList) {
	s := p.slave.bond.snap.Load()
	if s.list == nil {
		for _, pkt := range list.AsSlice() {
			p.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
		}
		return
	}
	up := listPool.Get().(*stack.PacketBufferList)
	for _, pkt := range list.AsSlice() {
		if p.admit(s, pkt.NetworkProtocolNumber, pkt) {
			up.PushBack(pkt.IncRef())
		}
	}
	if up.Len() > 0 {
		s.list.DeliverList(*up)
		up.Reset()
	}
	listPool.Put(up)
}

// listDispatcher returns a dispatcher as one that takes lists, nil where it does
// not.
func listDispatcher(d stack.NetworkDispatcher) link.ListDispatcher {
	list, _ := d.(link.ListDispatcher)
	return list
}
