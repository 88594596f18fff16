// Package vnettest builds frames for tests of what reads them.
package vnettest

import (
	"encoding/binary"
	"math/rand/v2"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Spec describes a frame to build: TCP or UDP over IPv4 or IPv6, on Ethernet.
type Spec struct {
	V6, UDP bool
	Tags    int
	// Options are the length of IPv4 options or of an IPv6 extension header,
	// a multiple of 8.
	Options int
	Payload int
	// Padding is behind the datagram.
	Padding int
}

// Build makes a frame with right checksums. transport is where its TCP or UDP
// header begins.
func (s Spec) Build(r *rand.Rand) (frame []byte, network, transport int) {
	frame = append(frame, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2)
	for range s.Tags {
		frame = append(frame, 0x81, 0, 0, 7)
	}
	segment := s.segment(r)
	if s.V6 {
		frame = binary.BigEndian.AppendUint16(frame, uint16(header.IPv6ProtocolNumber))
		network = len(frame)
		transport = network + header.IPv6MinimumSize + s.Options
		frame = append(frame, s.ipv6(len(segment))...)
	} else {
		frame = binary.BigEndian.AppendUint16(frame, uint16(header.IPv4ProtocolNumber))
		network = len(frame)
		transport = network + header.IPv4MinimumSize + s.Options
		frame = append(frame, s.ipv4(len(segment))...)
	}
	frame = append(frame, segment...)
	for range s.Padding {
		frame = append(frame, 0xff) // not zero: it must not be summed
	}
	return frame, network, transport
}

var (
	v4Src, v4Dst = tcpip.AddrFrom4([4]byte{10, 0, 0, 1}), tcpip.AddrFrom4([4]byte{10, 0, 0, 2})
	v6Src, v6Dst = tcpip.AddrFrom16([16]byte{0xfd, 15: 1}), tcpip.AddrFrom16([16]byte{0xfd, 15: 2})
)

// segment makes the TCP or UDP segment.
func (s Spec) segment(r *rand.Rand) []byte {
	src, dst := v4Src, v4Dst
	if s.V6 {
		src, dst = v6Src, v6Dst
	}
	payload := make([]byte, s.Payload)
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	if s.UDP {
		b := append(make([]byte, header.UDPMinimumSize), payload...)
		udp := header.UDP(b)
		udp.Encode(&header.UDPFields{SrcPort: 1, DstPort: 2, Length: uint16(len(b))})
		sum := header.PseudoHeaderChecksum(header.UDPProtocolNumber, src, dst, uint16(len(b)))
		udp.SetChecksum(^udp.CalculateChecksum(checksum.Checksum(payload, sum)))
		return b
	}
	b := append(make([]byte, header.TCPMinimumSize), payload...)
	tcp := header.TCP(b)
	tcp.Encode(&header.TCPFields{SrcPort: 1, DstPort: 2, DataOffset: header.TCPMinimumSize, Flags: header.TCPFlagAck})
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, src, dst, uint16(len(b)))
	tcp.SetChecksum(^tcp.CalculateChecksum(checksum.Checksum(payload, sum)))
	return b
}

// protocol is that of the segment.
func (s Spec) protocol() uint8 {
	if s.UDP {
		return uint8(header.UDPProtocolNumber)
	}
	return uint8(header.TCPProtocolNumber)
}

// ipv4 makes the header for a segment of a size.
func (s Spec) ipv4(size int) []byte {
	ip := header.IPv4(make([]byte, header.IPv4MinimumSize+s.Options))
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(ip) + size), TTL: 64, Protocol: s.protocol(), SrcAddr: v4Src, DstAddr: v4Dst,
	})
	ip.SetHeaderLength(uint8(len(ip)))
	for i := header.IPv4MinimumSize; i < len(ip); i++ {
		ip[i] = 1 // no operation
	}
	ip.SetChecksum(0)
	ip.SetChecksum(^ip.CalculateChecksum())
	return ip
}

// ipv6 makes the header for a segment of a size.
func (s Spec) ipv6(size int) []byte {
	ip := header.IPv6(make([]byte, header.IPv6MinimumSize+s.Options))
	ip.Encode(&header.IPv6Fields{
		PayloadLength: uint16(s.Options + size), HopLimit: 64, SrcAddr: v6Src, DstAddr: v6Dst,
	})
	ip[header.IPv6NextHeaderOffset] = s.protocol()
	if s.Options > 0 {
		ip[header.IPv6NextHeaderOffset] = 60
		ip[header.IPv6MinimumSize] = s.protocol()
		ip[header.IPv6MinimumSize+1] = uint8(s.Options/8 - 1)
	}
	return ip
}
