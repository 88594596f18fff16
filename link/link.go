// Package link declares what a bond, a stack and the links below them tell
// each other beside gVisor's stack.LinkEndpoint. Every interface here is
// optional, in the manner of stack.GSOEndpoint: a user of an endpoint finds it
// by type assertion, and an endpoint without it still works.
//
//   - StateEndpoint: the link knows its carrier, speed and duplex, and says
//     when they change. A link without it counts as always up, with unknown
//     speed.
//   - FilterEndpoint: the link filters received frames by address and can be
//     told to let more of them through.
//   - MTUEndpoint: the link says which MTUs it can take.
//   - Notifier: the link asks the stack above it to announce its addresses
//     anew, since they can be reached by another place of the network.
//   - MembershipNotifier: the same for multicast memberships.
//   - RouteUser: the link sends packets of its own, and asks the stack for ways.
//   - VLANEndpoint: the link is told of the VLAN devices on it.
//   - TaggedGSOEndpoint: the link segments packets with VLAN tags as well.
//   - Stacked: the link is on another one.
//   - ListDispatcher: what is attached to a link takes frames that came together
//     in one list.
//   - Named: the link shows its name, and is told it.
//   - DeviceTable, Device and DeviceHolder: how a bond takes its slaves from a
//     table of named devices, and hears of their renaming and deletion.
//
// Who calls a link from above may hold locks: a stack its own, a VLAN trunk those
// of its filter, a bond its own. So locks are taken from above downwards, and a link
// tells nothing to those above from within their calls, Close excepted: what
// follows from a call it tells soon after, on a goroutine of its own. Nor does it
// send or deliver frames from within a call other than a write.
//
// The links themselves are in the folders below. All of them carry Ethernet
// frames: they deliver packets whose LinkHeader is consumed, and take packets
// whose LinkHeader is pushed.
package link

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Duplex is the duplex mode of a link. The values are those that Linux
// reports (half 0, full 1, unknown 255), and they compare as Linux bonding
// compares them: unknown is the greatest.
type Duplex uint8

// The duplex modes.
const (
	DuplexHalf    Duplex = 0
	DuplexFull    Duplex = 1
	DuplexUnknown Duplex = 255
)

// String returns "half", "full" or "unknown".
func (d Duplex) String() string {
	switch d {
	case DuplexHalf:
		return "half"
	case DuplexFull:
		return "full"
	default:
		return "unknown"
	}
}

// SpeedUnknown is the speed of a link that does not know it. As in Linux
// bonding it compares as the greatest speed.
const SpeedUnknown uint32 = 1<<32 - 1

// State is what a link knows of itself at one moment.
type State struct {
	// Up is whether the link is administratively up. It is false for a link
	// whose device is gone.
	Up bool
	// Carrier is whether the link has a carrier.
	Carrier bool
	// Speed is in Mbit/s, or SpeedUnknown.
	Speed uint32
	// Duplex is the duplex mode, or DuplexUnknown.
	Duplex Duplex
}

// Usable reports whether frames can pass: the link is up and has a carrier.
func (s State) Usable() bool { return s.Up && s.Carrier }

// AlwaysUp is the state of a link that knows nothing of itself.
var AlwaysUp = State{Up: true, Carrier: true, Speed: SpeedUnknown, Duplex: DuplexUnknown}

// StateEndpoint is implemented by a link that knows its own state.
type StateEndpoint interface {
	// LinkState returns the state now. It must be cheap and must not block: a
	// bond polls it every miimon. A link whose device is a kernel interface
	// may read the kernel's carrier bit here, so that polling finds what the
	// kernel has not yet told.
	LinkState() State

	// SubscribeLinkState has f called after every change of state, from
	// whatever goroutine learns of it, with no lock of the link held, and not
	// within a call from above (see the package's comment): f may take locks
	// and may call any method of the link. Calls may come
	// concurrently and late; f asks LinkState for the truth. cancel ends the
	// subscription; a call already under way may still return after it, so
	// cancel may be called with locks held that f takes.
	SubscribeLinkState(f func()) (cancel func())
}

// StateOf returns the state of an endpoint: its own where it knows it,
// AlwaysUp where not.
func StateOf(ep stack.LinkEndpoint) State {
	if s, ok := ep.(StateEndpoint); ok {
		return s.LinkState()
	}
	return AlwaysUp
}

