package dedup

import (
	"encoding/binary"
	"hash/maphash"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// headSize is how much of a TCP packet goes into its key: the longest IPv4 and
// TCP headers are 120 bytes, the IPv6 header and the longest of TCP 100.
const headSize = 128

// Key returns a hash of a received frame. link is its link header, from the
// first address to the EtherType; the packet's Data starts with the network
// header. Equal frames have equal keys, however they lie in views. Others
// differ, except with the chance that two random numbers of 64 bits are equal:
// the seed must be secret and random.
//
// Of a TCP packet (IPv4, and IPv6 without extension headers) the first 128
// bytes and the length count: addresses, ports, sequence numbers, flags, window
// and options say which piece of the stream it holds, and the rest of up to 64
// KiB need not be read. The checksum is left out, since it may be whole on one
// slave and begun on another. Of any other frame every byte counts. The length
// is that of the IP or ARP packet where one can be told: padding is no part of
// a frame.
//
// Key changes nothing and allocates nothing.
func Key(seed maphash.Seed, link []byte, pkt *stack.PacketBuffer) uint64 {
	var head [headSize]byte
	size := pkt.Data().Size()
	n := copyData(pkt, head[:])
	length, sum := examine(etherType(link), head[:n], size)

	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(link)
	var number [8]byte
	binary.LittleEndian.PutUint32(number[:], uint32(length))
	binary.LittleEndian.PutUint32(number[4:], uint32(len(link)))
	h.Write(number[:])
	if sum == 0 {
		hashData(&h, pkt, length)
		return h.Sum64()
	}
	head[sum], head[sum+1] = 0, 0
	h.Write(head[:min(n, length)])
	return h.Sum64()
}

// etherType returns the last field of a link header, 0 if there is none.
func etherType(link []byte) tcpip.NetworkProtocolNumber {
	if len(link) < header.EthernetMinimumSize {
		return 0
	}
	return tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(link[len(link)-2:]))
}

// examine returns how many of a packet's size bytes count, and where the TCP
// checksum is, 0 for any other packet. head is the start of the packet.
func examine(typ tcpip.NetworkProtocolNumber, head []byte, size int) (length, sum int) {
	switch typ {
	case header.IPv4ProtocolNumber:
		return examineIPv4(head, size)
	case header.IPv6ProtocolNumber:
		return examineIPv6(head, size)
	case header.ARPProtocolNumber:
		// RFC 826: two addresses of each kind, whose sizes are at 4 and 5.
		if len(head) >= 8 {
			return min(size, 8+2*(int(head[4])+int(head[5]))), 0
		}
	}
	return size, 0
}

// tcpChecksum is the place of the checksum in the TCP header.
const tcpChecksum = 16

func examineIPv4(head []byte, size int) (length, sum int) {
	if len(head) < header.IPv4MinimumSize {
		return size, 0
	}
	ip := header.IPv4(head)
	n, total := int(ip.HeaderLength()), int(ip.TotalLength())
	if ip[0]>>4 != header.IPv4Version || n < header.IPv4MinimumSize || total < n || total > size {
		return size, 0
	}
	if ip.Protocol() == uint8(header.TCPProtocolNumber) && !ip.More() && ip.FragmentOffset() == 0 &&
		min(len(head), total) >= n+header.TCPMinimumSize {
		return total, n + tcpChecksum
	}
	return total, 0
}

func examineIPv6(head []byte, size int) (length, sum int) {
	if len(head) < header.IPv6MinimumSize || head[0]>>4 != header.IPv6Version {
		return size, 0
	}
	ip := header.IPv6(head)
	total := header.IPv6MinimumSize + int(ip.PayloadLength())
	if total == header.IPv6MinimumSize || total > size {
		return size, 0
	}
	if ip.NextHeader() == uint8(header.TCPProtocolNumber) &&
		min(len(head), total) >= header.IPv6MinimumSize+header.TCPMinimumSize {
		return total, header.IPv6MinimumSize + tcpChecksum
	}
	return total, 0
}

// copyData fills b from the front of the packet's data, and returns how many
// bytes there were. It reads the views in place: PullUp would change a packet
// whose header is shared or in pieces.
func copyData(pkt *stack.PacketBuffer, b []byte) int {
	views, skip := pkt.AsViewList()
	skip += pkt.HeaderSize()
	n := 0
	for v := views.Front(); v != nil && n < len(b); v = v.Next() {
		part := v.AsSlice()
		if skip >= len(part) {
			skip -= len(part)
			continue
		}
		n += copy(b[n:], part[skip:])
		skip = 0
	}
	return n
}

// hashData hashes the first n bytes of the packet's data.
func hashData(h *maphash.Hash, pkt *stack.PacketBuffer, n int) {
	views, skip := pkt.AsViewList()
	skip += pkt.HeaderSize()
	for v := views.Front(); v != nil && n > 0; v = v.Next() {
		part := v.AsSlice()
		if skip >= len(part) {
			skip -= len(part)
			continue
		}
		part = part[skip:]
		skip = 0
		if len(part) > n {
			part = part[:n]
		}
		h.Write(part)
		n -= len(part)
	}
}
