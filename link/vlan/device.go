package vlan

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Device is a VLAN device: a link whose frames have a tag on the link below it.
// It is made by Trunk.Add. All methods may be called from any goroutine.
type Device struct {
	trunk      *Trunk
	tag        link.VLANTag
	path       []*Device // those whose tags its frames have, itself the last
	reserve    uint32
	priority   uint8
	priorityOf func(*stack.PacketBuffer) uint8

	own    atomic.Pointer[tcpip.LinkAddress] // nil: the link's
	mtu    atomic.Uint32                     // 0: the link's
	closed atomic.Bool

	upper upper // guarded by trunk.mu
}

var (
	_ stack.LinkEndpoint      = (*Device)(nil)
	_ stack.GSOEndpoint       = (*Device)(nil)
	_ link.StateEndpoint      = (*Device)(nil)
	_ link.FilterEndpoint     = (*Device)(nil)
	_ link.MTUEndpoint        = (*Device)(nil)
	_ link.Notifier           = (*Device)(nil)
	_ link.MembershipNotifier = (*Device)(nil)
	_ link.ChangeReporter     = (*Device)(nil)
	_ link.RouteUser          = (*Device)(nil)
	_ link.VLANEndpoint       = (*Device)(nil)
	_ link.TaggedGSOEndpoint  = (*Device)(nil)
	_ link.Stacked            = (*Device)(nil)
)

// Below returns the link that the device's trunk is on. It implements link.Stacked.
func (d *Device) Below() stack.LinkEndpoint { return d.trunk.base }

// Tag returns the device's own tag.
func (d *Device) Tag() link.VLANTag { return d.tag }

// WritePackets writes to the link below. Packets whose link header AddHeader has
// pushed go as they are; those that have a plain Ethernet header, as a bond or a
// packet socket above makes it, are sent as copies with the tag, which share the
// payload. It implements stack.LinkEndpoint.
func (d *Device) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	if d.closed.Load() {
		return 0, &tcpip.ErrClosedForSend{}
	}
	for _, pkt := range pkts.AsSlice() {
		var room [peekSize]byte
		if !bears(firstBytes(pkt, &room), d.path) {
			return d.writeTagged(pkts)
		}
	}
	return d.trunk.root.WritePackets(pkts)
}

// MTU is the device's own, or the link's where that is less, or where it has
// none, less Options.MTUReserve. It implements stack.LinkEndpoint.
func (d *Device) MTU() uint32 {
	below := d.trunk.base.MTU()
	if own := d.mtu.Load(); own != 0 {
		return min(own, below)
	}
	return max(below, minMTU+d.reserve) - d.reserve
}

// SetMTU gives the device an MTU of its own. What is less than 68 or more than
// the link has is ignored: read back with MTU. It implements stack.LinkEndpoint.
func (d *Device) SetMTU(mtu uint32) {
	if checkMTU(mtu, d.trunk.base.MTU()) == nil {
		d.mtu.Store(mtu)
	}
}

// MTURange implements link.MTUEndpoint.
func (d *Device) MTURange() (least, greatest uint32) { return minMTU, d.trunk.base.MTU() }

// MaxHeaderLength is the link's with room for the tag. It implements
// stack.LinkEndpoint.
func (d *Device) MaxHeaderLength() uint16 { return d.trunk.base.MaxHeaderLength() + tagSize }

// LinkAddress returns the device's own address, or the link's present one. It
// implements stack.LinkEndpoint.
func (d *Device) LinkAddress() tcpip.LinkAddress {
	if own := d.own.Load(); own != nil {
		return *own
	}
	return d.trunk.base.LinkAddress()
}

// SetLinkAddress is ChangeLinkAddress without its error: read back with
// LinkAddress. It implements stack.LinkEndpoint.
func (d *Device) SetLinkAddress(addr tcpip.LinkAddress) { _ = d.ChangeLinkAddress(addr) }

// Capabilities are the link's, but for transmit checksum offload: netstack does
// not mark what it leaves to that, and the link would have to find it behind the
// tag. It implements stack.LinkEndpoint.
func (d *Device) Capabilities() stack.LinkEndpointCapabilities {
	return d.trunk.base.Capabilities() &^ stack.CapabilityTXChecksumOffload
}

