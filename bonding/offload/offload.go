// Package offload does in software what a slave's link cannot do itself, so
// that a bond can promise the same offloads whatever its slaves are.
//
// A bond always tells netstack that it takes TCP frames of up to 64 KiB whose
// checksum is only begun (host GSO), since a connection keeps for its life
// what it was told when it was made. Once a slave is chosen for such a frame,
// the bond asks Needs what is to be done for that slave:
//
//	switch offload.Needs(pkt, room) {
//	case offload.Nothing: // hand over pkt itself
//	case offload.Checksum: // hand over what Complete returns
//	case offload.Cut: // hand over the list that Segment filled
//	}
//
// and where room is Room(slave), read once when the slave joins. On the
// receiving side Verify checks the checksums of a frame that no link vouched
// for.
//
// Nothing here changes the packet that it is given, not even its inner layout:
// headers are read in place, without PacketBuffer's Slice or PullUp, which
// would copy a shared view inside the packet. So one packet may be read by
// several goroutines at once, and its views may be shared with TCP's
// retransmit queue and with other slaves. What is made shares the payload and
// has headers of its own. Memory comes from gVisor's pools only.
//
// Limits: TCP over IPv4 and IPv6 behind an Ethernet header with at most two
// VLAN tags and headers of at most 256 bytes in sum. There is no segmentation
// of UDP (netstack makes no such packet), and none inside tunnels.
package offload

import (
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Need is what has to be done to a packet before a slave can take it.
type Need uint8

const (
	// Nothing: the slave takes the packet as it is.
	Nothing Need = iota
	// Checksum: the packet fits one frame, but its TCP checksum covers only
	// the pseudo-header. Complete makes a packet with a whole one.
	Checksum
	// Cut: the packet's payload is longer than the MSS. Segment makes frames
	// of it.
	Cut
)

// Room returns the greatest packet, in bytes with all headers, that the
// endpoint takes as host GSO, and 0 for one without host GSO. It is what Needs
// wants to know of a slave. An endpoint that supports only gVisor's own GSO
// takes no packet longer than its MTU, so it counts as one without.
func Room(ep stack.LinkEndpoint) uint32 {
	g, ok := ep.(stack.GSOEndpoint)
	if !ok || g.SupportedGSO() != stack.HostGSOSupported {
		return 0
	}
	return g.GSOMaxSize()
}

// Needs tells what to do to pkt, an outgoing packet with all headers pushed,
// for a slave with the given Room. It reads only GSOOptions and sizes.
//
// Packets that netstack did not mark for host GSO need nothing: they fit the
// MTU and are summed already.
func Needs(pkt *stack.PacketBuffer, room uint32) Need {
	g := &pkt.GSOOptions
	if g.Type != stack.GSOTCPv4 && g.Type != stack.GSOTCPv6 {
		return Nothing
	}
	if room != 0 && pkt.Size() <= int(room) {
		return Nothing
	}
	if pkt.Data().Size() > int(g.MSS) {
		return Cut
	}
	if g.NeedsCsum {
		return Checksum
	}
	return Nothing
}

// Fault is the reason why a packet could not be segmented or completed. It is
// an error of one byte, so that returning and counting it costs nothing.
type Fault uint8

// The faults. Each means that the packet was not made by netstack's TCP, or
// not for a link that carries Ethernet frames.
const (
	// FaultType: the GSO type is not TCP over IPv4 or IPv6, or the headers
	// are of another protocol.
	FaultType Fault = iota + 1
	// FaultMSS: the MSS is 0.
	FaultMSS
	// FaultHeaders: the lengths in the headers do not add up to the headers
	// that were pushed, or a header is cut short or too long.
	FaultHeaders
	// FaultLength: the length in the IP header is not that of the packet, or
	// a segment of the given MSS does not fit an IP packet.
	FaultLength
	// FaultFlags: a SYN or RST that would need more than one segment.
	FaultFlags

	// NumFaults is one more than the greatest fault, for arrays of counters.
	NumFaults
)

var faultTexts = [NumFaults]string{
	FaultType:    "offload: packet is not TCP over IPv4 or IPv6 on Ethernet",
	FaultMSS:     "offload: MSS is 0, allowed are 1 to 65535",
	FaultHeaders: "offload: header lengths do not match the pushed headers, or exceed 256 bytes",
	FaultLength:  "offload: IP length does not match the packet, or a segment would exceed 65535 bytes",
	FaultFlags:   "offload: SYN or RST with more payload than the MSS",
}

// Error returns a constant text.
func (f Fault) Error() string {
	if f == 0 || f >= NumFaults {
		return "offload: unknown fault"
	}
	return faultTexts[f]
}
