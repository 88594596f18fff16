package reorder

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// headSize is how much of a frame is looked at: two VLAN tags, the longest IPv4
// header, and TCP's without options.
const headSize = 2*vlanTag + 60 + header.TCPMinimumSize

const vlanTag = 4

// segment is a frame's piece of a TCP stream.
type segment struct {
	key      key
	seq, end uint32 // end is the number after the last, which SYN and FIN have too
	begins   bool   // SYN
	reset    bool   // RST
	pure     bool   // an acknowledgement and nothing else
	ack      uint32
	window   uint16
}

// parse reads the headers of a packet whose link header is consumed. It returns
// false for what is no whole TCP segment, or says nothing. It changes and allocates nothing.
func (seg *segment) parse(pkt *stack.PacketBuffer) bool {
	var copied [headSize]byte
	head := front(pkt, copied[:])
	size := pkt.Data().Size()
	proto := pkt.NetworkProtocolNumber
	for range 2 {
		if proto != vlanProtocol && proto != serviceVLAN || len(head) < vlanTag {
			break
		}
		seg.key.tags = seg.key.tags<<16 | uint32(binary.BigEndian.Uint16(head))
		proto = tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(head[2:]))
		head, size = head[vlanTag:], size-vlanTag
	}
	switch proto {
	case header.IPv4ProtocolNumber:
		return seg.parseIPv4(head, size)
	case header.IPv6ProtocolNumber:
		return seg.parseIPv6(head, size)
	}
	return false
}

// The EtherTypes of tags (IEEE 802.1Q, table 9-1).
const (
	vlanProtocol tcpip.NetworkProtocolNumber = 0x8100
	serviceVLAN  tcpip.NetworkProtocolNumber = 0x88a8
)

func (seg *segment) parseIPv4(head []byte, size int) bool {
	if len(head) < header.IPv4MinimumSize {
		return false
	}
	ip := header.IPv4(head)
	n, total := int(ip.HeaderLength()), int(ip.TotalLength())
	if ip[0]>>4 != header.IPv4Version || n < header.IPv4MinimumSize || total > size ||
		ip.Protocol() != uint8(header.TCPProtocolNumber) || ip.More() || ip.FragmentOffset() != 0 {
		return false
	}
	seg.key.src[0] = uint64(binary.BigEndian.Uint32(head[12:]))
	seg.key.dst[0] = uint64(binary.BigEndian.Uint32(head[16:]))
	return seg.parseTCP(head, n, total)
}

func (seg *segment) parseIPv6(head []byte, size int) bool {
	if len(head) < header.IPv6MinimumSize {
		return false
	}
	ip := header.IPv6(head)
	total := header.IPv6MinimumSize + int(ip.PayloadLength())
	if total == header.IPv6MinimumSize {
		total = size // longer than its field can say
	}
	if head[0]>>4 != header.IPv6Version || total > size || ip.NextHeader() != uint8(header.TCPProtocolNumber) {
		return false
	}
	for i := range 2 {
		seg.key.src[i] = binary.BigEndian.Uint64(head[8+8*i:])
		seg.key.dst[i] = binary.BigEndian.Uint64(head[24+8*i:])
	}
	return seg.parseTCP(head, header.IPv6MinimumSize, total)
}

// parseTCP reads the TCP header at an offset of a packet of total bytes.
func (seg *segment) parseTCP(head []byte, at, total int) bool {
	if at+header.TCPMinimumSize > min(len(head), total) {
		return false
	}
	tcp := header.TCP(head[at:])
	data := total - at - int(tcp.DataOffset())
	if tcp.DataOffset() < header.TCPMinimumSize || data < 0 {
		return false
	}
	seg.key.ports = binary.BigEndian.Uint32(tcp)
	flags := tcp.Flags()
	seg.seq = tcp.SequenceNumber()
	seg.end = seg.seq + uint32(data)
	seg.begins = flags&header.TCPFlagSyn != 0
	if seg.begins {
		seg.end++
	}
	if flags&header.TCPFlagFin != 0 {
		seg.end++
	}
	seg.reset = flags&header.TCPFlagRst != 0
	seg.ack, seg.window = tcp.AckNumber(), tcp.WindowSize()
	seg.pure = seg.end == seg.seq && !seg.reset && flags&header.TCPFlagAck != 0
	return seg.pure || seg.reset || seg.end != seg.seq
}

// front returns the first bytes of a packet's data: as they lie where the headers
// are in one piece, else copied. PullUp would change a packet that others share,
// and bytes of payload are in memory that nobody has fetched yet.
func front(pkt *stack.PacketBuffer, into []byte) []byte {
	views, skip := pkt.AsViewList()
	skip += pkt.HeaderSize()
	n := 0
	for v := views.Front(); v != nil && n < len(into); v = v.Next() {
		part := v.AsSlice()
		if skip >= len(part) {
			skip -= len(part)
			continue
		}
		part = part[skip:]
		skip = 0
		if n == 0 && (len(part) >= len(into) || v.Next() == nil || holdsHeaders(part, pkt.NetworkProtocolNumber)) {
			return part[:min(len(part), len(into))]
		}
		n += copy(into[n:], part)
	}
	return into[:n]
}

// holdsHeaders reports whether bytes hold all that is looked at of a packet
// without a tag.
func holdsHeaders(b []byte, proto tcpip.NetworkProtocolNumber) bool {
	switch proto {
	case header.IPv4ProtocolNumber:
		return len(b) > 0 && len(b) >= int(header.IPv4(b).HeaderLength())+header.TCPMinimumSize
	case header.IPv6ProtocolNumber:
		return len(b) >= header.IPv6MinimumSize+header.TCPMinimumSize
	}
	return false
}
