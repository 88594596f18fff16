package bonding

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	minMTU     = 68    // the least that IPv4 allows (RFC 791)
	maxMTU     = 65535 // Linux's limit for a bond
	defaultMTU = 1500

	ethernetHeader = header.EthernetMinimumSize

	// gsoMaxSize is the largest packet that netstack hands over for the bond to
	// segment or pass on. It never changes: a connection fixes its own when it
	// is opened, and slaves come and go.
	gsoMaxSize = 1 << 16
)

// WritePackets sends packets by the bond's mode. It returns how many were taken
// by a slave; a packet that no slave could be found for is dropped and counted,
// without an error, as in Linux. It takes no lock and allocates nothing. It
// implements stack.LinkWriter.
func (b *Bond) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	section := b.readers.Enter()
	defer b.readers.Exit(section) // also when an endpoint panics, and somebody above recovers
	s := b.snap.Load()
	return s.write(s, pkts, section.Stripe())
}

// MTU implements stack.LinkEndpoint.
func (b *Bond) MTU() uint32 { return b.mtu.Load() }

// MaxHeaderLength is the header room that every slave finds enough. It
// implements stack.LinkEndpoint.
func (b *Bond) MaxHeaderLength() uint16 { return uint16(b.headers.Load()) }

// LinkAddress returns the bond's MAC address. It implements
// stack.LinkEndpoint.
func (b *Bond) LinkAddress() tcpip.LinkAddress { return b.snap.Load().mac }

// Capabilities are constant, since a NIC reads them once: addresses are
// resolved, and received checksums are verified below, by a slave or by the
// bond. The bond never claims CapabilityTXChecksumOffload: netstack would leave
// packets without checksum and without a mark that says so. It implements
// stack.LinkEndpoint.
func (b *Bond) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityResolutionRequired | stack.CapabilityRXChecksumOffload
}

// GSOMaxSize implements stack.GSOEndpoint.
func (b *Bond) GSOMaxSize() uint32 { return gsoMaxSize }

// SupportedGSO implements stack.GSOEndpoint. The bond segments for a slave that
// cannot.
func (b *Bond) SupportedGSO() stack.SupportedGSO { return stack.HostGSOSupported }

// TakesTaggedGSO implements link.TaggedGSOEndpoint. The bond segments for a slave
// that cannot.
func (b *Bond) TakesTaggedGSO() bool { return true }

// ARPHardwareType implements stack.LinkEndpoint.
func (b *Bond) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// AddHeader pushes the Ethernet header. The source is the bond's present
// address, not the route's: routes remember the address that the bond had when
// they were made. It implements stack.LinkEndpoint.
func (b *Bond) AddHeader(pkt *stack.PacketBuffer) {
	header.Ethernet(pkt.LinkHeader().Push(ethernetHeader)).Encode(&header.EthernetFields{
		SrcAddr: b.snap.Load().mac,
		DstAddr: pkt.EgressRoute.RemoteLinkAddress,
		Type:    pkt.NetworkProtocolNumber,
	})
}

// ParseHeader consumes the Ethernet header. It implements stack.LinkEndpoint.
func (b *Bond) ParseHeader(pkt *stack.PacketBuffer) bool {
	_, ok := pkt.LinkHeader().Consume(ethernetHeader)
	return ok
}

// Attach gives the bond to a NIC, or takes it away (nil). gVisor calls it with
// the stack's lock held, so it only publishes: receivers may be on their way up
// the stack, waiting for that lock. Monitors run while a NIC has the bond, as
// Linux's run while the device is up. It implements stack.LinkEndpoint.
func (b *Bond) Attach(d stack.NetworkDispatcher) {
	b.fromAbove(func(now instant) {
		if b.closed {
			return
		}
		wasUp := b.dispatcher != nil
		b.dispatcher = d
		b.dirty = true
		switch {
		case d == nil:
			b.notify.stop()
			b.nextPass = 0
		case !wasUp && b.config.miimon > 0:
			b.nextPass = now // by the timer, since the stack's lock is held here
		}
	})
}

// IsAttached implements stack.LinkEndpoint.
func (b *Bond) IsAttached() bool { return b.snap.Load().dispatcher != nil }

// SetOnCloseAction implements stack.LinkEndpoint.
func (b *Bond) SetOnCloseAction(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onClose = f
}
