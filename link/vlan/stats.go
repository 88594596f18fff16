package vlan

import "sync/atomic"

// Stats are the frames that a trunk and its devices have dropped. All others are in the counters of the link and of what is above it.
type Stats struct {
	// UnknownVLAN are frames with a tag that no device has. They are passed on
	// to what the trunk itself is attached to, as they are: to a bond, which
	// may have VLAN devices above it, or to a stack, which drops them.
	UnknownVLAN uint64
	// Truncated are frames that end within a tag.
	Truncated uint64
	// Nested are frames with more than eight priority tags.
	Nested uint64
	// OtherHost are unicast frames for an address that the trunk or device has
	// not.
	OtherHost uint64
	// Short are packets that a device was to send, and that had no whole
	// Ethernet header.
	Short uint64
	// Unattached are frames for the trunk or a device while no NIC has it.
	Unattached uint64
}

type counters struct {
	unknownVLAN, truncated, nested, otherHost, short, unattached atomic.Uint64
}

// Stats returns the counters.
func (t *Trunk) Stats() Stats {
	c := &t.stats
	return Stats{
		UnknownVLAN: c.unknownVLAN.Load(),
		Truncated:   c.truncated.Load(),
		Nested:      c.nested.Load(),
		OtherHost:   c.otherHost.Load(),
		Short:       c.short.Load(),
		Unattached:  c.unattached.Load(),
	}
}
