package bridge

import (
	"sync"

	"bondstack/link"
	"bondstack/link/gro"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// fromDevice is the bridge as what the device delivers to.
type fromDevice Bridge

var _ link.ListDispatcher = (*fromDevice)(nil)

// lists are used again for frames that go by themselves.
var lists = sync.Pool{New: func() any { return new(stack.PacketBufferList) }}

// send writes one frame, whose reference stays the caller's.
func send(to stack.LinkWriter, pkt *stack.PacketBuffer) {
	list := lists.Get().(*stack.PacketBufferList)
	list.PushBack(pkt.IncRef())
	// Who did not take it has counted it.
	_, _ = to.WritePackets(*list)
	list.Reset()
	lists.Put(list)
}

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (d *fromDevice) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	d.stats.out.Add(1)
	if (*Bridge)(d).prepare(pkt) {
		send(d.below, pkt)
	}
}

// DeliverList implements link.ListDispatcher: the frames go to the link in one
// write, and TCP segments that follow each other in one packet, as if the kernel
// had not cut them.
func (d *fromDevice) DeliverList(list stack.PacketBufferList) {
	d.stats.out.Add(uint64(list.Len()))
	joiner := joiners.Get().(*gro.Joiner)
	d.forward(joiner.Join(list))
	joiner.Reset()
	joiners.Put(joiner)
}

// forward makes the frames of a list ready, and writes them.
func (d *fromDevice) forward(list stack.PacketBufferList) {
	for i, pkt := range list.AsSlice() {
		if !(*Bridge)(d).prepare(pkt) {
			d.deliverWithout(list, i)
			return
		}
	}
	_, _ = d.below.WritePackets(list)
}

// deliverWithout sends the frames of a list but those that cannot be made ready,
// of which the one at an index is the first.
func (d *fromDevice) deliverWithout(list stack.PacketBufferList, bad int) {
	good := lists.Get().(*stack.PacketBufferList)
	for i, pkt := range list.AsSlice() {
		if i < bad || i > bad && (*Bridge)(d).prepare(pkt) {
			good.PushBack(pkt.IncRef())
		}
	}
	_, _ = d.below.WritePackets(*good)
	good.Reset()
	lists.Put(good)
}

// DeliverLinkPacket does nothing. It implements stack.NetworkDispatcher.
func (*fromDevice) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// prepare looks at a frame of the device, and makes it one that a link takes. It
// is false, and the frame counted, where that cannot be.
func (b *Bridge) prepare(pkt *stack.PacketBuffer) bool {
	b.look(pkt, b.seen.note)
	gso := &pkt.GSOOptions
	if gso.Type == stack.GSONone && !gso.NeedsCsum {
		return true
	}
	ready := gso.NeedsCsum
	switch {
	case !ready: // the kernel begins the checksum of what it wants segmented
	case gso.CsumOffset == header.TCPChecksumOffset:
		ready = layOut(pkt)
	case gso.Type != stack.GSONone:
		ready = false
	default:
		ready = complete(pkt)
		b.stats.completed.Add(1)
	}
	if !ready {
		b.stats.malformed.Add(1)
	}
	return ready
}

// fromBelow is the bridge as what the link delivers to.
type fromBelow Bridge

var _ link.ListDispatcher = (*fromBelow)(nil)

// joiners are used again.
var joiners = sync.Pool{New: func() any { return new(gro.Joiner) }}

// DeliverNetworkPacket implements stack.NetworkDispatcher. What is known of the
// frame's segmentation and checksum is in its GSOOptions, and goes with it.
func (u *fromBelow) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	u.stats.in.Add(1)
	(*Bridge)(u).look(pkt, u.seen.elsewhere)
	send(u.device, pkt)
}

// DeliverList implements link.ListDispatcher. TCP segments that follow each other
// go to the device in one packet: each packet costs a system call.
func (u *fromBelow) DeliverList(list stack.PacketBufferList) {
	u.stats.in.Add(uint64(list.Len()))
	for _, pkt := range list.AsSlice() {
		(*Bridge)(u).look(pkt, u.seen.elsewhere)
	}
	joiner := joiners.Get().(*gro.Joiner)
	// What the device did not take it has counted.
	_, _ = u.device.WritePackets(joiner.Join(list))
	joiner.Reset()
	joiners.Put(joiner)
}

// DeliverLinkPacket does nothing. It implements stack.NetworkDispatcher.
func (*fromBelow) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}
