package offload

import "gvisor.dev/gvisor/pkg/tcpip/header"

// maxExtensions bounds the IPv6 extension headers that are walked. No known
// sender uses more than four; RFC 8504, section 5.3, lets a host set a limit.
const maxExtensions = 16

// extensions walks the IPv6 extension headers at the front of the span, the
// first of which is of type next. It returns the protocol behind them and
// their length. ok is false where there is no transport header to be summed:
// a fragment, a route that is not finished, headers that are cut short, too
// many of them.
//
// The headers are those that netstack walks: hop-by-hop options, routing,
// destination options, its experiment header (all RFC 8200, section 4.2, type
// and length in the first two bytes), and the fragment header of an atomic
// fragment (RFC 6946), which holds a whole packet.
func (s span) extensions(next uint8) (proto uint8, length int, ok bool) {
	for range maxExtensions {
		var h [8]byte
		switch header.IPv6ExtensionHeaderIdentifier(next) {
		case header.IPv6HopByHopOptionsExtHdrIdentifier,
			header.IPv6RoutingExtHdrIdentifier,
			header.IPv6FragmentExtHdrIdentifier,
			header.IPv6DestinationOptionsExtHdrIdentifier,
			header.IPv6ExperimentExtHdrIdentifier:
		default:
			return next, length, true
		}
		if s.size < len(h) {
			return 0, 0, false
		}
		s.read(h[:])
		n, ok := extensionLength(next, h)
		if !ok || n > s.size {
			return 0, 0, false
		}
		next = h[0]
		length += n
		s = s.from(n)
	}
	return 0, 0, false
}

// extensionLength returns the length of one extension header of which h is
// the start, and whether the packet's transport header can be found behind it.
func extensionLength(typ uint8, h [8]byte) (n int, ok bool) {
	switch header.IPv6ExtensionHeaderIdentifier(typ) {
	case header.IPv6FragmentExtHdrIdentifier:
		// Offset, reserved bits, and the flag for more fragments.
		const offsetAndMore = 0xfff9
		bits := uint16(h[2])<<8 | uint16(h[3])
		return len(h), bits&offsetAndMore == 0
	case header.IPv6RoutingExtHdrIdentifier:
		// The checksum counts the last address of the route (RFC 8200,
		// section 8.1), which is the destination once none are left.
		segmentsLeft := h[3]
		return 8 + 8*int(h[1]), segmentsLeft == 0
	default:
		return 8 + 8*int(h[1]), true
	}
}
