package vnet

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"bondstack/link/internal/vnet/vnettest"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

func TestSplitDatagrams(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		s := vnettest.Spec{UDP: true, V6: r.IntN(2) == 0, Tags: r.IntN(maxTags + 1), Payload: 1 + r.IntN(5000), Padding: r.IntN(5)}
		if !s.V6 {
			s.Options = 4 * r.IntN(4)
		}
		whole, network, transport := s.Build(r)
		size := 1 + r.IntN(2000)
		want := whole[transport+header.UDPMinimumSize : len(whole)-s.Padding]
		var got []byte
		count := 0
		ok := SplitDatagrams(whole, size, func(b []byte) {
			if Verify([][]byte{b}, false) != Good {
				t.Fatalf("%+v cut at %d: datagram %d has wrong checksums: %x", s, size, count, b)
			}
			if !bytes.Equal(b[:network], whole[:network]) {
				t.Fatalf("%+v: link header %x, want %x", s, b[:network], whole[:network])
			}
			part := b[transport+header.UDPMinimumSize:]
			if n := int(header.UDP(b[transport:]).Length()); n != header.UDPMinimumSize+len(part) {
				t.Fatalf("%+v: length %d of a datagram of %d bytes", s, n, len(part))
			}
			if !s.V6 {
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
	for _, s := range []vnettest.Spec{
		{UDP: true, Payload: 300}, {UDP: true, V6: true, Payload: 300, Tags: 1}, {Payload: 30}, {UDP: true, V6: true, Options: 8},
	} {
		b, _, _ := s.Build(r)
		f.Add(b, 100)
		f.Add(b[:len(b)/2], 7)
	}
	f.Fuzz(func(t *testing.T, frame []byte, size int) {
		total := 0
		ok := SplitDatagrams(frame, size, func(b []byte) { total++ })
		if ok != (total > 0) || total > len(frame) {
			t.Errorf("SplitDatagrams = %v with %d datagrams of %d bytes", ok, total, len(frame))
		}
	})
}
