package wire_test

import (
	"bytes"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// rawPacket returns a packet whose bytes are all payload.
func rawPacket(b []byte) *stack.PacketBuffer {
	return stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
}

// splitPacket returns a packet with these bytes in views of sizes that splits says,
// and the first headers bytes pushed as a link header.
func splitPacket(b, splits []byte, headers int) *stack.PacketBuffer {
	headers = min(headers, len(b))
	var buf buffer.Buffer
	rest := b[headers:]
	for _, s := range splits {
		n := min(int(s), len(rest))
		var part buffer.Buffer
		part.Append(buffer.NewViewWithData(rest[:n]))
		buf.Merge(&part) // unlike Append, never joins views
		rest = rest[n:]
	}
	var last buffer.Buffer
	last.Append(buffer.NewViewWithData(rest))
	buf.Merge(&last)
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: headers + 3, Payload: buf})
	if headers > 0 {
		copy(p.LinkHeader().Push(headers), b)
	}
	return p
}

// FuzzWrite: any bytes, in any views, with any GSO options, arrive as they were or
// are dropped and counted, whatever the impairments.
func FuzzWrite(f *testing.F) {
	f.Add(linktest.Flow4(0).UDP([]byte("x")), []byte{1, 2, 3}, byte(14), byte(0), uint16(20), uint16(16))
	f.Add(linktest.Flow6(0).TCP(linktest.Segment{Payload: make([]byte, 1800)}), []byte{255, 0, 255}, byte(0), byte(255), uint16(40), uint16(16))
	f.Add([]byte{1, 2, 3}, []byte{}, byte(9), byte(3), uint16(65535), uint16(65535))
	f.Fuzz(func(t *testing.T, b, splits []byte, headers, bits byte, l3, csum uint16) {
		on := func(bit byte) float64 { return float64(bits >> bit & 1) }
		im := wire.Impairments{Corrupt: on(0), Duplicate: on(1), Reorder: on(2), Delay: time.Duration(on(3)) * time.Second, Rate: 1e9 * uint64(on(4))}
		x := newBench(t, wire.Options{A: wire.EndOptions{Impairments: im}})
		p := splitPacket(b, splits, int(headers))
		defer p.DecRef()
		p.GSOOptions = stack.GSO{Type: stack.GSOType(on(5)), NeedsCsum: bits&64 != 0, L3HdrLen: l3, CsumOffset: csum}
		var list stack.PacketBufferList
		list.PushBack(p)
		if n, err := x.a.WritePackets(list); n != 1 || err != nil {
			t.Fatalf("WritePackets() = %d, %v", n, err)
		}
		x.clock.Advance(time.Minute)
		v := p.ToView()
		if !bytes.Equal(v.AsSlice(), b) {
			t.Errorf("the sender's packet has changed to %x", v.AsSlice())
		}
		v.Release()
		s := x.a.Stats()
		got := x.sink.Delivered()
		if want := int(s.TxFrames + s.Impaired.Duplicated); len(got) != want || s.TxFrames+s.Tx.Short+s.Tx.Oversize != 1 {
			t.Errorf("%d delivered, Stats() = %+v", len(got), s)
		}
		for _, d := range got {
			same := bytes.Equal(d.Frame, b)
			if bits&1 == 0 && bits&64 == 0 && !same || len(d.Frame) != len(b) {
				t.Errorf("delivered %x, sent %x", d.Frame, b)
			}
		}
	})
}