// FilterEndpoint is implemented by a link that drops received frames by their
// destination. Without it a link is taken to deliver every frame it sees.
type FilterEndpoint interface {
	// SetPromiscuous has the link deliver unicast frames for any address (on)
	// or only those for its own LinkAddress and those added by
	// AddLinkAddress (off). It returns an error that names the link and the
	// reason when the link cannot do so.
	SetPromiscuous(on bool) error
	// AddLinkAddress has unicast frames for addr delivered as well.
	AddLinkAddress(addr tcpip.LinkAddress) error
	// RemoveLinkAddress undoes AddLinkAddress. Removing what was not added
	// does nothing.
	RemoveLinkAddress(addr tcpip.LinkAddress) error
}

// MTUEndpoint is implemented by a link that knows its limits. SetMTU of
// stack.LinkEndpoint returns nothing: who sets an MTU reads it back with MTU.
type MTUEndpoint interface {
	// MTURange returns the least and the greatest MTU that SetMTU accepts.
	MTURange() (least, greatest uint32)
}

// Notifier is implemented by a link whose place in the network can change
// while it stays up, as a bond's does in a failover. A stack subscribes and, at
// each call, announces every address it has on the link: a gratuitous ARP
// request for each IPv4 address, an unsolicited neighbour advertisement for
// each IPv6 address (Linux: NETDEV_NOTIFY_PEERS). How often and how far apart
// is the link's business (num_grat_arp, peer_notif_delay).
type Notifier interface {
	// SubscribeNotifyPeers has f called for each announcement that is due,
	// with no lock of the link held. f sends its frames through the link
	// before it returns. cancel ends the subscription; a call already under
	// way may still return after it.
	SubscribeNotifyPeers(f func()) (cancel func())
}

// ListDispatcher is implemented by what is attached to a link and wants frames that
// came together delivered together, so that it can send them on together, or join
// them. A link may deliver by it or by DeliverNetworkPacket, as it likes.
type ListDispatcher interface {
	stack.NetworkDispatcher
	// DeliverList is given frames as DeliverNetworkPacket is: their LinkHeader
	// is consumed, their NetworkProtocolNumber set, and the list with its
	// references stays the caller's.
	DeliverList(list stack.PacketBufferList)
}

// Named is implemented by a link that shows its name in its status, events and
// logs. A table of named devices tells it the name that it has there.
type Named interface {
	// SetName tells the name. It must be cheap, and must not call the table.
	SetName(name string)
}

// ChangeReporter is implemented by a link that changes in ways of its own, as a
// bond does when its active slave changes.
type ChangeReporter interface {
	// SubscribeChanges has f called after each such change, with no lock of the
	// link held. cancel ends the subscription; a call already under way may
	// still return after it.
	SubscribeChanges(f func()) (cancel func())
}

// DeviceTable is a table of named devices from which a link that is made of
// others, such as a bond, takes them.
type DeviceTable interface {
	// HoldDevice gives the device of that name to a holder, until the holder
	// releases it or LetGo asked for it. It tells the holder the device's name
	// by SetDeviceName before it returns. It returns an error when there is no such
	// device, or a NIC or another holder has it.
	HoldDevice(name string, holder DeviceHolder) (Device, error)
}

// Device is a device that a holder has.
type Device interface {
	// Endpoint returns the device's link.
	Endpoint() stack.LinkEndpoint
	// Changed has the table look at the link's MTU and address, and tell those
	// who watch it of what is new.
	Changed()
	// Release gives the device back. After LetGo was called it does nothing.
	Release()
}

// DeviceHolder is told what becomes of a device that it holds.
type DeviceHolder interface {
	// Name returns the name of the holder, for people.
	Name() string
	// SetDeviceName tells the device's name: once before HoldDevice returns, and
	// at each renaming before others can see the new name. An error prevents
	// the renaming. It is called with the table locked: it must not wait for
	// calls into the table.
	SetDeviceName(name string) error
	// LetGo tells that the device has been deleted. When it returns, the holder
	// no longer uses the endpoint, which the table closes next. No lock of the
	// table is held.
	LetGo()
}

// Gone reports whether an error that a WritePackets returned means that the
// link cannot send at all at this moment (its device is down or deleted, its
// descriptor closed), as opposed to a lack of buffers or a bad frame. gVisor
// maps ENETDOWN, ENXIO, ENODEV, EIO and EBADF to ErrInvalidEndpointState.
func Gone(err tcpip.Error) bool {
	switch err.(type) {
	case *tcpip.ErrInvalidEndpointState, *tcpip.ErrClosedForSend, *tcpip.ErrAborted,
		*tcpip.ErrNotConnected, *tcpip.ErrConnectionAborted, *tcpip.ErrUnknownDevice:
		return true
	}
	return false
}
