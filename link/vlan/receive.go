package vlan

import (
	"slices"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// maxPriorityTags bounds the priority tags that are looked behind.
const maxPriorityTags = 8

// demux is the trunk as the link's dispatcher.
type demux struct{ trunk *Trunk }

var _ stack.NetworkDispatcher = demux{}

// DeliverNetworkPacket gives a frame to the device that has its tag, or, where it
// has no tag or only priority tags (VLAN ID 0, IEEE 802.1Q, clause 6.9.1), to
// what the trunk is attached to. A tag is consumed with the packet's data, behind
// the link header, so that the bytes of the frame stay whole. It implements
// stack.NetworkDispatcher.
func (x demux) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	t := x.trunk
	tab := t.table.Load()
	for range maxPriorityTags + 1 {
		if !isTag(uint16(protocol)) {
			t.hand(tab, &tab.untagged, protocol, pkt)
			return
		}
		control, etherType, ok := peekTag(pkt)
		if !ok {
			t.stats.truncated.Add(1)
			return
		}
		id := control & idBits
		to := tab.devices[link.VLANTag{Protocol: uint16(protocol), ID: id}]
		if to == nil && id != 0 {
			t.stats.unknownVLAN.Add(1)
			if up := tab.untagged.dispatcher; up != nil {
				up.DeliverNetworkPacket(protocol, pkt)
			}
			return
		}
		pkt.Data().Consume(tagSize)
		protocol = tcpip.NetworkProtocolNumber(etherType)
		if to != nil {
			t.hand(tab, to, protocol, pkt)
			return
		}
	}
	t.stats.nested.Add(1)
}

// DeliverLinkPacket does nothing: packet sockets are those of a NIC, which sees
// what it is given. It implements stack.NetworkDispatcher.
func (demux) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// hand gives a frame to a receiver if it is for it.
func (t *Trunk) hand(tab *table, to *receiver, protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	if to.dispatcher == nil {
		t.stats.unattached.Add(1)
		return
	}
	// Where the link receives for nobody in particular, it has decided already.
	if (len(tab.private) > 0 || tab.promiscuous) && !t.admit(tab, to, pkt) {
		t.stats.otherHost.Add(1)
		return
	}
	pkt.NetworkProtocolNumber = protocol
	to.dispatcher.DeliverNetworkPacket(protocol, pkt)
}

// admit reports whether a frame is for a receiver, by its destination, and marks
// the packet with what it is to the receiver.
func (t *Trunk) admit(tab *table, to *receiver, pkt *stack.PacketBuffer) bool {
	dst := mac48(pkt.LinkHeader().Slice())
	switch {
	case dst&groupBit != 0:
		return true // the link has marked it
	case to.own != 0 && dst == to.own || slices.Contains(to.more, dst):
		pkt.PktType = tcpip.PacketHost
		return true
	case to.own == 0 && t.forLink(tab, dst, pkt.PktType):
		return true
	}
	pkt.PktType = tcpip.PacketOtherHost
	return to.promiscuous
}

// forLink reports whether a unicast frame is for the link's own address, which
// the link may know better than by comparing: a bond has several.
func (t *Trunk) forLink(tab *table, dst uint64, kind tcpip.PacketType) bool {
	if slices.Contains(tab.private, dst) {
		return dst == mac48([]byte(t.base.LinkAddress()))
	}
	return kind != tcpip.PacketOtherHost || !tab.promiscuous
}
