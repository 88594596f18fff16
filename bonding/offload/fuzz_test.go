package offload_test

import (
	"bytes"
	"testing"

	"bondstack/bonding/offload"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// twoCuts spreads n bytes over up to three views.
func twoCuts(n int, a, b uint8) []int {
	x := min(int(a), n)
	y := min(int(b), n-x)
	return []int{x, y, n - x - y}
}

// FuzzVerify takes any bytes as a received packet. The verdict must not depend
// on the views, and a good one means that netstack's own functions agree.
func FuzzVerify(f *testing.F) {
	for _, d := range []datagram{
		{payload: []byte("abc"), pad: 5},
		{payload: []byte("abc"), udp: true, ipOptions: 2},
		{payload: []byte("abc"), v6: true, ext: []uint8{0, 43, 44, 60, 253}},
		{payload: []byte("abc"), v6: true, udp: true},
	} {
		f.Add(d.build(), uint8(1), uint8(30))
	}
	f.Add([]byte{}, uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, x, y uint8) {
		for _, proto := range []tcpip.NetworkProtocolNumber{header.IPv4ProtocolNumber, header.IPv6ProtocolNumber, header.ARPProtocolNumber} {
			whole := verifyPlain(proto, b, []int{len(b)})
			if got := verifyPlain(proto, b, twoCuts(len(b), x, y)); got != whole {
				t.Fatalf("%#x: verdict %d in views of %d and %d bytes, %d in one", proto, got, x, y, whole)
			}
			if proto == header.IPv4ProtocolNumber && whole == offload.Good && !goodIPv4(b) {
				t.Fatalf("verdict good, package header disagrees: %x", b)
			}
		}
	})
}

func verifyPlain(proto tcpip.NetworkProtocolNumber, b []byte, cuts []int) offload.Verdict {
	pkt := inbound(b, cuts, 0)
	defer pkt.DecRef()
	return offload.Verify(proto, pkt)
}

// goodIPv4 asks package header about a TCP or UDP packet.
func goodIPv4(b []byte) bool {
	ip := header.IPv4(b)
	if !ip.IsValid(len(b)) || !ip.IsChecksumValid() {
		return false
	}
	src, dst, p := ip.SourceAddress(), ip.DestinationAddress(), ip.Payload()
	if ip.Protocol() == uint8(header.UDPProtocolNumber) {
		p = p[:header.UDP(p).Length()]
	}
	sum := header.PseudoHeaderChecksum(ip.TransportProtocol(), src, dst, uint16(len(p)))
	return plusSum(sum, p) == 0xffff
}

// FuzzSegment takes any bytes as an outgoing packet of which the first are its
// headers. What comes out must carry the payload, whole and in order, in
// frames of at most the MSS with right checksums.
func FuzzSegment(f *testing.F) {
	for _, s := range []spec{
		{mss: 10, payload: make([]byte, 35), tcpWords: 3, flags: 0xf9},
		{mss: 10, payload: make([]byte, 35), ipOptions: 2, tags: 1},
		{mss: 10, payload: make([]byte, 35), v6: true, ext: true, tags: 2},
		{mss: 40, payload: make([]byte, 35), v6: true},
	} {
		s.cuts = []int{len(s.payload)}
		pkt := s.build()
		f.Add(flat(pkt), uint16(s.linkLen()), uint16(s.linkLen()+s.netLen()), uint16(s.linkLen()+s.netLen()+s.tcpLen()), s.mss, s.v6, uint8(7), uint8(7))
		pkt.DecRef()
	}
	f.Fuzz(func(t *testing.T, b []byte, net, tcp, payload, mss uint16, v6 bool, x, y uint8) {
		if len(b) > 1<<17 || int(payload) > len(b) || tcp > payload || net > tcp {
			t.Skip()
		}
		pkt := pushed(b, int(net), int(tcp), int(payload), twoCuts(len(b)-int(payload), x, y))
		defer pkt.DecRef()
		pkt.GSOOptions = stack.GSO{Type: stack.GSOTCPv4, MSS: mss, NeedsCsum: true}
		if v6 {
			pkt.GSOOptions.Type = stack.GSOTCPv6
		}
		if seg, err := offload.Complete(pkt); err == nil {
			checkFuzzed(t, seg, v6)
			if !bytes.Equal(seg.Data().AsRange().ToSlice(), pkt.Data().AsRange().ToSlice()) {
				t.Fatal("Complete changed the payload")
			}
			seg.DecRef()
		}
		var list stack.PacketBufferList
		defer list.Reset()
		if err := offload.Segment(pkt, &list); err != nil {
			return
		}
		var all []byte
		for _, seg := range list.AsSlice() {
			checkFuzzed(t, seg, v6)
			part := seg.Data().AsRange().ToSlice()
			if len(part) > int(mss) {
				t.Fatalf("frame with %d bytes of payload, MSS %d", len(part), mss)
			}
			all = append(all, part...)
		}
		if !bytes.Equal(all, b[payload:]) {
			t.Fatal("payload changed")
		}
		if !bytes.Equal(flat(pkt), b) {
			t.Fatal("packet changed")
		}
	})
}

// pushed makes an outgoing packet of b; its headers are pushed where they are
// not empty.
func pushed(b []byte, net, tcp, payload int, cuts []int) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: payload,
		Payload:            bufferOf(b[payload:], cuts),
	})
	for _, h := range []struct {
		h    stack.PacketHeader
		from []byte
	}{{pkt.TransportHeader(), b[tcp:payload]}, {pkt.NetworkHeader(), b[net:tcp]}, {pkt.LinkHeader(), b[:net]}} {
		if len(h.from) > 0 {
			copy(h.h.Push(len(h.from)), h.from)
		}
	}
	return pkt
}

// checkFuzzed has Verify judge an outgoing frame.
func checkFuzzed(t *testing.T, seg *stack.PacketBuffer, v6 bool) {
	t.Helper()
	proto := header.IPv4ProtocolNumber
	if v6 {
		proto = header.IPv6ProtocolNumber
	}
	b := flat(seg)
	link := len(seg.LinkHeader().Slice())
	if got := verifyPlain(proto, b[link:], []int{len(b) - link}); got != offload.Good {
		t.Fatalf("frame %x has verdict %d", b, got)
	}
}
