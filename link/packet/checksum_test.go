package packet

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// packetSpec describes a frame to build.
type packetSpec struct {
	v6, udp bool
	tags    int
	// options are the length of IPv4 options or of an IPv6 extension header,
	// a multiple of 8.
	options int
	payload int
	// padding is behind the datagram.
	padding int
}

// build makes a frame with right checksums. transport is where its TCP or UDP
// header begins.
func (s packetSpec) build(r *rand.Rand) (frame []byte, network, transport int) {
	frame = append(frame, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2)
	for range s.tags {
		frame = append(frame, 0x81, 0, 0, 7)
	}
	segment := s.segment(r)
	if s.v6 {
		frame = binary.BigEndian.AppendUint16(frame, uint16(header.IPv6ProtocolNumber))
		network = len(frame)
		transport = network + header.IPv6MinimumSize + s.options
		frame = append(frame, s.ipv6(len(segment))...)
	} else {
		frame = binary.BigEndian.AppendUint16(frame, uint16(header.IPv4ProtocolNumber))
		network = len(frame)
		transport = network + header.IPv4MinimumSize + s.options
		frame = append(frame, s.ipv4(len(segment))...)
	}
	frame = append(frame, segment...)
	for range s.padding {
		frame = append(frame, 0xff) // not zero: it must not be summed
	}
	return frame, network, transport
}

var (
	v4Src, v4Dst = tcpip.AddrFrom4([4]byte{10, 0, 0, 1}), tcpip.AddrFrom4([4]byte{10, 0, 0, 2})
	v6Src, v6Dst = tcpip.AddrFrom16([16]byte{0xfd, 15: 1}), tcpip.AddrFrom16([16]byte{0xfd, 15: 2})
)

