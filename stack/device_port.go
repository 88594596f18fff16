package stack

import (
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
)

// devicePort is a device's place in one table: what stays the same from one
// version to the next.
type devicePort struct {
	devices  *Devices
	index    tcpip.NICID
	link     netstack.LinkEndpoint
	hasNIC   bool
	attached attachedLink         // what the NIC has
	options  *netstack.NICOptions // for the NIC, nil: none
	named    link.Named           // nil: the link does not show its name

	// Guarded by devices.mu, and the tearer-down's after the deletion:
	cancels []func()          // end the subscriptions to the link's news
	holder  link.DeviceHolder // the last, set at the deletion

	// newsMu is held while the link is looked at and what is new is told, so
	// that the last one told is the last one seen. It is taken before
	// devices.newsMu.
	newsMu sync.Mutex
	// The following are guarded by newsMu: as last told.
	state   link.State
	mtu     uint32
	address tcpip.LinkAddress

	// bindings are guarded by devices.newsMu.
	bindings map[*DeviceBinding]struct{}
}

// attachedLink is a link as the NIC sees it. It adds one thing: the NIC can be
// removed without closing the link.
type attachedLink struct {
	netstack.LinkEndpoint
	keep atomic.Bool
}

var (
	_ netstack.LinkEndpoint = (*attachedLink)(nil)
	_ netstack.GSOEndpoint  = (*attachedLink)(nil)
)

// Close implements stack.LinkEndpoint.
func (a *attachedLink) Close() {
	if !a.keep.Load() {
		a.LinkEndpoint.Close()
	}
}

// GSOMaxSize implements stack.GSOEndpoint: the size that the link takes, 0 when
// it takes none.
func (a *attachedLink) GSOMaxSize() uint32 {
	if g, ok := a.LinkEndpoint.(netstack.GSOEndpoint); ok {
		return g.GSOMaxSize()
	}
	return 0
}

// SupportedGSO implements stack.GSOEndpoint.
func (a *attachedLink) SupportedGSO() netstack.SupportedGSO {
	if g, ok := a.LinkEndpoint.(netstack.GSOEndpoint); ok {
		return g.SupportedGSO()
	}
	return netstack.GSONotSupported
}

// detach removes the NIC and leaves the link open.
func (p *devicePort) detach(s *netstack.Stack) {
	p.attached.keep.Store(true)
	s.RemoveNIC(p.index)
}

// discard undoes the making of a port that was never published.
func (p *devicePort) discard() {
	if p.hasNIC {
		p.detach(p.devices.stack)
	}
}

// announce connects a port that has been published with its link: the link
// knows its name, and the table learns of the link's changes and of its end.
// devices.mu is held.
func (p *devicePort) announce(dev *Device) {
	if p.link == nil {
		return
	}
	p.link.SetOnCloseAction(p.linkClosed)
	if p.named, _ = p.link.(link.Named); p.named != nil {
		p.named.SetName(dev.name)
	}
	p.newsMu.Lock()
	p.state, p.mtu, p.address = link.StateOf(p.link), p.link.MTU(), p.link.LinkAddress()
	p.newsMu.Unlock()
	if s, ok := p.link.(link.StateEndpoint); ok {
		p.cancels = append(p.cancels, s.SubscribeLinkState(p.look))
		p.look() // what changed before the subscription
	}
	if c, ok := p.link.(link.ChangeReporter); ok {
		p.cancels = append(p.cancels, c.SubscribeChanges(func() {
			p.tell(DeviceEvent{Kind: DeviceBonding})
			p.look()
		}))
	}
}

// look tells what is new about the link.
func (p *devicePort) look() {
	p.newsMu.Lock()
	defer p.newsMu.Unlock()
	if state := link.StateOf(p.link); state != p.state {
		p.state = state
		p.tell(DeviceEvent{Kind: DeviceState, State: state})
	}
	if mtu := p.link.MTU(); mtu != p.mtu {
		p.mtu = mtu
		p.tell(DeviceEvent{Kind: DeviceMTU, MTU: mtu})
	}
	if address := p.link.LinkAddress(); address != p.address {
		p.address = address
		p.tell(DeviceEvent{Kind: DeviceAddress, Address: address})
	}
}

// tell sends an event about the device, if it is still in the table.
func (p *devicePort) tell(e DeviceEvent) {
	d := p.devices
	d.newsMu.Lock()
	defer d.newsMu.Unlock()
	t := d.table.Load()
	if dev, ok := t.ByIndex(p.index); ok {
		e.Device, e.Version = dev, t.version
		d.send(e)
	}
}

// linkClosed is called when somebody else closed the link: the device goes. The
// caller may hold locks of the link or of netstack, so the work is done
// elsewhere.
func (p *devicePort) linkClosed() {
	d := p.devices
	d.newsMu.Lock()
	defer d.newsMu.Unlock()
	if d.closed {
		return
	}
	d.work.Go(func() { _ = d.Delete(p.index) }) // an error says that it is gone
}
