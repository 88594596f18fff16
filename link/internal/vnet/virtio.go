package vnet

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Size is the size in bytes of the header that goes before each frame:
// struct virtio_net_hdr of linux/virtio_net.h, in the machine's byte order as
// packet sockets have it.
const Size = 10

// GSOMaxSize is the greatest packet that the stack above may hand over to be
// segmented: what an IPv4 header can say, rounded up as netstack wants it.
const GSOMaxSize = 65536

// Values of the virtio header (virtio 1.2, section 5.1.6).
const (
	// NeedsChecksum, of Flags: the checksum is partial.
	NeedsChecksum = 1
	// DataValid, of Flags: the checksum was verified.
	DataValid = 2

	// TCPv4 and TCPv6, of GSOType: several segments of TCP.
	TCPv4 = 1
	TCPv6 = 4
	// Datagrams: several UDP datagrams (VIRTIO_NET_HDR_GSO_UDP_L4).
	Datagrams = 5
	// ECN is set beside a TCP type.
	ECN = 0x80
)

// Header is the header in its parts.
type Header struct {
	Flags   uint8
	GSOType uint8
	// HeaderLen is the length of all headers of the frame, as a hint.
	HeaderLen uint16
	// GSOSize is the payload of each segment.
	GSOSize uint16
	// ChecksumStart is where in the frame the checksum begins to be summed,
	// and ChecksumOffset where from there its result is to be put.
	ChecksumStart, ChecksumOffset uint16
}

// Parse reads a header. It is false where b is too short.
func Parse(b []byte) (Header, bool) {
	if len(b) < Size {
		return Header{}, false
	}
	return Header{
		Flags:          b[0],
		GSOType:        b[1],
		HeaderLen:      binary.NativeEndian.Uint16(b[2:]),
		GSOSize:        binary.NativeEndian.Uint16(b[4:]),
		ChecksumStart:  binary.NativeEndian.Uint16(b[6:]),
		ChecksumOffset: binary.NativeEndian.Uint16(b[8:]),
	}, true
}

// Put writes the header to the first Size bytes of b.
func (h Header) Put(b []byte) {
	_ = b[Size-1]
	b[0], b[1] = h.Flags, h.GSOType
	binary.NativeEndian.PutUint16(b[2:], h.HeaderLen)
	binary.NativeEndian.PutUint16(b[4:], h.GSOSize)
	binary.NativeEndian.PutUint16(b[6:], h.ChecksumStart)
	binary.NativeEndian.PutUint16(b[8:], h.ChecksumOffset)
}

// Vouched reports whether the kernel vouches for the frame's transport
// checksum.
func (h Header) Vouched() bool {
	return h.Flags&(NeedsChecksum|DataValid) != 0
}

// For returns the header that a packet goes out with: one with GSOOptions of TCP,
// or one whose GSOOptions only say that its checksum is partial.
func For(pkt *stack.PacketBuffer) Header {
	gso := &pkt.GSOOptions
	segments := gso.Type == stack.GSOTCPv4 || gso.Type == stack.GSOTCPv6
	if !segments && (gso.Type != stack.GSONone || !gso.NeedsCsum) {
		return Header{}
	}
	linkLen := len(pkt.LinkHeader().Slice())
	if linkLen == 0 {
		linkLen = header.EthernetMinimumSize
	}
	h := Header{HeaderLen: uint16(pkt.HeaderSize())}
	if gso.NeedsCsum {
		h.Flags = NeedsChecksum
		h.ChecksumStart = uint16(linkLen) + gso.L3HdrLen
		h.ChecksumOffset = gso.CsumOffset
	}
	// The kernel wants no segmentation data on what is one segment anyway.
	if segments && gso.MSS != 0 && pkt.Data().Size() > int(gso.MSS) {
		h.GSOSize = gso.MSS
		h.GSOType = TCPv4
		if gso.Type == stack.GSOTCPv6 {
			h.GSOType = TCPv6
		}
	}
	return h
}

// GSOOptions returns what the header of a received frame says about its
// segmentation and its checksum, for those who send the frame on: netstack does
// not look at it. linkLen is the length of the link header, which
// ChecksumStart includes. A frame that is one segment has Type GSONone, and
// NeedsCsum where its checksum is partial.
func (h Header) GSOOptions(linkLen int) stack.GSO {
	var gso stack.GSO
	switch h.GSOType &^ ECN {
	case TCPv4:
		gso.Type = stack.GSOTCPv4
	case TCPv6:
		gso.Type = stack.GSOTCPv6
	case 0:
	default:
		return gso
	}
	if gso.Type != stack.GSONone {
		gso.MSS = h.GSOSize
		gso.MaxSize = GSOMaxSize
	}
	if h.Flags&NeedsChecksum != 0 && int(h.ChecksumStart) >= linkLen {
		gso.NeedsCsum = true
		gso.L3HdrLen = h.ChecksumStart - uint16(linkLen)
		gso.CsumOffset = h.ChecksumOffset
	}
	return gso
}
