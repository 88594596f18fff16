package vnet

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"bondstack/link/internal/vnet/vnettest"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

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
		s := vnettest.Spec{
			V6: r.IntN(2) == 0, UDP: r.IntN(2) == 0, Tags: r.IntN(maxTags + 1),
			Options: 8 * r.IntN(4), Payload: r.IntN(4000), Padding: r.IntN(20),
		}
		if r.IntN(20) == 0 {
			s.Payload = 60000 + r.IntN(4000)
		}
		frame, network, transport := s.Build(r)
		if got := Verify(cut(frame), false); got != Good {
			t.Fatalf("%+v: Verify of a good frame = %v, want good", s, got)
		}
		// One wrong byte of the segment, anywhere.
		at := transport + r.IntN(len(frame)-s.Padding-transport)
		if s.UDP {
			at = transport // its length says where it ends
		}
		frame[at] ^= 0x10
		if got := Verify(cut(frame), false); got != Bad {
			t.Fatalf("%+v: Verify with byte %d wrong = %v, want bad", s, at, got)
		}
		if got := Verify(cut(frame), true); got != Good {
			t.Fatalf("%+v: Verify of a vouched frame = %v, want good", s, got)
		}
		if !s.V6 {
			frame[network+8]++ // time to live
			if got := Verify(cut(frame), true); got != Bad {
				t.Fatalf("%+v: Verify with a wrong IPv4 header = %v, want bad", s, got)
			}
		}
	}
}

func TestVerifyWhatCannotBe(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	v4, n4, t4 := vnettest.Spec{Payload: 100}.Build(r)
	v6, n6, _ := vnettest.Spec{V6: true, Payload: 100}.Build(r)
	udp4, _, u4 := vnettest.Spec{UDP: true, Payload: 100}.Build(r)
	udp6, _, u6 := vnettest.Spec{UDP: true, V6: true, Payload: 100}.Build(r)
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
		want  Verdict
	}{
		{"arp", etherTest(0x806, make([]byte, 46)), Unknown},
		{"fragment", edit(v4, func(b []byte) { b[n4+6] = 0x20; b[t4] ^= 1; header4(b) }), Unknown},
		{"later fragment", edit(v4, func(b []byte) { b[n4+7] = 9; b[t4] ^= 1; header4(b) }), Unknown},
		{"icmp", edit(v4, func(b []byte) { b[n4+9] = 1; header4(b) }), Unknown},
		{"ipv6 fragment", edit(v6, func(b []byte) { b[n6+6] = 44 }), Unknown},
		{"longer than the frame", edit(v4, func(b []byte) { b[n4+2]++; header4(b) }), Unknown},
		{"header longer than the datagram", edit(v4, func(b []byte) { b[n4+2], b[n4+3] = 0, 19 }), Unknown},
		{"udp without checksum", edit(udp4, func(b []byte) { b[u4+6], b[u4+7] = 0, 0 }), Good},
		{"udp over ipv6 without checksum", edit(udp6, func(b []byte) { b[u6+6], b[u6+7] = 0, 0 }), Bad},
		{"udp too long", edit(udp4, func(b []byte) { b[u4+4]++ }), Unknown},
		{"udp too short", edit(udp4, func(b []byte) { b[u4+4], b[u4+5] = 0, 7 }), Unknown},
	} {
		if got := Verify(cut(c.frame), false); got != c.want {
			t.Errorf("%s: verify = %v, want %v", c.name, got, c.want)
		}
	}
	for n := range len(v4) {
		Verify(cut(v4[:n]), false)
		Verify(cut(v6[:min(n, len(v6))]), false)
	}
}

// etherTest is a frame of a protocol.
func etherTest(protocol uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, tagOffset), protocol)
	return append(b, payload...)
}

func FuzzVerify(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, s := range []vnettest.Spec{
		{Payload: 10}, {V6: true, Payload: 200}, {UDP: true, Tags: 1, Payload: 300}, {V6: true, UDP: true, Options: 24},
	} {
		frame, _, _ := s.Build(r)
		f.Add(frame, false)
		f.Add(frame, true)
	}
	f.Fuzz(func(t *testing.T, frame []byte, vouched bool) {
		whole := Verify([][]byte{frame}, vouched)
		// Where both see the headers, cutting changes nothing.
		if got := Verify(cut(frame), vouched); got != whole && got != Unknown {
			t.Errorf("Verify of the cut frame = %v, of the whole %v", got, whole)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	frame, _, _ := vnettest.Spec{Payload: 64000}.Build(rand.New(rand.NewPCG(4, 4)))
	parts := cut(frame)
	for name, vouched := range map[string]bool{"vouched": true, "summed": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				if Verify(parts, vouched) != Good {
					b.Fatal("bad")
				}
			}
		})
	}
}
