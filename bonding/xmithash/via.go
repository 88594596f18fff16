package xmithash

import "fmt"

// Via says how a bond takes a VLAN tag (802.1Q, TPID 0x8100, or 802.1ad, TPID
// 0x88a8) that stands in the bytes of a frame. Linux hashes a frame with a tag
// in its bytes unlike the same frame with the tag beside it, and which of them
// it sees depends on who sent the frame. The vlan+srcmac policy, for instance,
// knows only a tag beside the frame.
type Via uint8

const (
	// VLAN counts the outer tag as beside the frame, as Linux does for all
	// traffic of a VLAN device on a bond. It is the zero value, and what a
	// bond's data path uses.
	//
	// Where more tags follow, layer2 sees the first of them as the EtherType,
	// as Linux does. The policies that look for IP skip them all: Linux finds
	// no IP there, so that everything between two hosts with two tags takes
	// one slave.
	VLAN Via = 0
	// Raw counts every tag as inside the frame, as Linux does for a frame that
	// a program sent with the tag in its bytes (packet sockets): it is then no
	// IP frame, and most policies take the layer-2 hash.
	Raw Via = 1
)

// String returns "vlan" or "raw", or "Via(N)" for another value.
func (v Via) String() string {
	switch v {
	case VLAN:
		return "vlan"
	case Raw:
		return "raw"
	}
	return fmt.Sprintf("Via(%d)", uint8(v))
}

// ParseVia returns the Via named "vlan" or "raw". The error names the value and
// what is allowed.
func ParseVia(s string) (Via, error) {
	switch s {
	case "vlan":
		return VLAN, nil
	case "raw":
		return Raw, nil
	}
	return 0, fmt.Errorf("via %q is unknown, allowed are vlan, raw", s)
}
