package packet

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

func TestSplitDatagrams(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		s := packetSpec{udp: true, v6: r.IntN(2) == 0, tags: r.IntN(maxTags + 1), payload: 1 + r.IntN(5000), padding: r.IntN(5)}
		if !s.v6 {
			s.options = 4 * r.IntN(4)
		}
		whole, network, transport := s.build(r)
		size := 1 + r.IntN(2000)
		want := whole[transport+header.UDPMinimumSize : len(whole)-s.padding]
		var got []byte
		count := 0
		ok := splitDatagrams(whole, size, func(b []byte) {
			if verify([][]byte{b}, false) != checksumGood {
				t.Fatalf("%+v cut at %d: datagram %d has wrong checksums: %x", s, size, count, b)
			}
			if !bytes.Equal(b[:network], whole[:network]) {
				t.Fatalf("%+v: link header %x, want %x", s, b[:network], whole[:network])
			}
			part := b[transport+header.UDPMinimumSize:]
			if n := int(header.UDP(b[transport:]).Length()); n != header.UDPMinimumSize+len(part) {
				t.Fatalf("%+v: length %d of a datagram of %d bytes", s, n, len(part))
			}
			if !s.v6 {
				if id := header.IPv4(b[network:]).ID(); id != uint16(count) {
					t.Fatalf("%+v: identification %d of datagram %d", s, id, count)
				}
			}
			got = append(got, part...)
			count++
		})
		if !ok || !bytes.Equal(got, want) || count != (len(want)+size-1)/size {
			t.Fatalf("%+v cut at %d: %v, %d datagrams with %d bytes, want %d bytes", s, size, ok, count, len(got), len(want))
		}
	}
}

func FuzzSplitDatagrams(f *testing.F) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, s := range []packetSpec{
		{udp: true, payload: 300}, {udp: true, v6: true, payload: 300, tags: 1}, {payload: 30}, {udp: true, v6: true, options: 8},
	} {
		b, _, _ := s.build(r)
		f.Add(b, 100)
		f.Add(b[:len(b)/2], 7)
	}
	f.Fuzz(func(t *testing.T, frame []byte, size int) {
		total := 0
		ok := splitDatagrams(frame, size, func(b []byte) { total++ })
		if ok != (total > 0) || total > len(frame) {
			t.Errorf("splitDatagrams = %v with %d datagrams of %d bytes", ok, total, len(frame))
		}
	})
}
