package bonding

import (
	"bytes"
	"testing"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// FuzzMayBalance looks at any frame, and at its beginnings: what is decided of a
// beginning as complete is so of the whole, and a beginning of flowHeaders bytes
// decides.
func FuzzMayBalance(f *testing.F) {
	own := []byte{2, 0, 0, 0, 0, 1}
	frame := func(rest ...byte) []byte { return append(append([]byte{2, 0, 0, 0, 0, 9}, own...), rest...) }
	f.Add(frame(8, 0, 0x45), uint8(14))
	f.Add(frame(make([]byte, 60)...), uint8(54)) // EtherType 0 is no frame that is cut off
	f.Add(frame(0x86, 0xdd, 0x60, 0, 0, 0, 0, 4, 58), uint8(20))
	f.Add(frame(0x81, 0, 0, 5, 0x88, 0xa8, 0, 6, 0x86, 0xdd), uint8(19))
	f.Add(append(frame(0x86, 0xdd, 0x60, 0, 0, 0, 0, 4, 58, 255), append(make([]byte, 32), 135)...), uint8(54))
	f.Fuzz(func(t *testing.T, frame []byte, n uint8) {
		whole, _ := flowMayBalance(frame, mac48(own))
		part, complete := flowMayBalance(frame[:min(int(n), len(frame))], mac48(own))
		if complete && part != whole {
			t.Errorf("the first %d bytes say %t as complete, the whole %t: %x", n, part, whole, frame)
		}
		if _, complete := flowMayBalance(frame[:min(flowHeaders, len(frame))], mac48(own)); !complete && len(frame) > flowHeaders {
			t.Errorf("%d bytes do not decide: %x", flowHeaders, frame)
		}
		if whole && (len(frame) < ethernetHeader || frame[0]&1 != 0 || !bytes.Equal(frame[6:12], own)) {
			t.Errorf("balanced: %x", frame)
		}
	})
}

// FuzzWithSource writes a source into a packet in up to three pieces: the clone
// differs in that alone, the packet not at all.
func FuzzWithSource(f *testing.F) {
	f.Add(make([]byte, 60), uint8(3), uint8(8))
	f.Add(make([]byte, 14), uint8(9), uint8(9))
	f.Add(bytes.Repeat([]byte{7}, 100), uint8(0), uint8(200))
	f.Fuzz(func(t *testing.T, frame []byte, x, y uint8) {
		if len(frame) < ethernetHeader {
			return
		}
		i := min(int(x), len(frame))
		j := min(i+int(y), len(frame))
		payload := buffer.MakeWithData(frame[:i])
		for _, piece := range [][]byte{frame[i:j], frame[j:]} {
			b := buffer.MakeWithData(piece)
			payload.Merge(&b)
		}
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: payload})
		defer pkt.DecRef()
		if got := sourceOf(pkt); got != mac48(frame[6:]) {
			t.Errorf("sourceOf() = %x, want %x", got, frame[6:12])
		}
		source := tcpip.LinkAddress("\x02\xaa\xbb\xcc\xdd\xee")
		clone := withSource(pkt, source)
		defer clone.DecRef()
		want := bytes.Clone(frame)
		copy(want[6:], source)
		for _, v := range []struct {
			pkt  *stack.PacketBuffer
			want []byte
		}{{clone, want}, {pkt, frame}} {
			view := v.pkt.ToView()
			if !bytes.Equal(view.AsSlice(), v.want) {
				t.Errorf("%x, want %x", view.AsSlice(), v.want)
			}
			view.Release()
		}
	})
}