// GSOMaxSize implements stack.GSOEndpoint.
func (d *Device) GSOMaxSize() uint32 {
	if !d.TakesTaggedGSO() {
		return 0
	}
	return gsoMaxSize(d.trunk.base)
}

// SupportedGSO is the link's, or none where the link cannot segment packets with
// tags. It implements stack.GSOEndpoint.
func (d *Device) SupportedGSO() stack.SupportedGSO {
	if !d.TakesTaggedGSO() {
		return stack.GSONotSupported
	}
	return supportedGSO(d.trunk.base)
}

// TakesTaggedGSO implements link.TaggedGSOEndpoint.
func (d *Device) TakesTaggedGSO() bool { return link.TakesTaggedGSO(d.trunk.base) }

// ARPHardwareType implements stack.LinkEndpoint.
func (d *Device) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// AddHeader pushes the Ethernet header with the tags of the device and of those
// below it. The source is the present address: routes remember old ones. It
// implements stack.LinkEndpoint.
func (d *Device) AddHeader(pkt *stack.PacketBuffer) {
	b := pkt.LinkHeader().Push(ethernetSize + tagSize*len(d.path))
	copy(b, pkt.EgressRoute.RemoteLinkAddress)
	copy(b[header.EthernetAddressSize:], d.LinkAddress())
	for i, device := range d.path {
		putTag(b[addressesSize+tagSize*i:], device.tag, device.priorityFor(pkt))
	}
	binary.BigEndian.PutUint16(b[len(b)-2:], uint16(pkt.NetworkProtocolNumber))
}

func (d *Device) priorityFor(pkt *stack.PacketBuffer) uint8 {
	if d.priorityOf != nil {
		return d.priorityOf(pkt)
	}
	return d.priority
}

// ParseHeader consumes a plain Ethernet header: the frames of the device have no
// tag for those above. It implements stack.LinkEndpoint.
func (d *Device) ParseHeader(pkt *stack.PacketBuffer) bool {
	_, ok := pkt.LinkHeader().Consume(ethernetSize)
	return ok
}

// Attach implements stack.LinkEndpoint. It waits for nothing.
func (d *Device) Attach(n stack.NetworkDispatcher) {
	d.trunk.change(func() {
		if !d.closed.Load() {
			d.upper.dispatcher = n
		}
	})
	d.trunk.attach()
}

// IsAttached implements stack.LinkEndpoint.
func (d *Device) IsAttached() bool {
	r := d.trunk.table.Load().devices[d.tag]
	return r != nil && r.dispatcher != nil && !d.closed.Load()
}

// Wait implements stack.LinkEndpoint. The device has no goroutine.
func (d *Device) Wait() {}

// SetOnCloseAction implements stack.LinkEndpoint. The action is called when the
// device, its trunk or the link is closed.
func (d *Device) SetOnCloseAction(f func()) {
	d.trunk.mu.Lock()
	defer d.trunk.mu.Unlock()
	if !d.closed.Load() {
		d.upper.onClose = f
	}
}

// Close ends the device: its tag is unknown from then on. The link stays open. It
// implements stack.LinkEndpoint. A second call does nothing.
func (d *Device) Close() {
	t := d.trunk
	if !t.leave(d) {
		return
	}
	d.closed.Store(true)
	t.untellBase(d)
	t.forget(d)
	t.attach()
	t.mu.Lock()
	action := d.upper.onClose
	d.upper.end()
	t.mu.Unlock()
	t.route()
	if action != nil {
		action()
	}
}

// AddVLAN refuses the device's own tag: the frames of a VLAN device above a bond
// on this device could not be told from the device's own. It implements
// link.VLANEndpoint for a bond that has the device as a slave.
func (d *Device) AddVLAN(tag link.VLANTag, _ func() tcpip.LinkAddress) error {
	if tag == d.tag {
		return fmt.Errorf("vlan: VLAN %s: it is the tag of the device below as well, which is not allowed through a bond", tag)
	}
	return nil
}

// RemoveVLAN implements link.VLANEndpoint.
func (d *Device) RemoveVLAN(link.VLANTag) {}
