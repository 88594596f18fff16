package vlan

import (
	"encoding/binary"
	"slices"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/buffer"
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
// what the trunk is attached to. It implements stack.NetworkDispatcher.
func (x demux) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	t := x.trunk
	tab := t.table.Load()
	for tags := 0; tags <= maxPriorityTags; tags++ {
		if !isTag(uint16(protocol)) {
			t.hand(tab, &tab.untagged, tags, protocol, pkt)
			return
		}
		control, etherType, ok := peekTag(pkt, tags)
		if !ok {
			t.stats.truncated.Add(1)
			return
		}
		id := control & idBits
		to := tab.devices[link.VLANTag{Protocol: uint16(protocol), ID: id}]
		switch {
		case to != nil:
			t.hand(tab, to, tags+1, tcpip.NetworkProtocolNumber(etherType), pkt)
			return
		case id != 0:
			t.stats.unknownVLAN.Add(1)
			if up := tab.untagged.dispatcher; up != nil {
				deliver(up, tags, protocol, pkt)
			}
			return
		}
		protocol = tcpip.NetworkProtocolNumber(etherType)
	}
	t.stats.nested.Add(1)
}

// DeliverLinkPacket does nothing: packet sockets are those of a NIC, which sees
// what it is given. It implements stack.NetworkDispatcher.
func (demux) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// hand gives a frame, without its first tags, to a receiver if it is for it.
func (t *Trunk) hand(tab *table, to *receiver, tags int, protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	if to.dispatcher == nil {
		t.stats.unattached.Add(1)
		return
	}
	// Where the link receives for nobody in particular, it has decided already.
	if (len(tab.private) > 0 || tab.promiscuous) && !t.admit(tab, to, pkt) {
		t.stats.otherHost.Add(1)
		return
	}
	deliver(to.dispatcher, tags, protocol, pkt)
}

// deliver delivers a frame without its first tags, whose place in the link header
// the protocol takes.
func deliver(to stack.NetworkDispatcher, tags int, protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	if tags > 0 {
		pkt = strip(pkt, tags, protocol)
		defer pkt.DecRef()
	}
	pkt.NetworkProtocolNumber = protocol
	to.DeliverNetworkPacket(protocol, pkt)
}

// strip moves a frame to a packet with a link header of its own, which has no
// tags; pkt is empty then, which its deliverer drops next. To leave the tags in
// pkt, as parsed data before the network header, would not do: netstack finds that
// by the lengths of the headers before. And to share the data with pkt would have
// them copied, since netstack pulls headers up.
func strip(pkt *stack.PacketBuffer, tags int, protocol tcpip.NetworkProtocolNumber) *stack.PacketBuffer {
	eth := buffer.NewViewSize(ethernetSize)
	b := eth.AsSlice()
	copy(b[:addressesSize], pkt.LinkHeader().Slice())
	binary.BigEndian.PutUint16(b[addressesSize:], uint16(protocol))
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(eth), Mark: pkt.Mark})
	p.LinkHeader().Consume(ethernetSize)
	p.PktType, p.RXChecksumValidated = pkt.PktType, pkt.RXChecksumValidated
	p.GSOOptions, p.Hash = pkt.GSOOptions, pkt.Hash
	pkt.Data().Consume(tagSize * tags)
	stack.MergeFragment(p, pkt)
	return p
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
