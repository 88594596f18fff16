package vnet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// SplitDatagrams cuts a frame that a kernel made of several UDP datagrams of a
// size (UDP_SEGMENT, the last may be shorter) into the frames that would have
// been on a wire, and calls each with them in order. A TCP segment of 64 KiB
// may be delivered whole; datagrams may not, since their bounds mean something.
// It is false, and each not called, where the frame is not one.
func SplitDatagrams(frame []byte, size int, each func(frame []byte)) bool {
	s, ok := parseDatagrams(frame)
	if !ok || size <= 0 {
		return false
	}
	payload := frame[s.payload:s.end]
	for i := 0; len(payload) > 0; i++ {
		n := min(size, len(payload))
		b := make([]byte, 0, s.payload+n)
		b = append(append(b, frame[:s.payload]...), payload[:n]...)
		s.finish(b, uint16(i))
		each(b)
		payload = payload[n:]
	}
	return true
}

// datagrams says where the parts of such a frame are.
type datagrams struct {
	v6 bool
	// network, transport and payload are where the headers and the payload
	// begin; end is where the payload ends.
	network, transport, payload, end int
}

// parseDatagrams finds the parts of a frame of UDP over IPv4, or over IPv6
// without extension headers.
func parseDatagrams(frame []byte) (datagrams, bool) {
	protocol, at := networkHeader(frame)
	s := datagrams{network: at}
	switch b := frame[at:]; protocol {
	case header.IPv4ProtocolNumber:
		ip := header.IPv4(b)
		if len(b) < header.IPv4MinimumSize || ip.HeaderLength() < header.IPv4MinimumSize ||
			ip.TransportProtocol() != header.UDPProtocolNumber {
			return s, false
		}
		s.transport = at + int(ip.HeaderLength())
		s.end = at + int(ip.TotalLength())
	case header.IPv6ProtocolNumber:
		ip := header.IPv6(b)
		if len(b) < header.IPv6MinimumSize || tcpip.TransportProtocolNumber(ip.NextHeader()) != header.UDPProtocolNumber {
			return s, false
		}
		s.v6 = true
		s.transport = at + header.IPv6MinimumSize
		s.end = s.transport + int(ip.PayloadLength())
	default:
		return s, false
	}
	s.payload = s.transport + header.UDPMinimumSize
	return s, s.payload < s.end && s.end <= len(frame)
}

// finish gives one datagram its lengths, its identification, counted on from
// the first one's, and its checksums.
func (s datagrams) finish(b []byte, i uint16) {
	udp := header.UDP(b[s.transport:])
	udp.SetLength(uint16(len(udp)))
	var src, dst []byte
	if s.v6 {
		ip := header.IPv6(b[s.network:])
		ip.SetPayloadLength(uint16(len(udp)))
		src, dst = ip.SourceAddressSlice(), ip.DestinationAddressSlice()
	} else {
		ip := header.IPv4(b[s.network:])
		ip.SetTotalLength(uint16(len(b) - s.network))
		ip.SetID(ip.ID() + i)
		ip.SetChecksum(0)
		ip.SetChecksum(^ip.CalculateChecksum())
		src, dst = ip.SourceAddressSlice(), ip.DestinationAddressSlice()
	}
	udp.SetChecksum(0)
	sum := checksum.Combine(checksum.Checksum(src, 0), checksum.Checksum(dst, 0))
	sum = checksum.Combine(sum, uint16(header.UDPProtocolNumber))
	sum = checksum.Combine(sum, uint16(len(udp)))
	sum = ^checksum.Combine(sum, checksum.Checksum(udp, 0))
	if sum == 0 {
		sum = 0xffff // RFC 768: zero says that there is none
	}
	udp.SetChecksum(sum)
}
