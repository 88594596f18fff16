package link

import (
	"fmt"
	"net/netip"
	"strconv"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// VLANTag is one tag of a frame. Two devices on one link have tags that differ
// in Protocol or ID.
type VLANTag struct {
	// Protocol is the tag's EtherType: 0x8100 (802.1Q) or 0x88a8 (802.1ad).
	Protocol uint16
	// ID is the VLAN's number, 0 to 4094; 0 has a priority and no VLAN.
	ID uint16
}

// The protocols of tags.
const (
	TagProtocolQ  uint16 = 0x8100 // IEEE 802.1Q, customer tag
	TagProtocolAD uint16 = 0x88a8 // IEEE 802.1ad, service tag
)

// MaxVLANID is the greatest number of a VLAN; 4095 is reserved (IEEE 802.1Q,
// table 9-2).
const MaxVLANID = 4094

// Validate returns an error that says what is wrong with a tag, if anything is.
func (t VLANTag) Validate() error {
	switch {
	case t.Protocol != TagProtocolQ && t.Protocol != TagProtocolAD:
		return fmt.Errorf("VLAN protocol %#04x is not known: allowed are 0x8100 (802.1Q) and 0x88a8 (802.1ad)", t.Protocol)
	case t.ID > MaxVLANID:
		return fmt.Errorf("VLAN ID %d is out of range: allowed are 0 to %d", t.ID, MaxVLANID)
	}
	return nil
}

// String returns "5" for an 802.1Q tag and "802.1ad:5" for the other kind.
func (t VLANTag) String() string {
	switch t.Protocol {
	case TagProtocolQ:
		return strconv.Itoa(int(t.ID))
	case TagProtocolAD:
		return "802.1ad:" + strconv.Itoa(int(t.ID))
	}
	return fmt.Sprintf("%#04x:%d", t.Protocol, t.ID)
}

// VLANEndpoint is implemented by a link that has to know which VLAN devices are
// directly on it, as a bond does that sends frames of its own for each (Linux:
// the VLAN filter of a device).
type VLANEndpoint interface {
	// AddVLAN tells of a VLAN device. address returns the device's present MAC
	// address; it must be cheap, take no lock that is held over a call to the
	// link, and is called from any goroutine. An error names the tag and the
	// reason.
	AddVLAN(tag VLANTag, address func() tcpip.LinkAddress) error
	// RemoveVLAN undoes AddVLAN. Removing what was not added does nothing.
	RemoveVLAN(tag VLANTag)
}

// Stacked is implemented by a link that is on another one, as a VLAN device, so
// that a bond is not made of links that are on itself.
type Stacked interface {
	// Below returns the link below. The answer never changes.
	Below() stack.LinkEndpoint
}

// Lowest returns the link that is below an endpoint and on no other, the endpoint
// itself where it is not Stacked.
func Lowest(ep stack.LinkEndpoint) stack.LinkEndpoint {
	for {
		s, ok := ep.(Stacked)
		if !ok {
			return ep
		}
		ep = s.Below()
	}
}

// TaggedGSOEndpoint is implemented by a link with host GSO (stack.GSOEndpoint)
// that finds the headers of a packet behind VLAN tags in its link header. For a
// link without it, whoever writes to it segments such packets first: gVisor's
// fdbased takes every link header for one of 14 bytes.
type TaggedGSOEndpoint interface {
	// TakesTaggedGSO reports whether the link takes GSO packets whose link
	// header has one or two tags. The answer never changes.
	TakesTaggedGSO() bool
}

// TakesTaggedGSO reports whether an endpoint takes GSO packets with VLAN tags.
func TakesTaggedGSO(ep stack.LinkEndpoint) bool {
	t, ok := ep.(TaggedGSOEndpoint)
	return ok && t.TakesTaggedGSO()
}

// Routes is what a stack knows of the ways that leave by a link. Its methods
// are called from any goroutine, with no lock of the link held, and may take
// the stack's locks.
type Routes interface {
	// Route returns the way to an address that is one hop away. ok is false
	// where the stack would send by another link. Where it has no route at
	// all the way is empty: no source, no tags.
	Route(target netip.Addr) (way Way, ok bool)
	// Owns reports whether an address belongs to the link or to a device
	// stacked on it.
	Owns(addr netip.Addr) bool
}

// Way is how frames for an address leave a link.
type Way struct {
	// Source is the address that the stack would send from; invalid if it has
	// none that fits.
	Source netip.Addr
	// Tags are those of the VLAN devices on the way, the outermost first.
	Tags []VLANTag
}

// RouteUser is implemented by a link that sends packets of its own on behalf of
// the stack above it, as a bond's ARP monitor does.
type RouteUser interface {
	// UseRoutes gives the link the stack's routes, until cancel is called. The
	// last one given counts. cancel waits for no call under way.
	UseRoutes(r Routes) (cancel func())
}

// MembershipNotifier is implemented by a link that asks the stack above it to
// report its multicast memberships anew, since switches have to learn another
// place for them (Linux: NETDEV_RESEND_IGMP). How often and how far apart is
// the link's business (resend_igmp).
type MembershipNotifier interface {
	// SubscribeResendMemberships has f called for each report that is due,
	// with no lock of the link held. f has its frames sent through the link
	// before it returns or right after. cancel ends the subscription; a call already under
	// way may still return after it.
	SubscribeResendMemberships(f func()) (cancel func())
}
