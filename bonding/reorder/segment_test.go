package reorder

import (
	"bytes"
	"testing"

	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// What a frame's place in its stream is, however the frame lies in memory and
// whatever follows it.
func TestParse(t *testing.T) {
	s4, s6 := stream4(1), stream6(1)
	s4.origin, s6.origin = 7, 7
	options := linktest.Segment{Seq: 7, Payload: make([]byte, 50), Options: make([]byte, 40)}
	big := linktest.Segment{Seq: 1<<32 - 10, Payload: make([]byte, 65000)}
	gigantic := s6.segment(linktest.Segment{Seq: 7, Payload: make([]byte, 100000)})
	gigantic[14+4], gigantic[14+5] = 0, 0
	fragment := s4.piece(0)
	fragment[14+6] |= 0x20 // more fragments
	extension := s6.piece(0)
	extension[14+6] = 0 // hop-by-hop options
	short := s4.piece(0)
	short[14+3]++ // the packet says that it is longer than the frame
	offset := s4.piece(0)
	offset[14+20+12] = 0xf0
	for _, tt := range []struct {
		name          string
		frame         []byte
		ok            bool
		seq, end      uint32
		begins, reset bool
		pure          bool
	}{
		{name: "IPv4", frame: s4.piece(0), ok: true, seq: 7, end: 107},
		{name: "IPv6", frame: s6.piece(0), ok: true, seq: 7, end: 107},
		{name: "options", frame: s4.segment(options), ok: true, seq: 7, end: 57},
		{name: "64 KiB", frame: s4.segment(big), ok: true, seq: 1<<32 - 10, end: 65000 - 10},
		{name: "longer than IPv6 says", frame: gigantic, ok: true, seq: 7, end: 100007},
		{name: "padded", frame: append(s4.segment(linktest.Segment{Seq: 7, Payload: []byte{1}}), make([]byte, 20)...), ok: true, seq: 7, end: 8},
		{name: "one tag", frame: linktest.VLAN(s4.piece(0), 0x8100, 5), ok: true, seq: 7, end: 107},
		{name: "two tags", frame: linktest.VLAN(linktest.VLAN(s6.piece(0), 0x8100, 5), 0x88a8, 6), ok: true, seq: 7, end: 107},
		{name: "SYN", frame: s4.kind(0, "syn"), ok: true, seq: 6, end: 7, begins: true},
		{name: "FIN", frame: s4.kind(0, "fin"), ok: true, seq: 7, end: 8},
		{name: "RST", frame: s4.kind(0, "rst"), ok: true, seq: 7, end: 7, reset: true},
		{name: "acknowledgement", frame: s4.kind(0, "ack"), ok: true, seq: 7, end: 7, pure: true},
		{name: "padded acknowledgement", frame: append(s4.kind(0, "ack"), 0, 0, 0, 0, 0, 0), ok: true, seq: 7, end: 7, pure: true},
		{name: "nothing said", frame: s4.segment(linktest.Segment{Seq: 7, Flags: header.TCPFlagPsh})},
		{name: "three tags", frame: linktest.VLAN(linktest.VLAN(linktest.VLAN(s4.piece(0), 0x8100, 5), 0x8100, 5), 0x8100, 6)},
		{name: "fragment", frame: fragment},
		{name: "extension header", frame: extension},
		{name: "cut off", frame: short},
		{name: "TCP header longer than the packet", frame: offset[:14+20+30]},
		{name: "empty", frame: s4.piece(0)[:14]},
		{name: "UDP", frame: linktest.Ethernet("\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x02", linktest.EtherTypeIPv4,
			linktest.IP(s4.src.Addr(), s4.dst.Addr(), 17, linktest.UDP(s4.src, s4.dst, make([]byte, 50))))},
	} {
		for cut := range min(len(tt.frame), 100) {
			pkt := pieces(tt.frame, cut)
			var seg segment
			ok := seg.parse(pkt)
			got := segment{seq: seg.seq, end: seg.end, begins: seg.begins, reset: seg.reset, pure: seg.pure}
			want := segment{seq: tt.seq, end: tt.end, begins: tt.begins, reset: tt.reset, pure: tt.pure}
			if ok != tt.ok || ok && got != want {
				t.Errorf("%s, cut at %d: parse = %v, %+v, want %v, %+v", tt.name, cut, ok, got, tt.ok, want)
			}
			pkt.DecRef()
		}
	}
}

// pieces is a received frame whose data lies in two views, cut after some bytes.
func pieces(frame []byte, cut int) *stack.PacketBuffer {
	pkt := packet(frame[:min(len(frame), 14+cut)])
	rest := buffer.MakeWithData(frame[min(len(frame), 14+cut):])
	pkt.Data().MergeBuffer(&rest)
	return pkt
}

// Streams that differ in any one of what makes a key are apart, both directions
// of a connection too.
func TestKeys(t *testing.T) {
	frames := map[string][]byte{}
	for _, s := range []stream{stream4(0), stream4(1), stream6(0), stream6(1)} {
		back := stream{src: s.dst, dst: s.src}
		frames[s.src.String()] = s.piece(0)
		frames[s.src.String()+" back"] = back.piece(0)
		frames[s.src.String()+" tagged"] = linktest.VLAN(s.piece(0), 0x8100, 1)
		frames[s.src.String()+" tagged otherwise"] = linktest.VLAN(s.piece(0), 0x8100, 2)
		frames[s.src.String()+" tagged twice"] = linktest.VLAN(linktest.VLAN(s.piece(0), 0x8100, 1), 0x8100, 2)
	}
	keys := map[key]string{}
	for name, f := range frames {
		pkt := packet(f)
		var seg segment
		if !seg.parse(pkt) {
			t.Fatalf("%s does not parse", name)
		}
		if other, ok := keys[seg.key]; ok {
			t.Errorf("%s and %s have one key", name, other)
		}
		keys[seg.key] = name
		pkt.DecRef()
	}
}

// FuzzParse: any bytes may come. What parses has a piece that fits the packet,
// and no byte of the packet is changed.
func FuzzParse(f *testing.F) {
	for _, frame := range [][]byte{stream4(0).piece(0), stream6(0).piece(0), stream4(0).kind(0, "syn"), linktest.VLAN(stream4(0).piece(0), 0x8100, 5)} {
		f.Add(frame, uint8(0))
		f.Add(frame, uint8(30))
	}
	f.Fuzz(func(t *testing.T, frame []byte, cut uint8) {
		pkt := pieces(frame, int(cut))
		defer pkt.DecRef()
		var seg segment
		if seg.parse(pkt) {
			if n := seg.end - seg.seq; int(n) > pkt.Data().Size()+2-header.IPv4MinimumSize-header.TCPMinimumSize || (n == 0) != (seg.reset || seg.pure) && !seg.reset {
				t.Errorf("a piece of %d bytes in a packet of %d", n, pkt.Data().Size())
			}
		}
		view := pkt.ToView()
		defer view.Release()
		if !bytes.Equal(view.AsSlice(), frame) {
			t.Error("the packet was changed")
		}
	})
}
