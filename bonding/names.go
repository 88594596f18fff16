package bonding

import (
	"fmt"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// maxName is the longest name of a device in Linux (IFNAMSIZ less its zero).
const maxName = 15

// CheckName checks the name of a bond or slave by Linux's rules for devices: 1 to 15
// bytes, not "." or "..", without "/", ":" and white space.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("invalid name %q: it has %d bytes, allowed are 1 to %d", name, len(name), maxName)
	case name == "." || name == "..":
		return fmt.Errorf("invalid name %q: it names a folder", name)
	case strings.ContainsAny(name, "/: \t\n\v\f\r"):
		return fmt.Errorf("invalid name %q: it may not hold a slash, a colon or white space", name)
	}
	return nil
}

// checkAddress checks that a link address can be a bond's: six bytes, unicast,
// not zero.
func checkAddress(a tcpip.LinkAddress) error {
	switch {
	case len(a) != header.EthernetAddressSize:
		return fmt.Errorf("link address %q: %w: it has %d bytes, an Ethernet address has 6", a, ErrAddress, len(a))
	case a == header.UnspecifiedEthernetAddress:
		return fmt.Errorf("link address %s: %w: it is zero", a, ErrAddress)
	case header.IsMulticastEthernetAddress(a):
		return fmt.Errorf("link address %s: %w: it is a group's", a, ErrAddress)
	}
	return nil
}

// randomAddress makes a unicast, locally administered address.
func randomAddress(rand func() uint64) tcpip.LinkAddress {
	r := rand()
	a := make([]byte, header.EthernetAddressSize)
	for i := range a {
		a[i] = byte(r >> (8 * i))
	}
	a[0] = a[0]&^1 | 2
	return tcpip.LinkAddress(a)
}
