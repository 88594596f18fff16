package stack

import (
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
)

// Device is a named device as it was in one version of a table: it never
// changes. Who wants to know what became of it looks its index up anew.
type Device struct {
	index    tcpip.NICID
	name     string
	altNames []string
	up       bool
	holder   link.DeviceHolder // nil: none
	port     *devicePort
}

// Index returns the number that is the device's identity: it stays over
// renamings, and is never given to another device of the table. It is the NIC's
// number in the table's gVisor stack.
func (d *Device) Index() tcpip.NICID { return d.index }

// Name returns the device's name.
func (d *Device) Name() string { return d.name }

// AltNames returns the device's alternative names, in the order of adding.
func (d *Device) AltNames() []string { return slices.Clone(d.altNames) }

// Up reports whether the device is administratively up.
func (d *Device) Up() bool { return d.up }

// Holder returns the name of the bond that has the device as a slave, "" when
// none has.
func (d *Device) Holder() string {
	if d.holder == nil {
		return ""
	}
	return d.holder.Name()
}

// HasNIC reports whether the device is a NIC of the table's gVisor stack.
func (d *Device) HasNIC() bool { return d.port.hasNIC }

// Endpoint returns the device's link, nil when it has none.
func (d *Device) Endpoint() netstack.LinkEndpoint { return d.port.link }

// NewDevice says which device to add to a table. Name is required; the zero
// value of every other field is its default.
type NewDevice struct {
	// Name is the device's name, 1 to 15 bytes, none of them a slash, a colon
	// or white space, and not "." or "..". A name with one %d is a template:
	// the lowest free number from 0 to 32767 replaces it.
	Name string
	// AltNames are names of 1 to 127 bytes under which the device is found as
	// well.
	AltNames []string
	// Link is the device's link. It is the table's from then on: deleting the
	// device closes it. A table without a gVisor stack has devices without
	// links as well.
	Link netstack.LinkEndpoint
	// Index is the device's number. It must be greater than every one that the
	// table has used. Default the next one.
	Index tcpip.NICID
	// Unattached has no NIC made of the link, so that a bond can take it as a
	// slave. Devices of a table without a gVisor stack are always so.
	Unattached bool
	// Down has the device begin administratively down.
	Down bool
	// NIC are further options for the NIC. Name must be empty, and Disabled is
	// Down's. Default none.
	NIC *netstack.NICOptions
}
