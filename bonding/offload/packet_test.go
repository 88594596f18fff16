package offload_test

import (
	"encoding/binary"
	"math/rand/v2"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// spec describes an outgoing TCP packet as netstack hands it to a link.
type spec struct {
	tags      int  // VLAN tags inside the link header
	v6        bool //
	ipOptions int  // words of IPv4 options
	ext       bool // an IPv6 experiment header and destination options
	tcpWords  int  // words of TCP options
	flags     uint8
	seq       uint32
	id        uint16
	urgent    uint16
	payload   []byte
	cuts      []int // sizes of the views that the payload is spread over
	mss       uint16
	spare     int // header room that is left over
}

func randomSpec(r *rand.Rand, payload int) spec {
	s := spec{
		tags:     r.IntN(3),
		v6:       r.IntN(2) == 0,
		tcpWords: r.IntN(11),
		flags:    uint8(r.Uint32()) &^ 0x06, // no SYN, no RST
		seq:      r.Uint32(),
		id:       uint16(r.Uint32()),
		payload:  randomBytes(r, payload),
		mss:      uint16(1 + r.IntN(9000)),
		spare:    r.IntN(50),
	}
	if r.IntN(2) == 0 {
		s.urgent = uint16(r.IntN(payload + 100))
	}
	if s.v6 {
		s.ext = r.IntN(2) == 0
	} else {
		s.ipOptions = r.IntN(11)
	}
	if payload/int(s.mss) > 300 {
		s.mss = uint16(payload / 300)
	}
	s.cuts = randomCuts(r, payload)
	return s
}

func randomCuts(r *rand.Rand, n int) []int {
	var cuts []int
	most := 1 + r.IntN(n+1)
	for n > 0 {
		c := min(n, 1+r.IntN(most))
		cuts = append(cuts, c)
		n -= c
	}
	return cuts
}

// bufferOf spreads b over views of the given sizes.
func bufferOf(b []byte, cuts []int) buffer.Buffer {
	var all buffer.Buffer
	for _, n := range cuts {
		one := buffer.MakeWithView(buffer.NewViewWithData(b[:n]))
		all.Merge(&one)
		b = b[n:]
	}
	return all
}

func (s *spec) linkLen() int { return header.EthernetMinimumSize + 4*s.tags }

func (s *spec) netLen() int {
	switch {
	case s.v6 && s.ext:
		return header.IPv6MinimumSize + 8 + 16
	case s.v6:
		return header.IPv6MinimumSize
	default:
		return header.IPv4MinimumSize + 4*s.ipOptions
	}
}

func (s *spec) tcpLen() int { return header.TCPMinimumSize + 4*s.tcpWords }

func (s *spec) proto() tcpip.NetworkProtocolNumber {
	if s.v6 {
		return header.IPv6ProtocolNumber
	}
	return header.IPv4ProtocolNumber
}

// build makes the packet, with only the pseudo-header in its TCP checksum.
func (s *spec) build() *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: s.linkLen() + s.netLen() + s.tcpLen() + s.spare,
		Payload:            bufferOf(s.payload, s.cuts),
		Mark:               77,
	})
	s.putTCP(pkt.TransportHeader().Push(s.tcpLen()))
	s.putIP(pkt.NetworkHeader().Push(s.netLen()))
	s.putLink(pkt.LinkHeader().Push(s.linkLen()))
	pkt.NetworkProtocolNumber = s.proto()
	pkt.TransportProtocolNumber = header.TCPProtocolNumber
	pkt.Hash = 0xabcdef
	pkt.EgressRoute.NetProto = s.proto()
	pkt.EgressRoute.RemoteLinkAddress = "\x02\x00\x00\x00\x00\x09"
	pkt.GSOOptions = stack.GSO{
		Type:       stack.GSOTCPv4,
		NeedsCsum:  true,
		CsumOffset: header.TCPChecksumOffset,
		MSS:        s.mss,
		L3HdrLen:   header.IPv4MinimumSize,
		MaxSize:    1 << 16,
	}
	if s.v6 {
		pkt.GSOOptions.Type = stack.GSOTCPv6
		pkt.GSOOptions.L3HdrLen = header.IPv6MinimumSize
	}
	return pkt
}

