package packet

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// virtioSize is the size in bytes of the header that goes before each frame:
// struct virtio_net_hdr of linux/virtio_net.h, in the machine's byte order as
// packet sockets have it.
const virtioSize = 10

// gsoMaxSize is the greatest packet that the stack above may hand over to be
// segmented: what an IPv4 header can say, rounded up as netstack wants it.
const gsoMaxSize = 65536

// Values of the virtio header (virtio 1.2, section 5.1.6).
const (
	virtioNeedsChecksum = 1 // flags: the checksum is partial
	virtioDataValid     = 2 // flags: the checksum was verified

	virtioGSOTCPv4 = 1
	virtioGSOTCPv6 = 4
	// virtioGSODatagrams: several UDP datagrams (VIRTIO_NET_HDR_GSO_UDP_L4).
	virtioGSODatagrams = 5
	virtioGSOECN       = 0x80 // set beside a TCP type
)

// virtioHeader is the header in its parts.
type virtioHeader struct {
	flags   uint8
	gsoType uint8
	// headerLen is the length of all headers of the frame, as a hint.
	headerLen uint16
	// gsoSize is the payload of each segment.
	gsoSize uint16
	// checksumStart is where in the frame the checksum begins to be summed,
	// and checksumOffset where from there its result is to be put.
	checksumStart, checksumOffset uint16
}

// parseVirtio reads a header. It is false where b is too short.
func parseVirtio(b []byte) (virtioHeader, bool) {
	if len(b) < virtioSize {
		return virtioHeader{}, false
	}
	return virtioHeader{
		flags:          b[0],
		gsoType:        b[1],
		headerLen:      binary.NativeEndian.Uint16(b[2:]),
		gsoSize:        binary.NativeEndian.Uint16(b[4:]),
		checksumStart:  binary.NativeEndian.Uint16(b[6:]),
		checksumOffset: binary.NativeEndian.Uint16(b[8:]),
	}, true
}

// put writes the header to the first virtioSize bytes of b.
func (h virtioHeader) put(b []byte) {
	_ = b[virtioSize-1]
	b[0], b[1] = h.flags, h.gsoType
	binary.NativeEndian.PutUint16(b[2:], h.headerLen)
	binary.NativeEndian.PutUint16(b[4:], h.gsoSize)
	binary.NativeEndian.PutUint16(b[6:], h.checksumStart)
	binary.NativeEndian.PutUint16(b[8:], h.checksumOffset)
}

// vouched reports whether the kernel vouches for the frame's transport
// checksum.
func (h virtioHeader) vouched() bool {
	return h.flags&(virtioNeedsChecksum|virtioDataValid) != 0
}

// virtioFor returns the header that a packet goes out with.
func virtioFor(pkt *stack.PacketBuffer) virtioHeader {
	gso := &pkt.GSOOptions
	if gso.Type != stack.GSOTCPv4 && gso.Type != stack.GSOTCPv6 {
		return virtioHeader{}
	}
	linkLen := len(pkt.LinkHeader().Slice())
	if linkLen == 0 {
		linkLen = header.EthernetMinimumSize
	}
	h := virtioHeader{headerLen: uint16(pkt.HeaderSize())}
	if gso.NeedsCsum {
		h.flags = virtioNeedsChecksum
		h.checksumStart = uint16(linkLen) + gso.L3HdrLen
		h.checksumOffset = gso.CsumOffset
	}
	// The kernel wants no segmentation data on what is one segment anyway.
	if gso.MSS != 0 && pkt.Data().Size() > int(gso.MSS) {
		h.gsoSize = gso.MSS
		h.gsoType = virtioGSOTCPv4
		if gso.Type == stack.GSOTCPv6 {
			h.gsoType = virtioGSOTCPv6
		}
	}
	return h
}

// gsoOptions returns what the header of a received frame says about its
// segmentation and its checksum, for those who send the frame on: netstack does
// not look at it. linkLen is the length of the link header, which
// checksumStart includes.
func (h virtioHeader) gsoOptions(linkLen int) stack.GSO {
	var gso stack.GSO
	switch h.gsoType &^ virtioGSOECN {
	case virtioGSOTCPv4:
		gso.Type = stack.GSOTCPv4
	case virtioGSOTCPv6:
		gso.Type = stack.GSOTCPv6
	default:
		return gso
	}
	gso.MSS = h.gsoSize
	gso.MaxSize = gsoMaxSize
	if h.flags&virtioNeedsChecksum != 0 && int(h.checksumStart) >= linkLen {
		gso.NeedsCsum = true
		gso.L3HdrLen = h.checksumStart - uint16(linkLen)
		gso.CsumOffset = h.checksumOffset
	}
	return gso
}
