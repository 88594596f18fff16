// Package bridge joins a TAP device with the link below it, such as a bond, so
// that programs of the host, or of a network namespace, use the link by a kernel
// device.
//
//	device, err := tap.New("bond0", tap.Options{PassChecksums: true})
//	b, err := bridge.New(device, bond, bridge.Options{})
//	device.SetUp()
//
// No network stack is between: frames pass as they are. Segments of up to 64 KiB
// pass whole to a link that takes them; a begun TCP checksum is left to the link
// below too, and any other is completed here, in place.
//
// The device follows the link: MAC address, MTU, carrier, speed and duplex mode.
// A device that is made promiscuous, as a port of a kernel's bridge is, makes the
// link so.
//
// The bridge does for the namespace what a stack does that is on a link. When a
// link.Notifier asks, it announces the addresses that the namespace has on the
// device, and those that it has seen the namespace speak from by ARP and neighbour
// discovery (of hosts behind a kernel's bridge, say, each with its own MAC
// address). When a link.MembershipNotifier asks, it has the kernel report its
// multicast memberships, by a query that nobody else sees. A link.RouteUser is
// given the namespace's routes.
//
// # Limits
//
// What somebody sets by hand at the device, its MAC address or MTU, holds until
// the link's changes, and the link does not follow it. An address that was only
// seen is forgotten after five minutes, when another one beyond 256 is seen, when
// somebody on the link speaks from it, or when the namespace deletes it.
package bridge