func (s *spec) putLink(b []byte) {
	copy(b, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02")
	at := 12
	for i := range s.tags {
		tpid := uint16(0x8100)
		if i == 0 && s.tags == 2 {
			tpid = 0x88a8
		}
		binary.BigEndian.PutUint16(b[at:], tpid)
		binary.BigEndian.PutUint16(b[at+2:], uint16(100+i))
		at += 4
	}
	binary.BigEndian.PutUint16(b[at:], uint16(s.proto()))
}

var (
	addr4A = tcpip.AddrFrom4([4]byte{10, 1, 2, 3})
	addr4B = tcpip.AddrFrom4([4]byte{10, 1, 2, 4})
	addr6A = tcpip.AddrFrom16([16]byte{0xfd, 1, 15: 3})
	addr6B = tcpip.AddrFrom16([16]byte{0xfd, 1, 15: 4})
)

func (s *spec) addrs() (src, dst tcpip.Address) {
	if s.v6 {
		return addr6A, addr6B
	}
	return addr4A, addr4B
}

func (s *spec) putIP(b []byte) {
	src, dst := s.addrs()
	if !s.v6 {
		ip := header.IPv4(b)
		for i := header.IPv4MinimumSize; i < len(b); i++ {
			b[i] = 1 // no-operation
		}
		ip.Encode(&header.IPv4Fields{
			TotalLength: uint16(len(b) + s.tcpLen() + len(s.payload)),
			ID:          s.id, TTL: 64, Protocol: uint8(header.TCPProtocolNumber),
			Flags: header.IPv4FlagDontFragment, SrcAddr: src, DstAddr: dst,
		})
		ip.SetHeaderLength(uint8(len(b)))
		ip.SetChecksum(^ip.CalculateChecksum())
		return
	}
	header.IPv6(b).Encode(&header.IPv6Fields{
		PayloadLength:     uint16(len(b) - header.IPv6MinimumSize + s.tcpLen() + len(s.payload)),
		TransportProtocol: header.TCPProtocolNumber, HopLimit: 64, SrcAddr: src, DstAddr: dst,
	})
	if s.ext {
		b[6] = uint8(header.IPv6ExperimentExtHdrIdentifier)
		x := b[header.IPv6MinimumSize:]
		copy(x, []byte{uint8(header.IPv6DestinationOptionsExtHdrIdentifier), 0, 0x12, 0x34, 0, 0, 0, 0})
		copy(x[8:], []byte{uint8(header.TCPProtocolNumber), 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (s *spec) putTCP(b []byte) {
	src, dst := s.addrs()
	tcp := header.TCP(b)
	tcp.Encode(&header.TCPFields{
		SrcPort: 40000, DstPort: 80, SeqNum: s.seq, AckNum: 99,
		DataOffset: uint8(len(b)), Flags: header.TCPFlags(s.flags), WindowSize: 1234,
		UrgentPointer: s.urgent,
	})
	for i := header.TCPMinimumSize; i < len(b); i++ {
		b[i] = byte(1 + i%200)
	}
	n := uint16(len(b) + len(s.payload))
	tcp.SetChecksum(header.PseudoHeaderChecksum(header.TCPProtocolNumber, src, dst, n))
}

// flat returns the bytes of a packet in one piece.
func flat(pkt *stack.PacketBuffer) []byte {
	v := pkt.ToView()
	defer v.Release()
	return v.ToSlice()
}

// inbound makes a received packet of frame, spread over views, with its link
// header consumed.
func inbound(frame []byte, cuts []int, link int) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: bufferOf(frame, cuts)})
	if link > 0 {
		if _, ok := pkt.LinkHeader().Consume(link); !ok {
			panic("frame is shorter than its link header")
		}
	}
	return pkt
}
