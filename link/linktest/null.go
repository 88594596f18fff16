package linktest

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var (
	_ stack.LinkEndpoint = (*Null)(nil)
	_ stack.GSOEndpoint  = (*Null)(nil)
)

// NullOptions says what a Null is like. The zero value is MTU 1,500, no GSO.
type NullOptions struct {
	// MTU is in bytes. Zero is 1,500.
	MTU uint32
	// Address is the MAC address. Empty is DefaultAddress.
	Address tcpip.LinkAddress
	// GSO has the link offer host GSO of 64 KiB.
	GSO bool
	// Capabilities are those beside CapabilityResolutionRequired.
	Capabilities stack.LinkEndpointCapabilities
}

// Null is a link that takes every packet and forgets it. It does not even count
// them: a shared counter would be what a benchmark on many goroutines measures.
// It never delivers anything.
type Null struct{ base }

// NewNull returns a Null.
func NewNull(opts NullOptions) *Null {
	n := &Null{}
	n.init(opts.MTU, opts.Address, opts.Capabilities, opts.GSO)
	return n
}

// WritePackets implements stack.LinkEndpoint. It takes all packets.
func (*Null) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	return pkts.Len(), nil
}
