package linktest

import (
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Inject delivers a copy of a frame as a link does that vouches for nothing: with
// its Ethernet header consumed. A frame shorter than that is delivered with no
// link header and protocol 0. It reports whether a dispatcher was attached.
func (r *Recorder) Inject(frame []byte) bool {
	return r.InjectWith(frame, InjectOptions{})
}

// InjectOptions says how a frame is delivered.
type InjectOptions struct {
	// RXChecksumValidated is the packet's flag: the link has verified the
	// checksums.
	RXChecksumValidated bool
	// GSO is what the packet says of its segments and its checksum.
	GSO stack.GSO
}

// InjectWith is Inject with options.
func (r *Recorder) InjectWith(frame []byte, opts InjectOptions) bool {
	d := r.dispatcher.Load()
	if d == nil {
		return false
	}
	pkt := r.received(frame, opts)
	defer pkt.DecRef()
	(*d).DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
	return true
}

// InjectList is Inject for frames that came together. What is attached must take
// lists.
func (r *Recorder) InjectList(frames ...[]byte) bool {
	d := r.dispatcher.Load()
	if d == nil {
		return false
	}
	var list stack.PacketBufferList
	defer list.Reset()
	for _, frame := range frames {
		list.PushBack(r.received(frame, InjectOptions{}))
	}
	(*d).(link.ListDispatcher).DeliverList(list)
	return true
}

// received makes a packet of a frame as a link delivers it.
func (r *Recorder) received(frame []byte, opts InjectOptions) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	pkt.RXChecksumValidated = opts.RXChecksumValidated
	pkt.GSOOptions = opts.GSO
	if h, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize); ok {
		eth := header.Ethernet(h)
		pkt.NetworkProtocolNumber = eth.Type()
		pkt.PktType = packetType(eth.DestinationAddress(), r.LinkAddress())
	}
	return pkt
}

// packetType returns what a frame for dst is to a link with the address own.
func packetType(dst, own tcpip.LinkAddress) tcpip.PacketType {
	switch {
	case dst == header.EthernetBroadcastAddress:
		return tcpip.PacketBroadcast
	case header.IsMulticastEthernetAddress(dst):
		return tcpip.PacketMulticast
	case dst == own:
		return tcpip.PacketHost
	}
	return tcpip.PacketOtherHost
}
