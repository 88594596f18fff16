package bridge

import (
	"encoding/binary"

	"bondstack/link"
	"bondstack/link/internal/kernel"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// wholeMSS is a segment size that no frame exceeds: one segment.
const wholeMSS = 1<<16 - 1

// tagSize is the size in bytes of a VLAN tag.
const tagSize = 4

// payload returns the EtherType of a frame behind its tags, where that ends, and
// the tags. It is zero where the frame is cut off before.
func payload(frame []byte) (protocol tcpip.NetworkProtocolNumber, at int) {
	for at = header.EthernetMinimumSize; at <= len(frame); at += tagSize {
		switch t := binary.BigEndian.Uint16(frame[at-2:]); t {
		case link.TagProtocolQ, link.TagProtocolAD:
		default:
			return tcpip.NetworkProtocolNumber(t), at
		}
	}
	return 0, 0
}

// layOut gives a TCP packet the headers that netstack would have given it: what
// is behind the link header, tags included, up to the transport header is the
// network header. It is false where the headers do not fit what the kernel says
// of them.
func layOut(pkt *stack.PacketBuffer) bool {
	gso := &pkt.GSOOptions
	frame := kernel.FirstPiece(pkt)
	protocol, at := payload(frame)
	tcp := header.EthernetMinimumSize + int(gso.L3HdrLen)
	typ := stack.GSOTCPv4
	least := at + header.IPv4MinimumSize
	switch protocol {
	case header.IPv4ProtocolNumber:
	case header.IPv6ProtocolNumber:
		typ = stack.GSOTCPv6
		least = at + header.IPv6MinimumSize
	default:
		return false
	}
	if tcp < least || tcp+header.TCPMinimumSize > len(frame) || gso.Type != stack.GSONone && gso.Type != typ {
		return false
	}
	size := int(header.TCP(frame[tcp:]).DataOffset())
	if size < header.TCPMinimumSize || tcp+size > pkt.Size() {
		return false
	}
	if gso.Type == stack.GSONone {
		gso.Type, gso.MSS = typ, wholeMSS
	}
	if gso.MSS == 0 {
		return false
	}
	pkt.TransportProtocolNumber = header.TCPProtocolNumber
	if _, ok := pkt.NetworkHeader().Consume(tcp - header.EthernetMinimumSize); !ok {
		return false
	}
	_, ok := pkt.TransportHeader().Consume(size)
	return ok
}

// complete completes a begun checksum: the field holds the sum of the
// pseudo-header, and gets that of all from where the transport header begins. The
// frame's memory is nobody else's. It is false where the field is not in the
// frame.
func complete(pkt *stack.PacketBuffer) bool {
	gso := &pkt.GSOOptions
	start := header.EthernetMinimumSize + int(gso.L3HdrLen)
	at := start + int(gso.CsumOffset)
	if at+2 > pkt.Size() {
		return false
	}
	var sum checksum.Checksumer
	views, skip := pkt.AsViewList()
	offset := -skip // of the view in the frame
	var field [2][]byte
	for v := views.Front(); v != nil; v = v.Next() {
		b := v.AsSlice()
		if from := max(start-offset, 0); from < len(b) {
			sum.Add(b[from:])
		}
		for i := range field {
			if n := at + i - offset; n >= 0 && n < len(b) {
				field[i] = b[n : n+1]
			}
		}
		offset += len(b)
	}
	result := ^sum.Checksum()
	if result == 0 {
		result = 0xffff // RFC 768: zero says that there is none
	}
	field[0][0], field[1][0] = byte(result>>8), byte(result)
	gso.NeedsCsum = false
	return true
}
