package tap

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Errors that New may have in its chain, beside the kernel's own.
var (
	// ErrNotSupported: this system, or this machine, has no TUN device.
	ErrNotSupported = errors.New("there are no TAP devices")
	// ErrExists: there is an interface of the name already.
	ErrExists = errors.New("there is an interface of this name already")
	// ErrName: the kernel allows no interface of the name.
	ErrName = errors.New("the name is not allowed")
	// ErrPermission: the process may not make a device there.
	ErrPermission = errors.New("not permitted")
)

// Limits of Options.
const (
	// MaxQueues is the greatest Options.Queues.
	MaxQueues = 64
	// MaxMTU is what the kernel allows a TAP device: with its header, a frame
	// has 65535 bytes.
	MaxMTU = 65521
	// maxName is the longest name of a device in Linux (IFNAMSIZ less its zero).
	maxName = 15
)

// Options are the options of New. The zero value is a device with one queue, in
// the namespace of the calling thread, with what addresses the kernel gives it.
type Options struct {
	// Namespace is the network namespace to make the device in, an open file
	// of it such as /run/netns/NAME or /proc/PID/ns/net. It may be closed
	// after New. nil means that of the calling thread.
	Namespace *os.File
	// Queues is how many queues the device has, 1 to 64; 0 means 1.
	Queues int
	// DeviceAddress is the kernel's end's address; empty means one that the
	// kernel makes up.
	DeviceAddress tcpip.LinkAddress
	// Address is this end's; empty means the device's with another first byte.
	Address tcpip.LinkAddress
	// MTU is in bytes, 68 to 65521; 0 means 1500.
	MTU uint32
	// NoGSO has the kernel segment and sum all that it sends by the device, and
	// takes no segmentation from above.
	NoGSO bool
	// PassChecksums leaves checksums to who is attached. See the package comment.
	PassChecksums bool
}

// Validate returns an error that tells all that is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	if o.Queues < 0 || o.Queues > MaxQueues {
		errs = append(errs, fmt.Errorf("queues %d: allowed are 1 to %d, and 0 for 1", o.Queues, MaxQueues))
	}
	if o.MTU != 0 && (o.MTU < minMTU || o.MTU > MaxMTU) {
		errs = append(errs, fmt.Errorf("MTU %d: allowed are %d to %d, and 0 for %d", o.MTU, minMTU, MaxMTU, defaultMTU))
	}
	for _, a := range []struct {
		name string
		addr tcpip.LinkAddress
	}{{"device address", o.DeviceAddress}, {"address", o.Address}} {
		if a.addr != "" {
			if err := checkAddress(a.addr); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", a.name, err))
			}
		}
	}
	return errors.Join(errs...)
}

const (
	minMTU     = 68 // the least of IPv4 (RFC 791)
	defaultMTU = 1500
	// leastIPv6MTU is the least of IPv6 (RFC 8200, section 5).
	leastIPv6MTU = 1280
)

// CheckName returns an error that has ErrName in its chain where the kernel
// allows no interface of the name.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%w: it has %d bytes, allowed are 1 to %d", ErrName, len(name), maxName)
	case name == "." || name == "..":
		return fmt.Errorf("%w: it names a folder", ErrName)
	case name == "all" || name == "default":
		return fmt.Errorf("%w: the kernel has settings for all devices by that name", ErrName)
	case strings.ContainsAny(name, "/: \t\n\v\f\r%\x00"):
		return fmt.Errorf("%w: it may not hold a slash, a colon, a percent sign or white space", ErrName)
	}
	return nil
}

// checkAddress checks that an address is that of one station.
func checkAddress(a tcpip.LinkAddress) error {
	switch {
	case len(a) != 6:
		return fmt.Errorf("%q has %d bytes, an Ethernet address has 6", string(a), len(a))
	case a[0]&1 != 0:
		return fmt.Errorf("%s is a group's", a)
	case a == "\x00\x00\x00\x00\x00\x00":
		return fmt.Errorf("%s is zero", a)
	}
	return nil
}

// Address is an IP address of the device, or of a VLAN device on it.
type Address struct {
	Addr netip.Addr
	// Bits is the length of its network's prefix.
	Bits int
	// Tags are those of the VLAN devices that have the address, the outermost
	// first.
	Tags []link.VLANTag
	// Tentative is whether it is not to be told to others (yet).
	Tentative bool
}
