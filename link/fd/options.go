package fd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Kind is what a descriptor is.
type Kind int

// The kinds of descriptors.
const (
	// Packet is a packet socket that is bound to an interface.
	Packet Kind = iota + 1
	// TAP is a TAP device's queue.
	TAP
	// Socket is a unix socket that keeps the bounds of messages.
	Socket
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case Packet:
		return "packet socket"
	case TAP:
		return "TAP device"
	case Socket:
		return "unix socket"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// ErrNotALink is in the chain of the error of Probe and New for a descriptor that
// cannot be a link.
var ErrNotALink = errors.New("not a link")

// allowed is what can be a link, for errors.
const allowed = "allowed are a packet socket (SOCK_RAW) that is bound to an interface, a TAP device made with IFF_NO_PI, and a connected unix socket of type SOCK_SEQPACKET or SOCK_DGRAM"

// Limits and defaults of Options.
const (
	minMTU     = 68 // the least of IPv4 (RFC 791)
	defaultMTU = 1500
	// MaxMTU is the greatest Options.MTU: with its header, a frame has 65535
	// bytes.
	MaxMTU = 65521
)

// Options are the options of New. All may be left out.
type Options struct {
	// MTU is in bytes, 68 to 65521; 0 means 1500. Longer frames are received
	// all the same.
	MTU uint32
	// Address is the link's Ethernet address; empty means one that is made up.
	Address tcpip.LinkAddress
	// Rand makes the address up; nil means crypto/rand.
	Rand io.Reader
}

// withDefaults checks the options and fills in what they leave out.
func (o Options) withDefaults() (Options, error) {
	if o.MTU == 0 {
		o.MTU = defaultMTU
	}
	if o.MTU < minMTU || o.MTU > MaxMTU {
		return o, fmt.Errorf("MTU %d: allowed are %d to %d, and 0 for %d", o.MTU, minMTU, MaxMTU, defaultMTU)
	}
	if o.Address == "" {
		if o.Rand == nil {
			o.Rand = rand.Reader
		}
		var mac [6]byte
		if _, err := io.ReadFull(o.Rand, mac[:]); err != nil {
			return o, fmt.Errorf("make an address up: %w", err)
		}
		mac[0] = mac[0]&^1 | 2 // of one station, local
		o.Address = tcpip.LinkAddress(mac[:])
	}
	if len(o.Address) != 6 || o.Address[0]&1 != 0 {
		return o, fmt.Errorf("address %x is not that of one station", string(o.Address))
	}
	return o, nil
}
