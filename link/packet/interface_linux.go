package packet

import (
	"errors"
	"fmt"

	"bondstack/link"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// observation is what the kernel says of the interface of a name.
type observation struct {
	// index is 0 where there is no such interface.
	index int32
	// up is whether it is administratively up, carrier whether it has one.
	up, carrier bool
	// mtu is in bytes, without the Ethernet header.
	mtu uint32
}

// observe asks the kernel about the interface of a name. It takes a few
// microseconds and takes no lock of the kernel's, except that reading the
// carrier takes the lock that changes of interfaces take.
func (n *namespace) observe(name string) observation {
	n.askMu.RLock()
	defer n.askMu.RUnlock()
	request, err := unix.NewIfreq(name)
	if n.ask < 0 || err != nil {
		return observation{}
	}
	var o observation
	if unix.IoctlIfreq(n.ask, unix.SIOCGIFINDEX, request) != nil {
		return o
	}
	o.index = int32(request.Uint32())
	if unix.IoctlIfreq(n.ask, unix.SIOCGIFFLAGS, request) != nil {
		return observation{}
	}
	flags := request.Uint16()
	o.up = flags&unix.IFF_UP != 0
	if unix.IoctlIfreq(n.ask, unix.SIOCGIFMTU, request) == nil {
		o.mtu = request.Uint32()
	}
	if o.up {
		var known bool
		// A driver that cannot tell its carrier leaves the operational state,
		// which is as late as the kernel's news are.
		if o.carrier, known = ethtoolCarrier(n.ask, name); !known {
			o.carrier = flags&unix.IFF_RUNNING != 0
		}
	}
	return o
}

// speed asks the kernel for the speed in Mbit/s and the duplex mode.
func (n *namespace) speed(name string) (uint32, link.Duplex) {
	n.askMu.RLock()
	defer n.askMu.RUnlock()
	if n.ask < 0 {
		return link.SpeedUnknown, link.DuplexUnknown
	}
	return ethtoolSpeed(n.ask, name)
}

// interfaceFacts is what an endpoint learns when it opens an interface.
type interfaceFacts struct {
	index int32
	mac   macAddress
}

// lookUp finds the interface of a name in the calling thread's namespace, and
// checks that it carries Ethernet frames.
func lookUp(name string) (interfaceFacts, error) {
	if len(name) >= unix.IFNAMSIZ || name == "" {
		return interfaceFacts{}, fmt.Errorf("the name has %d bytes: 1 to %d are allowed", len(name), unix.IFNAMSIZ-1)
	}
	found, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return interfaceFacts{}, ErrNoInterface
	}
	if err != nil {
		return interfaceFacts{}, fmt.Errorf("look it up: %w", err)
	}
	attrs := found.Attrs()
	if attrs.EncapType != "ether" || len(attrs.HardwareAddr) != len(macAddress{}) {
		return interfaceFacts{}, fmt.Errorf("its frames are of type %s: only ethernet interfaces are allowed", attrs.EncapType)
	}
	return interfaceFacts{index: int32(attrs.Index), mac: macAddress(attrs.HardwareAddr)}, nil
}
