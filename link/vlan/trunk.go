package vlan

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Trunk is a link that VLAN devices are on, and the link for its frames without a
// tag. It is made by NewTrunk. All methods may be called from any goroutine.
type Trunk struct {
	base stack.LinkEndpoint
	// path are the devices whose tags every frame has, the outermost first: the
	// base and those below it, where it is a Device.
	path []*Device
	// root is the link below all of path, which frames with all their tags are
	// written to.
	root  stack.LinkEndpoint
	table atomic.Pointer[table]
	stats counters

	// Locks are taken from above downwards: those of a bond or a trunk above
	// before these, these before the base's. attachMu is held while the base is
	// attached or detached, filterMu while its filter is changed: the base
	// calls nobody above it from within. Both are taken before mu.
	attachMu sync.Mutex
	filterMu sync.Mutex

	// mu guards the following, and upper in each device. It is a leaf: nothing
	// outside of this package is called with it held.
	mu      sync.Mutex
	upper   upper
	devices []*Device // in order of adding
	asked   asked
	routing func() // ends UseRoutes of the base, nil: not called
	closed  bool
}

var (
	_ stack.LinkEndpoint      = (*Trunk)(nil)
	_ stack.GSOEndpoint       = (*Trunk)(nil)
	_ link.StateEndpoint      = (*Trunk)(nil)
	_ link.FilterEndpoint     = (*Trunk)(nil)
	_ link.MTUEndpoint        = (*Trunk)(nil)
	_ link.Notifier           = (*Trunk)(nil)
	_ link.MembershipNotifier = (*Trunk)(nil)
	_ link.ChangeReporter     = (*Trunk)(nil)
	_ link.RouteUser          = (*Trunk)(nil)
	_ link.VLANEndpoint       = (*Trunk)(nil)
	_ link.TaggedGSOEndpoint  = (*Trunk)(nil)
	_ link.Stacked            = (*Trunk)(nil)
)

// NewTrunk makes a trunk of a link, which is the trunk's from then on. The error
// says that the link is nil, attached, no Ethernet link, or a device whose frames
// have two tags already.
func NewTrunk(base stack.LinkEndpoint) (*Trunk, error) {
	switch {
	case base == nil:
		return nil, fmt.Errorf("vlan: link is nil")
	case base.IsAttached():
		return nil, fmt.Errorf("vlan: link %s is attached already", base.LinkAddress())
	case base.ARPHardwareType() != header.ARPHardwareEther:
		return nil, fmt.Errorf("vlan: link has hardware type %d, allowed is %d (Ethernet)", base.ARPHardwareType(), header.ARPHardwareEther)
	}
	t := &Trunk{base: base, root: base}
	if d, ok := base.(*Device); ok {
		if len(d.path) == maxTags {
			return nil, fmt.Errorf("vlan: frames of VLAN %s have %d tags already, more are not allowed", d.tag, maxTags)
		}
		t.path, t.root = d.path, d.trunk.root
	}
	t.asked.addresses = map[tcpip.LinkAddress]*askedAddress{}
	t.mu.Lock()
	t.publish()
	t.mu.Unlock()
	base.SetOnCloseAction(t.baseClosed)
	return t, nil
}

// Add makes a VLAN device. Frames that the link receives with the tag are the
// device's, and what is sent on the device gets it. The error names the tag and
// the reason: the trunk is closed, another device has the tag, an option is
// wrong, or the link refuses it.
func (t *Trunk) Add(tag link.VLANTag, o Options) (*Device, error) {
	d, err := t.add(tag, o)
	if err != nil {
		return nil, fmt.Errorf("vlan: VLAN %s: %w", tag, err)
	}
	return d, nil
}

func (t *Trunk) add(tag link.VLANTag, o Options) (*Device, error) {
	if err := tag.Validate(); err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.MTU != 0 {
		if err := checkMTU(o.MTU, t.base.MTU()); err != nil {
			return nil, err
		}
	}
	d := &Device{trunk: t, tag: tag, reserve: o.MTUReserve, priority: o.Priority, priorityOf: o.PriorityOf}
	d.mtu.Store(o.MTU)
	d.path = append(slices.Clone(t.path), d)
	if err := t.join(d); err != nil {
		return nil, err
	}
	if err := t.tellBase(d); err != nil {
		t.leave(d)
		return nil, err
	}
	if o.LinkAddress != "" {
		if err := d.ChangeLinkAddress(o.LinkAddress); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// join takes a device into the list.
func (t *Trunk) join(d *Device) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return fmt.Errorf("the trunk is closed")
	case t.find(d.tag) != nil:
		return fmt.Errorf("there is a device already")
	}
	t.devices = append(t.devices, d)
	t.publish()
	return nil
}

