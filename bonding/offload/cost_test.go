package offload_test

import (
	"testing"

	"bondstack/bonding/offload"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// full is a GSO packet as netstack makes it: one view, timestamps.
func full(payload int) spec {
	return spec{mss: 1448, payload: make([]byte, payload), cuts: []int{payload}, tcpWords: 3, flags: 0x18}
}

// TestAllocations shows that nothing is allocated beside what gVisor's pools
// lend out.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations are counted without the race detector")
	}
	withoutLeakCheck(t)
	s := full(64000)
	pkt := s.build()
	defer pkt.DecRef()
	one := full(1000)
	small := one.build()
	defer small.DecRef()
	d := datagram{v6: true, ext: []uint8{0, 60}, payload: make([]byte, 1000)}
	in := inbound(d.build(), []int{7, 50, 1000 + 32 - 57 + 72}, 0)
	defer in.DecRef()
	bad := full(5000)
	bad.mss = 0
	faulty := bad.build()
	defer faulty.DecRef()
	var list stack.PacketBufferList
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"Segment", func() {
			if offload.Segment(pkt, &list) != nil {
				panic("Segment failed")
			}
			list.Reset()
		}},
		{"Segment fault", func() {
			if offload.Segment(faulty, &list) == nil {
				panic("Segment did not fail")
			}
		}},
		{"Complete", func() {
			seg, err := offload.Complete(small)
			if err != nil {
				panic(err)
			}
			seg.DecRef()
		}},
		{"Verify", func() {
			if offload.Verify(d.proto(), in) != offload.Good {
				panic("not good")
			}
		}},
		{"Needs", func() { offload.Needs(pkt, 0) }},
	} {
		if got := testing.AllocsPerRun(200, c.f); got != 0 {
			t.Errorf("%s: %v allocations a call, want 0", c.name, got)
		}
	}
}

func perSecond(b *testing.B, bytes int) {
	b.ReportMetric(float64(bytes)*8*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gbit/s")
}

// BenchmarkSegment cuts 64,000 bytes at an MSS of 1448, with timestamps.
func BenchmarkSegment(b *testing.B) {
	for _, c := range []struct {
		name string
		v6   bool
		cuts []int
	}{
		{"v4/64000", false, []int{64000}},
		{"v6/64000", true, []int{64000}},
		{"v4/64000/4views", false, []int{20001, 20001, 20001, 3997}},
	} {
		b.Run(c.name, func(b *testing.B) {
			withoutLeakCheck(b)
			s := full(64000)
			s.v6, s.cuts = c.v6, c.cuts
			pkt := s.build()
			defer pkt.DecRef()
			var list stack.PacketBufferList
			b.ReportAllocs()
			for b.Loop() {
				if offload.Segment(pkt, &list) != nil {
					b.Fatal("Segment failed")
				}
				list.Reset()
			}
			perSecond(b, 64000)
		})
	}
}

// BenchmarkNetstack does by the same calls what netstack does for an endpoint
// that has only gVisor's own GSO: it splits the payload off packet by packet,
// writes the headers field by field and sums each part. It is the bar for
// BenchmarkSegment.
func BenchmarkNetstack(b *testing.B) {
	b.Run("v4/64000", func(b *testing.B) {
		withoutLeakCheck(b)
		s := full(64000)
		keep := bufferOf(s.payload, s.cuts)
		defer keep.Release()
		var list stack.PacketBufferList
		b.ReportAllocs()
		for b.Loop() {
			whole := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: keep.Clone()})
			for whole.Data().Size() > 0 {
				pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: 106})
				pkt.Data().ReadFromPacketData(whole.Data(), min(1448, whole.Data().Size()))
				netstackHeaders(pkt)
				list.PushBack(pkt)
			}
			whole.DecRef()
			list.Reset()
		}
		perSecond(b, 64000)
	})
}

func netstackHeaders(pkt *stack.PacketBuffer) {
	tcp := header.TCP(pkt.TransportHeader().Push(32))
	tcp.Encode(&header.TCPFields{SrcPort: 1, DstPort: 2, SeqNum: 3, AckNum: 4, DataOffset: 32, Flags: 0x18, WindowSize: 5})
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, addr4A, addr4B, uint16(pkt.Size()))
	tcp.SetChecksum(^tcp.CalculateChecksum(checksum.Combine(sum, pkt.Data().Checksum())))
	n := pkt.Size()
	ip := header.IPv4(pkt.NetworkHeader().Push(20))
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(n + 20), TTL: 64, Protocol: 6, SrcAddr: addr4A, DstAddr: addr4B})
	ip.SetChecksum(^ip.CalculateChecksum())
	header.Ethernet(pkt.LinkHeader().Push(14)).Encode(&header.EthernetFields{
		SrcAddr: tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01"), DstAddr: "\x02\x00\x00\x00\x00\x02", Type: header.IPv4ProtocolNumber,
	})
}

// BenchmarkComplete sums a packet that fits one frame.
func BenchmarkComplete(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"0", 0}, {"1448", 1448}} {
		b.Run(c.name, func(b *testing.B) {
			withoutLeakCheck(b)
			s := full(c.size)
			pkt := s.build()
			defer pkt.DecRef()
			b.ReportAllocs()
			for b.Loop() {
				seg, err := offload.Complete(pkt)
				if err != nil {
					b.Fatal(err)
				}
				seg.DecRef()
			}
		})
	}
}

// BenchmarkVerify checks packets of these lengths.
func BenchmarkVerify(b *testing.B) {
	for _, c := range []struct {
		name    string
		v6      bool
		payload int
	}{{"v4/64", false, 12}, {"v6/84", true, 12}, {"v4/1500", false, 1448}, {"v4/64000", false, 64000 - 52}} {
		b.Run(c.name, func(b *testing.B) {
			withoutLeakCheck(b)
			d := datagram{v6: c.v6, payload: make([]byte, c.payload)}
			packet := d.build()
			pkt := inbound(packet, []int{len(packet)}, 0)
			defer pkt.DecRef()
			b.ReportAllocs()
			for b.Loop() {
				if offload.Verify(d.proto(), pkt) != offload.Good {
					b.Fatal("not good")
				}
			}
			perSecond(b, len(packet))
		})
	}
}

// BenchmarkNeeds asks about a packet that a slave takes whole.
func BenchmarkNeeds(b *testing.B) {
	s := full(64000)
	pkt := s.build()
	defer pkt.DecRef()
	for b.Loop() {
		if offload.Needs(pkt, 1<<16) != offload.Nothing {
			b.Fatal("not whole")
		}
	}
}