// segment makes the TCP or UDP segment.
func (s packetSpec) segment(r *rand.Rand) []byte {
	src, dst := v4Src, v4Dst
	if s.v6 {
		src, dst = v6Src, v6Dst
	}
	payload := make([]byte, s.payload)
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	if s.udp {
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
func (s packetSpec) protocol() uint8 {
	if s.udp {
		return uint8(header.UDPProtocolNumber)
	}
	return uint8(header.TCPProtocolNumber)
}

// ipv4 makes the header for a segment of a size.
func (s packetSpec) ipv4(size int) []byte {
	ip := header.IPv4(make([]byte, header.IPv4MinimumSize+s.options))
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
func (s packetSpec) ipv6(size int) []byte {
	ip := header.IPv6(make([]byte, header.IPv6MinimumSize+s.options))
	ip.Encode(&header.IPv6Fields{
		PayloadLength: uint16(s.options + size), HopLimit: 64, SrcAddr: v6Src, DstAddr: v6Dst,
	})
	ip[header.IPv6NextHeaderOffset] = s.protocol()
	if s.options > 0 {
		ip[header.IPv6NextHeaderOffset] = 60
		ip[header.IPv6MinimumSize] = s.protocol()
		ip[header.IPv6MinimumSize+1] = uint8(s.options/8 - 1)
	}
	return ip
}

// cut cuts a frame into parts as slots have them.
func cut(frame []byte) [][]byte {
	var parts [][]byte
	for i := 0; len(frame) > 0 || i == 0; i++ {
		n := viewSize(i)
		n = min(n, len(frame))
		parts = append(parts, frame[:n])
		frame = frame[n:]
	}
	return parts
}

// viewSize is the size of a part.
func viewSize(i int) int {
	switch i {
	case 0:
		return 124
	case 1:
		return 2048
	}
	return 16384
}

func TestVerifyGoodAndBad(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		s := packetSpec{
			v6: r.IntN(2) == 0, udp: r.IntN(2) == 0, tags: r.IntN(maxTags + 1),
			options: 8 * r.IntN(4), payload: r.IntN(4000), padding: r.IntN(20),
		}
		if r.IntN(20) == 0 {
			s.payload = 60000 + r.IntN(4000)
		}
		frame, network, transport := s.build(r)
		if got := verify(cut(frame), false); got != checksumGood {
			t.Fatalf("%+v: verify of a good frame = %v, want good", s, got)
		}
		// One wrong byte of the segment, anywhere.
		at := transport + r.IntN(len(frame)-s.padding-transport)
		if s.udp {
			at = transport // its length says where it ends
		}
		frame[at] ^= 0x10
		if got := verify(cut(frame), false); got != checksumBad {
			t.Fatalf("%+v: verify with byte %d wrong = %v, want bad", s, at, got)
		}
		if got := verify(cut(frame), true); got != checksumGood {
			t.Fatalf("%+v: verify of a vouched frame = %v, want good", s, got)
		}
		if !s.v6 {
			frame[network+8]++ // time to live
			if got := verify(cut(frame), true); got != checksumBad {
				t.Fatalf("%+v: verify with a wrong IPv4 header = %v, want bad", s, got)
			}
		}
	}
}

func TestVerifyWhatCannotBe(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	v4, n4, t4 := packetSpec{payload: 100}.build(r)
	v6, n6, _ := packetSpec{v6: true, payload: 100}.build(r)
	udp4, _, u4 := packetSpec{udp: true, payload: 100}.build(r)
	udp6, _, u6 := packetSpec{udp: true, v6: true, payload: 100}.build(r)
	edit := func(frame []byte, f func(b []byte)) []byte {
		b := append([]byte{}, frame...)
		f(b)
		return b
	}
	header4 := func(b []byte) {
		ip := header.IPv4(b[n4:])
		ip.SetChecksum(0)
		ip.SetChecksum(^ip.CalculateChecksum())
	}
	for _, c := range []struct {
		name  string
		frame []byte
		want  verdict
	}{
		{"arp", etherTest(0x806, make([]byte, 46)), checksumUnknown},
		{"fragment", edit(v4, func(b []byte) { b[n4+6] = 0x20; b[t4] ^= 1; header4(b) }), checksumUnknown},
		{"later fragment", edit(v4, func(b []byte) { b[n4+7] = 9; b[t4] ^= 1; header4(b) }), checksumUnknown},
		{"icmp", edit(v4, func(b []byte) { b[n4+9] = 1; header4(b) }), checksumUnknown},
		{"ipv6 fragment", edit(v6, func(b []byte) { b[n6+6] = 44 }), checksumUnknown},
		{"longer than the frame", edit(v4, func(b []byte) { b[n4+2]++; header4(b) }), checksumUnknown},
		{"header longer than the datagram", edit(v4, func(b []byte) { b[n4+2], b[n4+3] = 0, 19 }), checksumUnknown},
		{"udp without checksum", edit(udp4, func(b []byte) { b[u4+6], b[u4+7] = 0, 0 }), checksumGood},
		{"udp over ipv6 without checksum", edit(udp6, func(b []byte) { b[u6+6], b[u6+7] = 0, 0 }), checksumBad},
		{"udp too long", edit(udp4, func(b []byte) { b[u4+4]++ }), checksumUnknown},
		{"udp too short", edit(udp4, func(b []byte) { b[u4+4], b[u4+5] = 0, 7 }), checksumUnknown},
	} {
		if got := verify(cut(c.frame), false); got != c.want {
			t.Errorf("%s: verify = %v, want %v", c.name, got, c.want)
		}
	}
	for n := range len(v4) {
		verify(cut(v4[:n]), false)
		verify(cut(v6[:min(n, len(v6))]), false)
	}
}

// etherTest is a frame of a protocol.
func etherTest(protocol uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, tagOffset), protocol)
	return append(b, payload...)
}

func FuzzVerify(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, s := range []packetSpec{
		{payload: 10}, {v6: true, payload: 200}, {udp: true, tags: 1, payload: 300}, {v6: true, udp: true, options: 24},
	} {
		frame, _, _ := s.build(r)
		f.Add(frame, false)
		f.Add(frame, true)
	}
	f.Fuzz(func(t *testing.T, frame []byte, vouched bool) {
		whole := verify([][]byte{frame}, vouched)
		// Where both see the headers, cutting changes nothing.
		if got := verify(cut(frame), vouched); got != whole && got != checksumUnknown {
			t.Errorf("verify of the cut frame = %v, of the whole %v", got, whole)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	frame, _, _ := packetSpec{payload: 64000}.build(rand.New(rand.NewPCG(4, 4)))
	parts := cut(frame)
	for name, vouched := range map[string]bool{"vouched": true, "summed": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				if verify(parts, vouched) != checksumGood {
					b.Fatal("bad")
				}
			}
		})
	}
}