// find returns the device that has a tag, nil if none has. mu is held.
func (t *Trunk) find(tag link.VLANTag) *Device {
	for _, d := range t.devices {
		if d.tag == tag {
			return d
		}
	}
	return nil
}

// leave takes a device out of the list, and reports whether it was there.
func (t *Trunk) leave(d *Device) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.devices, d)
	if i < 0 {
		return false
	}
	t.devices = slices.Delete(slices.Clone(t.devices), i, i+1)
	t.publish()
	return true
}

// tellBase tells the link of a device. A device below need not know: its frames
// are told from those of the device above it by the whole path.
func (t *Trunk) tellBase(d *Device) error {
	if v, ok := t.base.(link.VLANEndpoint); ok && len(t.path) == 0 {
		return v.AddVLAN(d.tag, d.LinkAddress)
	}
	return nil
}

func (t *Trunk) untellBase(d *Device) {
	if v, ok := t.base.(link.VLANEndpoint); ok && len(t.path) == 0 {
		v.RemoveVLAN(d.tag)
	}
}

// AddVLAN refuses the tag of a device of the trunk's own, which would get the
// frames, and tells the link of others. It implements link.VLANEndpoint for a
// bond that has the trunk as a slave.
func (t *Trunk) AddVLAN(tag link.VLANTag, address func() tcpip.LinkAddress) error {
	t.mu.Lock()
	taken := t.find(tag) != nil
	t.mu.Unlock()
	if taken {
		return fmt.Errorf("vlan: VLAN %s: there is a device already", tag)
	}
	if v, ok := t.base.(link.VLANEndpoint); ok {
		return v.AddVLAN(tag, address)
	}
	return nil
}

// RemoveVLAN implements link.VLANEndpoint.
func (t *Trunk) RemoveVLAN(tag link.VLANTag) {
	t.mu.Lock()
	own := t.find(tag) != nil
	t.mu.Unlock()
	if v, ok := t.base.(link.VLANEndpoint); ok && !own {
		v.RemoveVLAN(tag)
	}
}

// Below returns the link that the trunk is on. It implements link.Stacked.
func (t *Trunk) Below() stack.LinkEndpoint { return t.base }

// Device returns the device that has a tag, nil where none has.
func (t *Trunk) Device(tag link.VLANTag) *Device {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(tag)
}

// Close ends all devices, and closes the link. It implements stack.LinkEndpoint.
// A second call does nothing.
func (t *Trunk) Close() {
	if t.end() {
		t.attach()
		t.base.SetOnCloseAction(nil)
		t.base.Close()
	}
}

// baseClosed is called when somebody else closed the link.
func (t *Trunk) baseClosed() { t.end() }

// end has the trunk and its devices closed, tells those above, and returns
// whether this call was the one that did.
func (t *Trunk) end() bool {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return false
	}
	t.closed = true
	actions := []func(){t.upper.onClose}
	for _, d := range t.devices {
		d.closed.Store(true)
		actions = append(actions, d.upper.onClose)
		d.upper.end()
	}
	t.upper.end()
	stop := t.routing
	t.devices, t.routing = nil, nil
	t.publish()
	t.mu.Unlock()
	if stop != nil {
		stop()
	}
	for _, f := range actions {
		if f != nil {
			f()
		}
	}
	return true
}

// attach has the link deliver while something above is attached.
func (t *Trunk) attach() {
	t.attachMu.Lock()
	defer t.attachMu.Unlock()
	t.mu.Lock()
	want := t.attached()
	t.mu.Unlock()
	switch {
	case want && !t.base.IsAttached():
		t.base.Attach(demux{t})
	case !want && t.base.IsAttached():
		t.base.Attach(nil)
	}
}
