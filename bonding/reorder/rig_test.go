package reorder

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
)

// rig is a Stage on a manual clock that writes down what is delivered.
type rig struct {
	tb testing.TB
	*Stage
	clock *faketime.ManualClock
	got   []uint32 // the Hash of each packet delivered
}

func newRig(tb testing.TB, o Options) *rig {
	r := &rig{tb: tb, clock: faketime.NewManualClock()}
	o.Clock = r.clock
	o.Deliver = func(pkt *stack.PacketBuffer) { r.got = append(r.got, pkt.Hash) }
	if o.Seed == 0 {
		o.Seed = 1
	}
	r.Stage = New(o)
	tb.Cleanup(func() {
		r.Close()
		if st := r.State(); st.Frames != 0 || st.Bytes != 0 {
			tb.Errorf("after Close the stage holds %+v", st)
		}
		c := r.counters.Counts()
		if c.Held != c.Filled+c.Lost+c.Expired+c.LinkGone+c.Flushed+c.Evicted {
			tb.Errorf("frames were held that did not go on: %+v", c)
		}
	})
	return r
}

// give has a link deliver a frame, known by id.
func (r *rig) give(link int, id uint32, frame []byte) {
	pkt := packet(frame)
	defer pkt.DecRef()
	pkt.Hash = id
	r.Receive(link, pkt)
}

// drain returns what was delivered since it was called last.
func (r *rig) drain() []uint32 {
	got := r.got
	r.got = nil
	return got
}

// packet is a frame as a link delivers it.
func packet(frame []byte) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	if h, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize); ok {
		pkt.NetworkProtocolNumber = tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(h[12:]))
	}
	return pkt
}

// stream is one direction of a connection.
type stream struct {
	src, dst netip.AddrPort
	origin   uint32 // the number of piece 0
}

// size is that of a piece.
const size = 100

func stream4(n int) stream {
	return stream{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), uint16(1000+n)), netip.MustParseAddrPort("10.0.0.2:80"), 0}
}

func stream6(n int) stream {
	return stream{netip.AddrPortFrom(netip.MustParseAddr("fd00::1"), uint16(1000+n)), netip.MustParseAddrPort("[fd00::2]:80"), 0}
}

// piece is the frame of the k-th piece.
func (s stream) piece(k int) []byte {
	return s.segment(linktest.Segment{Seq: s.origin + uint32(k*size), Payload: make([]byte, size)})
}

func (s stream) segment(seg linktest.Segment) []byte {
	typ := uint16(linktest.EtherTypeIPv4)
	if s.src.Addr().Is6() {
		typ = linktest.EtherTypeIPv6
	}
	tcp := linktest.TCP(s.src, s.dst, seg)
	return linktest.Ethernet("\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x02", typ, linktest.IP(s.src.Addr(), s.dst.Addr(), uint8(header.TCPProtocolNumber), tcp))
}
