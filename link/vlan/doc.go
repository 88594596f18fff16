// Package vlan makes VLAN devices (IEEE 802.1Q and 802.1ad) on any link that
// carries Ethernet frames, a bond or another VLAN device among them.
//
// A Trunk takes the link and is its dispatcher. It is itself a link, for the
// frames without a tag, and its devices are links for those with their tag:
//
//	trunk, err := vlan.NewTrunk(bond)
//	dev, err := trunk.Add(link.VLANTag{Protocol: link.TagProtocolQ, ID: 5}, vlan.Options{})
//	host, err := stack.NewHost(trunk, ...)      // untagged
//	_, err = host.AddLink("bond0.5", dev, ...)  // VLAN 5, the same stack
//
// The trunk need not be used as a link: a device can be the only NIC of a stack,
// or a slave of a bond. The link is attached while anything above it is.
//
// A device passes on what the link knows and tells: carrier, speed, requests to
// announce addresses and memberships anew (which then go out tagged), changes.
// Its MAC address is the link's present one unless it is given its own, and its
// MTU the link's unless it is given a smaller one: the tag is no part of the MTU
// (IEEE 802.3, clause 3.2.7, allows four bytes more for tagged frames), and
// MaxHeaderLength has room for it.
//
// Ownership: the trunk has the link from NewTrunk on. Device.Close ends a device;
// Trunk.Close ends all devices, and closes the link.
//
// Limits: at most two tags in a frame (a device on a device). A VLAN device on a
// bond on a VLAN device with the same tag is refused, since its frames could not
// be told from those of the lower one. A link whose kernel takes only frames of
// its own MTU, as packet sockets do for frames with two tags or an 802.1ad tag,
// needs Options.MTUReserve. Priorities of received frames are not used.
package vlan
