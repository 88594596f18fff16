package gro_test

import (
	"encoding/binary"
	"testing"

	"bondstack/link/gro"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/refs"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// received makes a packet of a frame as a link delivers it, in views of 124 bytes
// and the rest.
func received(frame []byte) *stack.PacketBuffer {
	n := min(124, len(frame))
	payload := buffer.MakeWithData(frame[:n])
	if n < len(frame) {
		payload.Append(buffer.NewViewWithData(frame[n:]))
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: payload})
	if _, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize); ok {
		pkt.NetworkProtocolNumber = tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(frame[12:]))
	}
	return pkt
}

// listOf makes a list of frames.
func listOf(frames [][]byte) stack.PacketBufferList {
	var list stack.PacketBufferList
	for _, f := range frames {
		list.PushBack(received(f))
	}
	return list
}

// result is a frame that came out.
type result struct {
	frame []byte
	gso   stack.GSO
}

// joined returns what comes out for frames, which have to stay as they are.
func joined(tb testing.TB, frames [][]byte) []result {
	tb.Helper()
	list := listOf(frames)
	defer list.Reset()
	return joinList(tb, list)
}

// joinList is joined for a list.
func joinList(tb testing.TB, list stack.PacketBufferList) (out []result) {
	tb.Helper()
	var before []string
	for _, pkt := range list.AsSlice() {
		before = append(before, string(bytesOf(pkt)))
	}
	var j gro.Joiner
	defer j.Reset()
	joined := j.Join(list)
	for _, pkt := range joined.AsSlice() {
		out = append(out, result{bytesOf(pkt), pkt.GSOOptions})
		if protocol := tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(pkt.LinkHeader().Slice()[12:])); protocol != pkt.NetworkProtocolNumber {
			tb.Errorf("protocol %#x of a frame with %#x", pkt.NetworkProtocolNumber, protocol)
		}
	}
	for i, pkt := range list.AsSlice() {
		if string(bytesOf(pkt)) != before[i] {
			tb.Errorf("frame %d was changed", i)
		}
	}
	return out
}

// bytesOf returns the bytes of a packet.
func bytesOf(pkt *stack.PacketBuffer) []byte {
	v := pkt.ToView()
	defer v.Release()
	return append([]byte{}, v.AsSlice()...)
}

// cut segments a frame as its options say, as Linux does in software, and
// completes a partial checksum. It is written on bytes, and shares nothing with
// what it tests.
func cut(tb testing.TB, r result) (segments [][]byte) {
	tb.Helper()
	if !r.gso.NeedsCsum {
		if r.gso.Type != stack.GSONone {
			tb.Fatalf("options %+v without a partial checksum", r.gso)
		}
		return [][]byte{r.frame}
	}
	tcp := 14 + int(r.gso.L3HdrLen)
	data := tcp + int(r.frame[tcp+12]>>4)*4
	net := tcp - 20
	v6 := r.gso.Type == stack.GSOTCPv6 || r.gso.Type == stack.GSONone && r.frame[net]>>4 != 4
	if v6 {
		net = tcp - 40
	}
	mss := int(r.gso.MSS)
	if r.gso.Type == stack.GSONone {
		mss = len(r.frame)
	}
	payload := r.frame[data:]
	for at := 0; at < len(payload); at += mss {
		part := payload[at:min(at+mss, len(payload))]
		b := append(append([]byte{}, r.frame[:data]...), part...)
		if v6 {
			binary.BigEndian.PutUint16(b[net+4:], uint16(len(b)-net-40))
		} else {
			binary.BigEndian.PutUint16(b[net+2:], uint16(len(b)-net))
			binary.BigEndian.PutUint16(b[net+4:], binary.BigEndian.Uint16(b[net+4:])+uint16(len(segments)))
		}
		binary.BigEndian.PutUint32(b[tcp+4:], binary.BigEndian.Uint32(b[tcp+4:])+uint32(at))
		if at+len(part) < len(payload) {
			b[tcp+13] &^= 0x08 // PSH
		}
		segments = append(segments, resum(b, net))
	}
	return segments
}

// resum gives a frame of TCP, whose IP header without options is at net, right
// checksums, and returns it.
func resum(b []byte, net int) []byte {
	tcp, addresses := net+20, b[net+12:net+20]
	if b[net]>>4 == 4 {
		b[net+10], b[net+11] = 0, 0
		binary.BigEndian.PutUint16(b[net+10:], ^checksum.Checksum(b[net:net+20], 0))
	} else {
		tcp, addresses = net+40, b[net+8:net+40]
	}
	b[tcp+16], b[tcp+17] = 0, 0
	sum := checksum.Checksum(addresses, 6+uint16(len(b)-tcp))
	binary.BigEndian.PutUint16(b[tcp+16:], ^checksum.Checksum(b[tcp:], sum))
	return b
}

// stream makes segments of a connection.
type stream struct {
	flow linktest.Flow
	seq  uint32
	id   uint16
	tags int
}

// net returns where in a frame the IP header is.
func (s *stream) net() int { return 14 + 4*s.tags }

// next returns the next segment.
func (s *stream) next(seg linktest.Segment) []byte {
	seg.Seq = s.seq
	s.seq += uint32(len(seg.Payload))
	b := s.flow.TCP(seg)
	for i := range s.tags {
		b = linktest.VLAN(b, []uint16{0x8100, 0x88a8}[i%2], uint16(5+i))
	}
	if b[s.net()]>>4 == 4 {
		binary.BigEndian.PutUint16(b[s.net()+4:], s.id)
		s.id++
	}
	return resum(b, s.net())
}

// bulk returns n segments of a size.
func (s *stream) bulk(n, size int) (frames [][]byte) {
	for range n {
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(int(s.seq) + i)
		}
		frames = append(frames, s.next(linktest.Segment{Payload: payload, Options: []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}}))
	}
	return frames
}

// withoutLeakCheck switches gVisor's leak check off for the rest of a test that
// makes and drops all its packets itself.
func withoutLeakCheck(tb testing.TB) {
	refs.SetLeakMode(refs.NoLeakChecking)
	tb.Cleanup(func() { refs.SetLeakMode(refs.LeaksPanic) })
}
