package lacp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// MAC is an Ethernet address.
type MAC [6]byte

// String returns the address in hex with colons.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// State is the state octet of an actor or a partner (IEEE 802.1AX, 6.4.2.3,
// Actor_State).
type State uint8

// The bits of State.
const (
	Activity        State = 1 << iota // speaks unasked (active LACP)
	Timeout                           // wants a PDU each second (short timeout)
	Aggregation                       // can be aggregated; clear means individual
	Synchronization                   // is attached to the right aggregator
	Collecting                        // takes frames
	Distributing                      // sends frames
	Defaulted                         // uses defaults for a partner that it has not heard
	Expired                           // has not heard its partner in time
)

var stateNames = [8]string{"active", "short_timeout", "aggregating", "in_sync", "collecting",
	"distributing", "defaulted", "expired"}

// Has reports whether all bits of mask are set.
func (s State) Has(mask State) bool { return s&mask == mask }

// String lists the names of the bits that are set, as "ip link" shows them,
// separated by commas.
func (s State) String() string {
	var names []string
	for i, name := range stateNames {
		if s>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// with returns s with the bits of mask set or cleared.
func (s State) with(mask State, on bool) State {
	if on {
		return s | mask
	}
	return s &^ mask
}

// Info is what a PDU tells of one end of a link, in the order of the wire.
type Info struct {
	SystemPriority uint16
	System         MAC
	Key            uint16
	PortPriority   uint16
	Port           uint16
	State          State
}

// infoSize is the size of an Info on the wire without its TLV header and
// without the three reserved octets that follow it.
const infoSize = 15

// heard reports whether the Info is of a partner that exists: the defaults,
// and a broken partner, have an all-zero system.
func (i *Info) heard() bool { return i.System != MAC{} }

// sameEnd reports whether two Infos name the same port with the same
// parameters, the aggregation bit included: what update_Selected and the
// comparison for "matched" look at (IEEE 802.1AX, 6.4.9).
func (i *Info) sameEnd(o *Info) bool {
	return i.Port == o.Port && i.PortPriority == o.PortPriority && i.System == o.System &&
		i.SystemPriority == o.SystemPriority && i.Key == o.Key && (i.State^o.State)&Aggregation == 0
}

func (i *Info) parse(b *[infoSize]byte) {
	i.SystemPriority = binary.BigEndian.Uint16(b[0:])
	i.System = MAC(b[2:8])
	i.Key = binary.BigEndian.Uint16(b[8:])
	i.PortPriority = binary.BigEndian.Uint16(b[10:])
	i.Port = binary.BigEndian.Uint16(b[12:])
	i.State = State(b[14])
}

func (i *Info) emit(b *[infoSize]byte) {
	binary.BigEndian.PutUint16(b[0:], i.SystemPriority)
	copy(b[2:8], i.System[:])
	binary.BigEndian.PutUint16(b[8:], i.Key)
	binary.BigEndian.PutUint16(b[10:], i.PortPriority)
	binary.BigEndian.PutUint16(b[12:], i.Port)
	b[14] = byte(i.State)
}
