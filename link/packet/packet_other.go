//go:build !linux

package packet

import (
	"fmt"
	"runtime"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Endpoint is a link on a kernel interface of Linux. There is none on this
// system: New returns an error.
type Endpoint struct{ stack.LinkEndpoint }

// New returns an error that has ErrNotSupported in its chain.
func New(name string, _ Options) (*Endpoint, error) {
	return nil, fmt.Errorf("packet: interface %q: %w on %s: packet sockets need Linux", name, ErrNotSupported, runtime.GOOS)
}

// FromDescriptor returns an error that has ErrNotSupported in its chain.
func FromDescriptor(fd int, _ Options) (*Endpoint, error) {
	return nil, fmt.Errorf("packet: descriptor %d: %w on %s: packet sockets need Linux", fd, ErrNotSupported, runtime.GOOS)
}

// GSOMaxSize is never reached: New returns no endpoint.
func (*Endpoint) GSOMaxSize() uint32 { return 0 }

// SupportedGSO is never reached: New returns no endpoint.
func (*Endpoint) SupportedGSO() stack.SupportedGSO { return stack.GSONotSupported }

// LinkState is never reached: New returns no endpoint.
func (*Endpoint) LinkState() link.State { return link.State{} }

// SubscribeLinkState is never reached: New returns no endpoint.
func (*Endpoint) SubscribeLinkState(func()) (cancel func()) { return func() {} }

// MTURange is never reached: New returns no endpoint.
func (*Endpoint) MTURange() (least, greatest uint32) { return 0, 0 }

// SetPromiscuous is never reached: New returns no endpoint.
func (*Endpoint) SetPromiscuous(bool) error { return ErrNotSupported }

// AddLinkAddress is never reached: New returns no endpoint.
func (*Endpoint) AddLinkAddress(tcpip.LinkAddress) error { return ErrNotSupported }

// RemoveLinkAddress is never reached: New returns no endpoint.
func (*Endpoint) RemoveLinkAddress(tcpip.LinkAddress) error { return ErrNotSupported }

// Name is never reached: New returns no endpoint.
func (*Endpoint) Name() string { return "" }

// Stats is never reached: New returns no endpoint.
func (*Endpoint) Stats() Stats { return Stats{} }

// Info is never reached: New returns no endpoint.
func (*Endpoint) Info() Info { return Info{} }

// Warnings is never reached: New returns no endpoint.
func (*Endpoint) Warnings() []string { return nil }

// Fdbased is gVisor's fdbased endpoint on a kernel interface of Linux. There is
// none on this system: OpenFdbased returns an error.
type Fdbased struct{ stack.LinkEndpoint }

// OpenFdbased returns an error that has ErrNotSupported in its chain.
func OpenFdbased(name string, _ Options) (*Fdbased, error) {
	return nil, fmt.Errorf("packet: fdbased on interface %q: %w on %s: packet sockets need Linux", name, ErrNotSupported, runtime.GOOS)
}

// GSOMaxSize is never reached: OpenFdbased returns no endpoint.
func (*Fdbased) GSOMaxSize() uint32 { return 0 }

// SupportedGSO is never reached: OpenFdbased returns no endpoint.
func (*Fdbased) SupportedGSO() stack.SupportedGSO { return stack.GSONotSupported }

// LinkState is never reached: OpenFdbased returns no endpoint.
func (*Fdbased) LinkState() link.State { return link.State{} }

// SubscribeLinkState is never reached: OpenFdbased returns no endpoint.
func (*Fdbased) SubscribeLinkState(func()) (cancel func()) { return func() {} }

// MTURange is never reached: OpenFdbased returns no endpoint.
func (*Fdbased) MTURange() (least, greatest uint32) { return 0, 0 }

// Name is never reached: OpenFdbased returns no endpoint.
func (*Fdbased) Name() string { return "" }
