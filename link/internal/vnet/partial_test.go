package vnet

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"bondstack/link/internal/vnet/vnettest"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A checksum that is made partial is seen as such, and completed is the one that
// was there before.
func TestPartialAndComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		s := vnettest.Spec{V6: r.IntN(2) == 0, UDP: r.IntN(2) == 0, Tags: r.IntN(maxTags + 1), Payload: r.IntN(2000)}
		if !s.V6 {
			s.Options = 8 * r.IntN(4)
		}
		frame, _, at := s.Build(r)
		if _, partial := Partial(frame); partial {
			t.Fatalf("%+v: a whole checksum is taken for a partial one", s)
		}
		want := bytes.Clone(frame)
		offset := header.TCPChecksumOffset
		if s.UDP {
			offset = 6
		}
		// What the other words sum up to without the segment is the pseudo-header.
		binary.BigEndian.PutUint16(frame[at+offset:], pseudo(s, len(frame)-at))
		gso, partial := Partial(frame)
		if !partial {
			t.Fatalf("%+v: a partial checksum is not seen", s)
		}
		if got := header.EthernetMinimumSize + int(gso.L3HdrLen); got != at || int(gso.CsumOffset) != offset || !gso.NeedsCsum {
			t.Fatalf("%+v: options %+v, want a segment at %d with its checksum at %d", s, gso, at, offset)
		}
		if Verify([][]byte{frame}, true) != Good {
			t.Fatalf("%+v: a partial checksum spoils the rest", s)
		}
		if !Complete(frame, header.EthernetMinimumSize, gso) || !bytes.Equal(frame, want) {
			t.Fatalf("%+v: the completed frame is not the one before", s)
		}
		frame[at+4]++
		if _, partial := Partial(frame); partial {
			t.Fatalf("%+v: a whole checksum over a wrong byte is taken for a partial one", s)
		}
	}
}

// pseudo sums the pseudo-header of a frame that vnettest made, by hand.
func pseudo(s vnettest.Spec, segment int) uint16 {
	words := []uint32{0x0a00, 0x0001, 0x0a00, 0x0002}
	if s.V6 {
		words = []uint32{0xfd00, 1, 0xfd00, 2}
	}
	sum := uint32(segment) + 6
	if s.UDP {
		sum += 17 - 6
	}
	for _, w := range words {
		sum += w
	}
	return uint16(sum&0xffff + sum>>16)
}

func TestCompleteOutOfBounds(t *testing.T) {
	frame, _, _ := vnettest.Spec{Payload: 10}.Build(rand.New(rand.NewPCG(6, 6)))
	want := bytes.Clone(frame)
	gso, _ := Partial(frame)
	for _, c := range [][2]uint16{{uint16(len(frame)), 0}, {0xffff, 0xffff}, {20, uint16(len(frame) - 20 - 14 - 1)}} {
		gso.L3HdrLen, gso.CsumOffset = c[0], c[1]
		if Complete(frame, header.EthernetMinimumSize, gso) || !bytes.Equal(frame, want) {
			t.Errorf("Complete with %v = true, or changed the frame", c)
		}
	}
}

func FuzzPartial(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, s := range []vnettest.Spec{{Payload: 10}, {V6: true, UDP: true}, {UDP: true, Tags: 2, Options: 8}} {
		frame, _, _ := s.Build(r)
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		gso, partial := Partial(frame)
		if partial && !Complete(bytes.Clone(frame), header.EthernetMinimumSize, gso) {
			t.Errorf("options %+v of a frame of %d bytes do not fit it", gso, len(frame))
		}
	})
}
