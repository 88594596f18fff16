package bonding

import (
	"bondstack/bonding/rlb"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// sendTalk sends ARP packets and neighbour discovery, each by the slave of the
// client that it is for. They are rare, so each is a list of its own.
func (s *snapshot) sendTalk(pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	sent := 0
	var firstErr tcpip.Error
	for _, pkt := range pkts.AsSlice() {
		n, err := s.sendTalkPacket(pkt, stripe)
		sent += n
		if err != nil && firstErr == nil {
			firstErr = err
		}
	}
	return sent, firstErr
}

func (s *snapshot) sendTalkPacket(pkt *stack.PacketBuffer, stripe uint32) (int, tcpip.Error) {
	to, pkt := s.talkTo(pkt)
	defer pkt.DecRef()
	if to == nil {
		to = s.lb.unbalanced(pkt)
	}
	var list stack.PacketBufferList
	list.PushBack(pkt)
	return s.sendBalanced(to, list, stripe)
}

// talkTo returns the slave by which a packet goes, nil where the active one
// serves, and the packet as it goes: itself, or one of our own under the slave's
// address. The caller has a reference of it.
func (s *snapshot) talkTo(pkt *stack.PacketBuffer) (*slave, *stack.PacketBuffer) {
	r := s.lb.clients
	if r == nil {
		return nil, pkt.IncRef()
	}
	var first [rlb.MaxHeader]byte
	p, ok := rlb.Parse(first[:gather(pkt, first[:])])
	if !ok {
		return nil, pkt.IncRef()
	}
	r.mu.Lock()
	d := r.table.Send(&p)
	r.mu.Unlock()
	if d.Slave < 0 || d.Slave >= len(s.receivers) || s.receivers[d.Slave].slave == nil {
		return nil, pkt.IncRef()
	}
	to := s.receivers[d.Slave].slave
	if !d.Rewrite {
		return to, pkt.IncRef()
	}
	frame := make([]byte, pkt.Size())
	gather(pkt, frame)
	p.SetSender(frame, d.MAC)
	return to, newFrame(frame)
}

// newFrame makes a packet of an Ethernet frame.
func newFrame(frame []byte) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: ethernetHeader,
		Payload:            buffer.MakeWithData(frame[ethernetHeader:]),
	})
	copy(pkt.LinkHeader().Push(ethernetHeader), frame)
	pkt.NetworkProtocolNumber = header.Ethernet(frame).Type()
	return pkt
}

// learn looks at a frame that a slave received: who a client is, and whether
// another host has taken an address of ours over. The frame goes its way all the
// same, and its buffers stay as they are: the caller has slices of them.
func (s *snapshot) learn(from *slave, protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	r := s.lb.clients
	if r == nil || !s.lb.mayTalk(protocol) || from.slot >= len(s.receivers) || s.receivers[from.slot].slave != from {
		return
	}
	var frame [rlb.MaxHeader]byte
	n := gather(pkt, frame[:])
	if !s.lb.isTalk(frame[:n]) {
		return
	}
	p, ok := rlb.Parse(frame[:n])
	if !ok {
		return
	}
	r.mu.Lock()
	claimed := r.table.Receive(&p)
	r.mu.Unlock()
	if !claimed {
		return
	}
	if routes := s.bond.stackRoutes(); routes != nil && routes.Owns(p.Sender) {
		return // somebody says so, but it is not so
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.Forget(p.Sender, p.SenderMAC)
}

// mayTalk reports whether a frame of that EtherType can be one to learn from.
func (v *balanceView) mayTalk(protocol tcpip.NetworkProtocolNumber) bool {
	switch protocol {
	case header.ARPProtocolNumber, 0x8100, 0x88a8:
		return true
	case header.IPv6ProtocolNumber:
		return v.ipv6
	}
	return false
}

// isTalk reports whether a frame is one to learn from.
func (v *balanceView) isTalk(frame []byte) bool {
	protocol, ip := network(frame)
	if protocol == header.IPv6ProtocolNumber && v.ipv6 {
		yes, complete := isNoDiscovery(ip)
		return !yes && complete
	}
	return protocol == header.ARPProtocolNumber
}
