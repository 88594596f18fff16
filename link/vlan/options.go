package vlan

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Options say how a Device is made. The zero value of each field is its default.
type Options struct {
	// LinkAddress is the device's own MAC address. Default: that of the link
	// below, also when it changes (Linux: an inherited address).
	LinkAddress tcpip.LinkAddress
	// MTU is in bytes, 68 up to the MTU of the link below, and never more than
	// that has at the time. Default: the link's.
	MTU uint32
	// MTUReserve is by how many bytes the default MTU is less than the link's:
	// room for tags that a link does not take beyond its MTU, such as packet
	// sockets with any but one 802.1Q tag (Linux reduces the MTU of a VLAN
	// device on a device without room). Default 0.
	MTUReserve uint32
	// Priority is the priority of the frames sent (the tag's PCP, IEEE 802.1Q,
	// clause 6.9.3), 0 to 7. Default 0.
	Priority uint8
	// PriorityOf gives each packet its priority, of which the low three bits
	// count, in the place of Priority (Linux: the egress map). It is called
	// on the sender's goroutine with all headers but the link's pushed, must
	// not change the packet, and must be quick. ClassSelector is one. Default:
	// none.
	PriorityOf func(*stack.PacketBuffer) uint8
}

// minMTU is the least that IPv4 allows (RFC 791).
const minMTU = 68

// maxMTUReserve is room for more tags than a frame can have.
const maxMTUReserve = 64

// validate checks what does not depend on the link below.
func (o Options) validate() error {
	if o.LinkAddress != "" {
		if err := checkAddress(o.LinkAddress); err != nil {
			return err
		}
	}
	if o.MTUReserve > maxMTUReserve {
		return fmt.Errorf("MTU reserve %d is out of range: allowed are 0 to %d", o.MTUReserve, maxMTUReserve)
	}
	if o.Priority > 7 {
		return fmt.Errorf("priority %d is out of range: allowed are 0 to 7", o.Priority)
	}
	return nil
}

// checkMTU checks an MTU that is not the default on a link with another.
func checkMTU(mtu, below uint32) error {
	if mtu < minMTU || mtu > below {
		return fmt.Errorf("MTU %d is out of range: allowed are %d to %d, the MTU of the link below", mtu, minMTU, below)
	}
	return nil
}

func checkAddress(a tcpip.LinkAddress) error {
	if !header.IsValidUnicastEthernetAddress(a) {
		return fmt.Errorf("link address %s cannot be a device's: six bytes are needed, not zero and not a group's", a)
	}
	return nil
}

// ClassSelector is an Options.PriorityOf: the first three bits of the IP header's
// traffic class (RFC 2474, section 4.2.2), and 0 for what is not IP.
func ClassSelector(pkt *stack.PacketBuffer) uint8 {
	ip := pkt.NetworkHeader().Slice()
	if len(ip) < 2 {
		return 0
	}
	switch pkt.NetworkProtocolNumber {
	case header.IPv4ProtocolNumber:
		return ip[1] >> 5
	case header.IPv6ProtocolNumber:
		return ip[0] << 4 >> 5 // the class begins in the low half of the first byte
	}
	return 0
}
