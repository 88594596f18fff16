package offload

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Segment cuts pkt into frames with at most GSOOptions.MSS bytes of payload
// each, and appends them to list, in order. A payload that fits one frame, and
// none at all, gives one frame.
//
// pkt is an outgoing packet with its LinkHeader, NetworkHeader and
// TransportHeader pushed and a GSOOptions.Type of GSOTCPv4 or GSOTCPv6. It is
// borrowed: it stays as it is, and its reference stays the caller's. Each
// frame has one reference, which the caller owns; list.Reset drops them and
// keeps the list's memory, so a list that is used again costs no allocation:
//
//	if err := offload.Segment(pkt, list); err != nil { ... count it ... }
//	n, err := slave.WritePackets(*list)
//	list.Reset()
//
// Each frame has its three headers pushed, as much room in front of them as
// pkt has, empty GSOOptions, and pkt's protocol numbers, Hash, Owner, Mark and
// EgressRoute. Headers are copied with these changes (as Linux does them):
//
//   - IPv4: total length, header checksum, and an identification that counts
//     up from pkt's;
//   - IPv6: payload length; extension headers are kept;
//   - TCP: sequence number and a whole checksum; FIN and PSH only on the last
//     frame; CWR only on the first (RFC 3168, section 6.1.2). The urgent
//     pointer counts from each frame's own sequence number, and ends with the
//     frame in which the urgent data ends.
//
// The error is a Fault; then list is as it was.
func Segment(pkt *stack.PacketBuffer, list *stack.PacketBufferList) error {
	var room [maxHeaders]byte
	h, f := parse(pkt, &room)
	if f != 0 {
		return f
	}
	mss := int(pkt.GSOOptions.MSS)
	switch {
	case mss == 0:
		return FaultMSS
	case !h.fits(min(mss, h.payload)):
		return FaultLength
	case h.payload > mss && h.bytes[h.tcp+header.TCPFlagsOffset]&flagsAlone != 0:
		return FaultFlags
	}
	data := dataOf(pkt)
	for i, at := 0, 0; ; i++ {
		n := min(mss, data.size)
		list.PushBack(h.frame(pkt, data, n, at, i))
		at += n
		if data = data.from(n); data.size == 0 {
			return nil
		}
	}
}

// Complete returns a packet like pkt with a whole TCP checksum, for a link
// that would not complete it. pkt is as for Segment, except that MSS does not
// matter, and it is borrowed in the same way. The packet returned has one
// reference, which the caller owns, and differs from pkt as a frame of Segment
// does; its payload is shared with pkt. The error is a Fault.
func Complete(pkt *stack.PacketBuffer) (*stack.PacketBuffer, error) {
	var room [maxHeaders]byte
	h, f := parse(pkt, &room)
	if f != 0 {
		return nil, f
	}
	if !h.fits(h.payload) {
		return nil, FaultLength
	}
	return h.frame(pkt, dataOf(pkt), h.payload, 0, 0), nil
}

const (
	// flagsFirst belong to the first frame only, flagsLast to the last only.
	flagsFirst = tcpFlagCWR
	flagsLast  = uint8(header.TCPFlagFin | header.TCPFlagPsh)
	// flagsAlone cannot be in a packet of several frames.
	flagsAlone = uint8(header.TCPFlagSyn | header.TCPFlagRst)

	// tcpFlagCWR is "congestion window reduced" (RFC 3168), which package
	// header does not name.
	tcpFlagCWR = uint8(0x80)
	// offsets in the TCP header that package header does not name.
	tcpUrgentOffset = 18
)

// frame makes the frame number i, with the first n bytes of data as payload.
// They are the bytes from at on of pkt's payload.
func (h *headers) frame(pkt *stack.PacketBuffer, data span, n, at, i int) *stack.PacketBuffer {
	seg := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: len(h.bytes) + max(0, pkt.AvailableHeaderBytes()),
		Payload:            data.share(n),
		Mark:               pkt.Mark,
	})
	tcp := seg.TransportHeader().Push(len(h.bytes) - h.tcp)
	ip := seg.NetworkHeader().Push(h.tcp - h.net)
	copy(tcp, h.bytes[h.tcp:])
	copy(ip, h.bytes[h.net:])
	copy(seg.LinkHeader().Push(h.net), h.bytes)
	seg.NetworkProtocolNumber = pkt.NetworkProtocolNumber
	seg.TransportProtocolNumber = pkt.TransportProtocolNumber
	seg.Hash = pkt.Hash
	seg.Owner = pkt.Owner
	seg.EgressRoute = pkt.EgressRoute

	length := len(ip) + len(tcp) + n
	if h.v6 {
		header.IPv6(ip).SetPayloadLength(uint16(length - header.IPv6MinimumSize))
	} else {
		patchIPv4(ip, uint16(length), uint16(i))
	}
	patchTCP(tcp, at, n == data.size)
	sum := checksum.Combine(h.pseudo, uint16(len(tcp)+n))
	sum = checksum.Checksum(tcp, sum)
	header.TCP(tcp).SetChecksum(^data.sum(n, sum))
	return seg
}

// patchIPv4 makes the header that of a packet of the given length whose
// identification is counted up by i.
func patchIPv4(ip header.IPv4, length, i uint16) {
	ip.SetTotalLength(length)
	ip.SetID(ip.ID() + i)
	ip.SetChecksum(0)
	ip.SetChecksum(^ip.CalculateChecksum())
}

// patchTCP makes the header that of the frame whose payload starts at the
// byte at of the packet's, with a checksum of zero.
func patchTCP(tcp header.TCP, at int, last bool) {
	tcp.SetChecksum(0)
	if !last {
		tcp[header.TCPFlagsOffset] &^= flagsLast
	}
	if at == 0 {
		return
	}
	tcp.SetSequenceNumber(tcp.SequenceNumber() + uint32(at))
	tcp[header.TCPFlagsOffset] &^= flagsFirst
	if tcp[header.TCPFlagsOffset]&uint8(header.TCPFlagUrg) == 0 {
		return
	}
	urgent := int(binary.BigEndian.Uint16(tcp[tcpUrgentOffset:])) - at
	if urgent <= 0 {
		urgent = 0
		tcp[header.TCPFlagsOffset] &^= uint8(header.TCPFlagUrg)
	}
	binary.BigEndian.PutUint16(tcp[tcpUrgentOffset:], uint16(urgent))
}
