package probe

import "net/netip"

// MaxTargets is how many targets of each family there may be, as in Linux.
const MaxTargets = 16

// Slots is how many targets there may be of both families.
const Slots = 2 * MaxTargets

// Targets are the addresses that are asked: at most MaxTargets of each family.
// The value is not changed once it is in use.
type Targets struct {
	V4, V6 []netip.Addr
}

// Slot returns the index of a target, those of IPv6 from MaxTargets on. The
// solicited-node group of an IPv6 target stands for the target.
func (t *Targets) Slot(a netip.Addr) (slot int, ok bool) {
	if a.Is4() {
		for i, x := range t.V4 {
			if x == a {
				return i, true
			}
		}
		return 0, false
	}
	for i, x := range t.V6 {
		if x == a || SolicitedNode(x) == a {
			return MaxTargets + i, true
		}
	}
	return 0, false
}

// Standing is what the slave that received a frame is to the bond.
type Standing struct {
	// Active is whether its role is active; a slave that is being tried while
	// there is no active one counts.
	Active bool
	// Proven is whether the active slave has heard a target since it became
	// the active one. Only then is it evidence that a backup hears the active
	// slave's probes: two links that merely hear each other prove nothing.
	Proven bool
	// Asked is whether a slave that is being tried has sent a probe just now,
	// the answer to which may come by the wrong slave, since switches have not
	// learned the new way.
	Asked bool
}

// Witness returns the addresses by which a frame counts: one must be a target's
// and the other one of ours (see IsOurs). ok is false where nothing makes it
// count.
func (m Message) Witness(s Standing) (target, ours netip.Addr, ok bool) {
	switch {
	case s.Active:
		return m.Source, m.Destination, !m.Source.IsUnspecified()
	case s.Proven: // our own probe, on its way to the target
		return m.Destination, m.Source, !m.Destination.IsUnspecified()
	case s.Asked && (m.Kind == Neighbor || m.Reply):
		return m.Source, m.Destination, !m.Source.IsUnspecified()
	}
	return netip.Addr{}, netip.Addr{}, false
}

// IsAllNodes reports whether an address is the group of all nodes, which is
// always ours.
func IsAllNodes(a netip.Addr) bool { return a == netip.IPv6LinkLocalAllNodes() }
