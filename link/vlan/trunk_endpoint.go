package vlan

import (
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// WritePackets writes to the link. It implements stack.LinkEndpoint.
func (t *Trunk) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	return t.base.WritePackets(pkts)
}

// MTU implements stack.LinkEndpoint.
func (t *Trunk) MTU() uint32 { return t.base.MTU() }

// SetMTU sets the link's MTU, and so that of the devices, which never exceed it.
// It implements stack.LinkEndpoint.
func (t *Trunk) SetMTU(mtu uint32) { t.base.SetMTU(mtu) }

// MaxHeaderLength implements stack.LinkEndpoint.
func (t *Trunk) MaxHeaderLength() uint16 { return t.base.MaxHeaderLength() }

// LinkAddress implements stack.LinkEndpoint.
func (t *Trunk) LinkAddress() tcpip.LinkAddress { return t.base.LinkAddress() }

// SetLinkAddress sets the link's address. It implements stack.LinkEndpoint.
func (t *Trunk) SetLinkAddress(addr tcpip.LinkAddress) { t.base.SetLinkAddress(addr) }

// Capabilities implements stack.LinkEndpoint.
func (t *Trunk) Capabilities() stack.LinkEndpointCapabilities { return t.base.Capabilities() }

// GSOMaxSize implements stack.GSOEndpoint.
func (t *Trunk) GSOMaxSize() uint32 { return gsoMaxSize(t.base) }

// SupportedGSO implements stack.GSOEndpoint.
func (t *Trunk) SupportedGSO() stack.SupportedGSO { return supportedGSO(t.base) }

// TakesTaggedGSO implements link.TaggedGSOEndpoint.
func (t *Trunk) TakesTaggedGSO() bool { return link.TakesTaggedGSO(t.base) }

// ARPHardwareType implements stack.LinkEndpoint.
func (t *Trunk) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// AddHeader implements stack.LinkEndpoint.
func (t *Trunk) AddHeader(pkt *stack.PacketBuffer) { t.base.AddHeader(pkt) }

// ParseHeader implements stack.LinkEndpoint.
func (t *Trunk) ParseHeader(pkt *stack.PacketBuffer) bool { return t.base.ParseHeader(pkt) }

// Attach implements stack.LinkEndpoint. It waits for nothing.
func (t *Trunk) Attach(d stack.NetworkDispatcher) {
	t.change(func() { t.upper.dispatcher = d })
	t.attach()
}

// IsAttached implements stack.LinkEndpoint.
func (t *Trunk) IsAttached() bool { return t.table.Load().untagged.dispatcher != nil }

// Wait implements stack.LinkEndpoint.
func (t *Trunk) Wait() { t.base.Wait() }

// SetOnCloseAction implements stack.LinkEndpoint.
func (t *Trunk) SetOnCloseAction(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upper.onClose = f
}

// change changes the state of what is above, unless the trunk is closed, and
// publishes it.
func (t *Trunk) change(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		f()
		t.publish()
	}
}

func gsoMaxSize(ep stack.LinkEndpoint) uint32 {
	if g, ok := ep.(stack.GSOEndpoint); ok {
		return g.GSOMaxSize()
	}
	return 0
}

func supportedGSO(ep stack.LinkEndpoint) stack.SupportedGSO {
	if g, ok := ep.(stack.GSOEndpoint); ok {
		return g.SupportedGSO()
	}
	return stack.GSONotSupported
}
