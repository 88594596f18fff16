package bonding

import (
	"slices"

	"bondstack/bonding/echo"
	"bondstack/bonding/lacp"
	"bondstack/bonding/offload"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// port is what a slave's endpoint delivers to: the bond, as seen from that
// slave. It takes no read section, since it calls nothing that Release takes
// away: a frame of a released slave finds that it is received no more.
type port struct{ slave *slave }

var _ stack.NetworkDispatcher = (*port)(nil)

// groupBit is the bit of a packed address that makes it a group's.
const groupBit = 1 << 40

// broadcast48 is the packed broadcast address.
const broadcast48 = 1<<48 - 1

// DeliverNetworkPacket decides whether the bond takes a frame, and delivers it
// as the bond's own. It implements stack.NetworkDispatcher.
func (p *port) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	if s := p.slave.bond.snap.Load(); p.admit(s, protocol, pkt) {
		s.dispatcher.DeliverNetworkPacket(protocol, pkt)
	}
}

// admit decides whether the bond takes a frame. It is false where it does not,
// and where what becomes of the frame is another's business.
func (p *port) admit(s *snapshot, protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) bool {
	c := &p.slave.counters
	eth := pkt.LinkHeader().Slice()
	if len(eth) < ethernetHeader {
		c.drop(dropRxShort, 1)
		return false
	}
	if taps := p.slave.taps.Load(); taps != nil && taps.take(p.slave, false, pkt) {
		return false
	}
	c.received(len(eth) + pkt.Data().Size())
	if s.slow && protocol == lacp.EtherType {
		if p.slave.bond.receiveSlow(p.slave, eth, pkt) {
			return false
		}
		eth = pkt.LinkHeader().Slice() // pulling the payload up may have moved it
	}
	if s.hellos != nil && protocol == echo.EtherType && s.hellos.receive(p.slave, eth, pkt) {
		return false
	}
	if s.arp != nil {
		s.arp.look(p.slave, protocol, eth, pkt)
		eth = pkt.LinkHeader().Slice()
	}
	if s.lb != nil {
		s.learn(p.slave, protocol, pkt)
	}
	reason := s.refuse(p.slave, protocol, eth, pkt)
	if reason == accepted {
		if s.first != nil {
			s.first.received(s, p.slave)
		}
		pkt.NetworkProtocolNumber = protocol
		if s.reorder != nil {
			s.reorder.Receive(p.slave.slot, pkt)
			return false
		}
		return true
	}
	if reason == dropRxInactive && p.slave.listener != nil {
		p.slave.listener.DeliverNetworkPacket(protocol, pkt)
		return false
	}
	c.drop(reason, 1)
	return false
}

// DeliverLinkPacket does nothing: packet sockets are the NIC's, which sees what
// the bond takes. It implements stack.NetworkDispatcher.
func (p *port) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// accepted is refuse's answer for a frame that the bond takes.
const accepted = numDropReasons

// refuse returns why the bond does not take a frame of the slave, or accepted,
// and then has marked the packet with whom it is for.
func (s *snapshot) refuse(from *slave, protocol tcpip.NetworkProtocolNumber, eth []byte, pkt *stack.PacketBuffer) dropReason {
	dst, src := addresses(eth)
	r := s.receiverOf(from)
	if r == nil {
		return dropRxNotMember
	}
	toLate := r.lingers && (dst == s.mac48 || dst == r.own48)
	switch {
	case r.inactive && !s.lb.receivesFor(from.slot, dst) && !toLate:
		return dropRxInactive
	case s.dispatcher == nil:
		return dropRxNoNIC
	case src == s.mac48 || len(s.own) > 0 && slices.Contains(s.own, src), s.lb.sendsFrom(src):
		return dropRxOwn
	case dst == s.mac48, toLate:
		pkt.PktType = tcpip.PacketHost
	case dst == broadcast48:
		pkt.PktType = tcpip.PacketBroadcast
	case dst&groupBit != 0:
		pkt.PktType = tcpip.PacketMulticast
		from.counters.rx.multicast.Add(1)
	case len(s.own) > 0 && slices.Contains(s.own, dst), s.lb.receivesFor(from.slot, dst):
		pkt.PktType = tcpip.PacketHost
	case s.promiscuous:
		pkt.PktType = tcpip.PacketOtherHost
	default:
		return dropRxOtherHost
	}
	// Checksums come first: a damaged frame must not make its good copy one too
	// many.
	if !from.vouchesFor(pkt) && offload.Verify(protocol, pkt) == offload.Bad {
		return dropRxChecksum
	}
	if s.copies != nil && s.copies.isCopy(from.slot, eth, pkt) {
		return dropRxCopy
	}
	return accepted
}

// vouchesFor reports whether a frame's checksums need no look: the endpoint
// says so for this frame, or for all that it delivers. What an endpoint claims
// may change while it lives.
func (s *slave) vouchesFor(pkt *stack.PacketBuffer) bool {
	return pkt.RXChecksumValidated || s.ep.Capabilities()&stack.CapabilityRXChecksumOffload != 0
}
