package vlan

import (
	"slices"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// upper is what a trunk or a device knows of that which is above it. It is
// guarded by Trunk.mu.
type upper struct {
	dispatcher  stack.NetworkDispatcher
	own         tcpip.LinkAddress // empty: the link's present address
	more        []tcpip.LinkAddress
	promiscuous bool
	routes      link.Routes
	onClose     func()
}

// end forgets what is above; what the filter holds for it is freed elsewhere.
func (u *upper) end() { u.dispatcher, u.routes, u.onClose = nil, nil, nil }

// table is all that receiving reads. Trunk.publish builds it and stores it with
// one atomic operation; nobody changes it afterwards.
type table struct {
	untagged receiver
	devices  map[link.VLANTag]*receiver
	// private are the addresses that some receiver has of its own: a frame for
	// one is not for those that have the link's.
	private []uint64
	// promiscuous is whether the link has been made so for some receiver, so
	// that the others get frames that are not for them.
	promiscuous bool
}

// receiver is who gets frames, and which.
type receiver struct {
	dispatcher  stack.NetworkDispatcher // nil: none
	own         uint64                  // 0: the link's
	more        []uint64
	promiscuous bool
}

// publish makes the table that the state gives. mu is held.
func (t *Trunk) publish() {
	next := &table{devices: make(map[link.VLANTag]*receiver, len(t.devices))}
	next.untagged = next.receiver(&t.upper)
	for _, d := range t.devices {
		r := next.receiver(&d.upper)
		next.devices[d.tag] = &r
	}
	next.promiscuous = t.asked.promiscuous > 0
	t.table.Store(next)
}

func (t *table) receiver(u *upper) receiver {
	r := receiver{dispatcher: u.dispatcher, promiscuous: u.promiscuous}
	if u.own != "" {
		r.own = mac48([]byte(u.own))
		t.private = append(t.private, r.own)
	}
	for _, a := range u.more {
		r.more = append(r.more, mac48([]byte(a)))
	}
	t.private = append(t.private, r.more...)
	return r
}

// attached reports whether anything above is.
func (t *Trunk) attached() bool {
	return t.upper.dispatcher != nil ||
		slices.ContainsFunc(t.devices, func(d *Device) bool { return d.upper.dispatcher != nil })
}
