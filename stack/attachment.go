package stack

import (
	"sync/atomic"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// attachment is the link as the host's netstack sees it. It adds one thing: the
// host learns that the interface was removed, which netstack tells nobody but
// the link. Without that, calls on the host's connections would wait for ever.
type attachment struct {
	netstack.LinkEndpoint
	iface *Interface
	// keep has Close leave the link open: NewHost failed.
	keep atomic.Bool
}

var (
	_ netstack.LinkEndpoint = (*attachment)(nil)
	_ netstack.GSOEndpoint  = (*attachment)(nil)
)

// Attach implements stack.LinkEndpoint. With nil it is called under the stack's
// lock.
func (a *attachment) Attach(dispatcher netstack.NetworkDispatcher) {
	a.LinkEndpoint.Attach(dispatcher)
	if dispatcher == nil {
		a.iface.linkLost()
	}
}

// Close implements stack.LinkEndpoint.
func (a *attachment) Close() {
	if !a.keep.Load() {
		a.LinkEndpoint.Close()
	}
}

// GSOMaxSize implements stack.GSOEndpoint: the size that the link takes, 0 when
// it takes none.
func (a *attachment) GSOMaxSize() uint32 {
	if g, ok := a.LinkEndpoint.(netstack.GSOEndpoint); ok {
		return g.GSOMaxSize()
	}
	return 0
}

// SupportedGSO implements stack.GSOEndpoint.
func (a *attachment) SupportedGSO() netstack.SupportedGSO {
	if g, ok := a.LinkEndpoint.(netstack.GSOEndpoint); ok {
		return g.SupportedGSO()
	}
	return netstack.GSONotSupported
}
