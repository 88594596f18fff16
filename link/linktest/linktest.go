// Package linktest helps to test what stands on a link: bonds, stacks, and
// programs that use them.
//
// Links: Null takes everything at almost no cost, for benchmarks. Recorder keeps
// what is written to it, fails when told to, has any state that a test gives it,
// and delivers frames that a test injects. Plain hides a link's optional
// interfaces. A real link in memory, with faults and with a switch, is in
// package wire.
//
// The upper side of a link: Sink keeps or counts what a link delivers.
//
// Frames: Ethernet, VLAN, ARP, IPv4, IPv6, UDP, TCP and Flow make bytes with right
// checksums; Packet, GSOPacket and Packets make of them what a netstack gives to
// a link.
//
// Leaks: Main checks a package's tests for packet buffers that were not released,
// CheckGoroutines a test for goroutines that did not end.
//
// Everything here may be used by any goroutine. Nothing here reads a clock, but
// for the limit of waits whose end means that the test has failed.
package linktest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// patience is how long a test waits for what must come. It is not reached unless
// the test fails, so it is generous for slow machines.
const patience = 20 * time.Second

// DefaultAddress is the MAC address of a link unless a test sets it.
const DefaultAddress = tcpip.LinkAddress("\x02\x00\x5e\x00\x53\x01")

// base is what the links here have in common: an Ethernet link that keeps an
// MTU, an address and a dispatcher.
type base struct {
	mtu        atomic.Uint32
	address    atomic.Pointer[tcpip.LinkAddress]
	dispatcher atomic.Pointer[stack.NetworkDispatcher]
	caps       stack.LinkEndpointCapabilities
	gso        bool
}

// init applies the defaults: MTU 1,500, DefaultAddress, and the capabilities
// that an Ethernet link always has.
func (b *base) init(mtu uint32, address tcpip.LinkAddress, caps stack.LinkEndpointCapabilities, gso bool) {
	if mtu == 0 {
		mtu = 1500
	}
	if address == "" {
		address = DefaultAddress
	}
	b.mtu.Store(mtu)
	b.address.Store(&address)
	b.caps = caps | stack.CapabilityResolutionRequired
	b.gso = gso
}

// MTU implements stack.LinkEndpoint.
func (b *base) MTU() uint32 { return b.mtu.Load() }

// SetMTU implements stack.LinkEndpoint.
func (b *base) SetMTU(mtu uint32) { b.mtu.Store(mtu) }

// MaxHeaderLength implements stack.LinkEndpoint.
func (*base) MaxHeaderLength() uint16 { return header.EthernetMinimumSize }

// LinkAddress implements stack.LinkEndpoint.
func (b *base) LinkAddress() tcpip.LinkAddress { return *b.address.Load() }

// SetLinkAddress implements stack.LinkEndpoint.
func (b *base) SetLinkAddress(addr tcpip.LinkAddress) { b.address.Store(&addr) }

// Capabilities implements stack.LinkEndpoint.
func (b *base) Capabilities() stack.LinkEndpointCapabilities { return b.caps }

// Attach implements stack.LinkEndpoint.
func (b *base) Attach(d stack.NetworkDispatcher) {
	if d == nil {
		b.dispatcher.Store(nil)
		return
	}
	b.dispatcher.Store(&d)
}

// IsAttached implements stack.LinkEndpoint.
func (b *base) IsAttached() bool { return b.dispatcher.Load() != nil }

// Wait implements stack.LinkEndpoint.
func (*base) Wait() {}

// Close implements stack.LinkEndpoint.
func (*base) Close() {}

// SetOnCloseAction implements stack.LinkEndpoint.
func (*base) SetOnCloseAction(func()) {}

// ARPHardwareType implements stack.LinkEndpoint.
func (*base) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// AddHeader implements stack.LinkEndpoint.
func (b *base) AddHeader(pkt *stack.PacketBuffer) {
	header.Ethernet(pkt.LinkHeader().Push(header.EthernetMinimumSize)).Encode(&header.EthernetFields{
		SrcAddr: b.LinkAddress(),
		DstAddr: pkt.EgressRoute.RemoteLinkAddress,
		Type:    pkt.NetworkProtocolNumber,
	})
}

// ParseHeader implements stack.LinkEndpoint.
func (*base) ParseHeader(pkt *stack.PacketBuffer) bool {
	_, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	return ok
}

// SupportedGSO implements stack.GSOEndpoint.
func (b *base) SupportedGSO() stack.SupportedGSO {
	if b.gso {
		return stack.HostGSOSupported
	}
	return stack.GSONotSupported
}

// GSOMaxSize implements stack.GSOEndpoint.
func (b *base) GSOMaxSize() uint32 {
	if b.gso {
		return 65536
	}
	return 0
}

// TakesTaggedGSO implements link.TaggedGSOEndpoint.
func (*base) TakesTaggedGSO() bool { return true }

// Plain returns a link that is ep without its optional interfaces (GSO, state,
// filter, MTU range): what a bond sees of a link that knows nothing of itself.
func Plain(ep stack.LinkEndpoint) stack.LinkEndpoint {
	return struct{ stack.LinkEndpoint }{ep}
}

// await waits, with mu held, until ok, which reads what mu guards, and which
// whoever changes it announces by cond. It fails the test when that takes too
// long, with what the test waited for.
func await(tb testing.TB, cond *sync.Cond, ok func() bool, what func() string) {
	tb.Helper()
	late := false
	t := time.AfterFunc(patience, func() {
		cond.L.Lock()
		defer cond.L.Unlock()
		late = true
		cond.Broadcast()
	})
	defer t.Stop()
	for !ok() {
		if late {
			tb.Fatalf("waited %v for %s", patience, what())
		}
		cond.Wait()
	}
}
