package kernel

import (
	"errors"
	"fmt"

	"bondstack/link"
	"bondstack/link/internal/ethtool"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Observation is what the kernel says of the interface of a name.
type Observation struct {
	// Index is 0 where there is no such interface.
	Index int32
	// Up is whether it is administratively up, Carrier whether it has one.
	Up, Carrier bool
	// MTU is in bytes, without the Ethernet header.
	MTU uint32
}

// Observe asks the kernel about the interface of a name. It takes a few
// microseconds and takes no lock of the kernel's, except that reading the
// carrier takes the lock that changes of interfaces take.
func (n *Namespace) Observe(name string) Observation {
	n.askMu.RLock()
	defer n.askMu.RUnlock()
	request, err := unix.NewIfreq(name)
	if n.ask < 0 || err != nil {
		return Observation{}
	}
	var o Observation
	if unix.IoctlIfreq(n.ask, unix.SIOCGIFINDEX, request) != nil {
		return o
	}
	o.Index = int32(request.Uint32())
	if unix.IoctlIfreq(n.ask, unix.SIOCGIFFLAGS, request) != nil {
		return Observation{}
	}
	flags := request.Uint16()
	o.Up = flags&unix.IFF_UP != 0
	if unix.IoctlIfreq(n.ask, unix.SIOCGIFMTU, request) == nil {
		o.MTU = request.Uint32()
	}
	if o.Up {
		var known bool
		// A driver that cannot tell its carrier leaves the operational state,
		// which is as late as the kernel's news are.
		if o.Carrier, known = ethtool.Carrier(n.ask, name); !known {
			o.Carrier = flags&unix.IFF_RUNNING != 0
		}
	}
	return o
}

// speed asks the kernel for the speed in Mbit/s and the duplex mode.
func (n *Namespace) speed(name string) (uint32, link.Duplex) {
	n.askMu.RLock()
	defer n.askMu.RUnlock()
	if n.ask < 0 {
		return link.SpeedUnknown, link.DuplexUnknown
	}
	return ethtool.Speed(n.ask, name)
}

// Facts is what an endpoint learns when it opens an interface.
type Facts struct {
	Index int32
	MAC   MAC
}

// LookUp finds the interface of a name in the calling thread's namespace, and
// checks that it carries Ethernet frames.
func LookUp(name string) (Facts, error) {
	if len(name) >= unix.IFNAMSIZ || name == "" {
		return Facts{}, fmt.Errorf("the name has %d bytes: 1 to %d are allowed", len(name), unix.IFNAMSIZ-1)
	}
	found, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return Facts{}, ErrNoInterface
	}
	if err != nil {
		return Facts{}, fmt.Errorf("look it up: %w", err)
	}
	attrs := found.Attrs()
	if attrs.EncapType != "ether" || len(attrs.HardwareAddr) != len(MAC{}) {
		return Facts{}, fmt.Errorf("its frames are of type %s: only ethernet interfaces are allowed", attrs.EncapType)
	}
	return Facts{Index: int32(attrs.Index), MAC: MAC(attrs.HardwareAddr)}, nil
}

// Channels asks the kernel how many queues the interface of a name has in use.
// known is false where its driver does not say.
func (n *Namespace) Channels(name string) (receive, transmit int, known bool) {
	n.askMu.RLock()
	defer n.askMu.RUnlock()
	if n.ask < 0 {
		return 0, 0, false
	}
	return ethtool.Channels(n.ask, name)
}

// TakesTagsOut asks the kernel whether the interface of a name may take the VLAN
// tag out of a frame that it receives.
func (n *Namespace) TakesTagsOut(name string) bool {
	n.askMu.RLock()
	defer n.askMu.RUnlock()
	return n.ask >= 0 && ethtool.TakesTagsOut(n.ask, name)
}
