package offload_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"bondstack/bonding/offload"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// plainSum is the Internet checksum, slow and obvious (RFC 1071).
func plainSum(parts ...[]byte) uint16 {
	var sum uint64
	for _, b := range parts {
		for i, c := range b {
			if i%2 == 0 {
				sum += uint64(c) << 8
			} else {
				sum += uint64(c)
			}
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// slowFrames is the obvious segmentation of the packet that s describes: it
// works on flat copies and knows the places of all fields.
func slowFrames(s *spec, whole []byte, mss int) [][]byte {
	net, tcp := s.linkLen(), s.linkLen()+s.netLen()
	heads := whole[:tcp+s.tcpLen()]
	payload := whole[len(heads):]
	var frames [][]byte
	for at := 0; at == 0 || at < len(payload); at += mss {
		part := payload[at:min(at+mss, len(payload))]
		f := append(bytes.Clone(heads), part...)
		if s.v6 {
			binary.BigEndian.PutUint16(f[net+4:], uint16(len(f)-net-40))
		} else {
			binary.BigEndian.PutUint16(f[net+2:], uint16(len(f)-net))
			binary.BigEndian.PutUint16(f[net+4:], s.id+uint16(len(frames)))
			binary.BigEndian.PutUint16(f[net+10:], 0)
			binary.BigEndian.PutUint16(f[net+10:], ^plainSum(f[net:tcp]))
		}
		binary.BigEndian.PutUint32(f[tcp+4:], s.seq+uint32(at))
		if at+mss < len(payload) {
			f[tcp+13] &^= 0x09 // FIN, PSH
		}
		if at > 0 {
			f[tcp+13] &^= 0x80 // CWR
		}
		if f[tcp+13]&0x20 != 0 && at > 0 { // URG
			u := max(0, int(s.urgent)-at)
			binary.BigEndian.PutUint16(f[tcp+18:], uint16(u))
			if u == 0 {
				f[tcp+13] &^= 0x20
			}
		}
		fixTCP(s, f)
		frames = append(frames, f)
	}
	return frames
}

// fixTCP gives the frame a whole TCP checksum.
func fixTCP(s *spec, f []byte) {
	net, tcp := s.linkLen(), s.linkLen()+s.netLen()
	addrs := f[net+12 : net+20]
	if s.v6 {
		addrs = f[net+8 : net+40]
	}
	n := len(f) - tcp
	binary.BigEndian.PutUint16(f[tcp+16:], 0)
	binary.BigEndian.PutUint16(f[tcp+16:], ^plainSum(addrs, []byte{0, 6}, []byte{byte(n >> 8), byte(n)}, f[tcp:]))
}

// checkFrame checks one frame against its bytes and the packet it came from.
func checkFrame(t *testing.T, s *spec, pkt, seg *stack.PacketBuffer, want []byte) {
	t.Helper()
	if got := flat(seg); !bytes.Equal(got, want) {
		t.Fatalf("spec %+v: frame\n got %x\nwant %x", s, got, want)
	}
	if got := seg.ReadRefs(); got != 1 {
		t.Fatalf("frame has %d references, want 1", got)
	}
	ll, nl, tl := len(seg.LinkHeader().Slice()), len(seg.NetworkHeader().Slice()), len(seg.TransportHeader().Slice())
	if ll != s.linkLen() || nl != s.netLen() || tl != s.tcpLen() {
		t.Fatalf("frame has headers of %d, %d, %d bytes, want %d, %d, %d", ll, nl, tl, s.linkLen(), s.netLen(), s.tcpLen())
	}
	if seg.GSOOptions != (stack.GSO{}) {
		t.Fatalf("frame has GSO options %+v, want none", seg.GSOOptions)
	}
	if seg.Hash != pkt.Hash || seg.Mark != pkt.Mark || seg.Owner != pkt.Owner || seg.EgressRoute != pkt.EgressRoute ||
		seg.NetworkProtocolNumber != pkt.NetworkProtocolNumber || seg.TransportProtocolNumber != pkt.TransportProtocolNumber {
		t.Fatalf("frame lost attributes of its packet: %+v, %+v", seg, pkt)
	}
	if got, want := seg.AvailableHeaderBytes(), pkt.AvailableHeaderBytes(); got != want {
		t.Fatalf("frame has room for %d more header bytes, want %d", got, want)
	}
	in := inbound(want, []int{len(want)}, s.linkLen())
	defer in.DecRef()
	if got := offload.Verify(s.proto(), in); got != offload.Good {
		t.Fatalf("spec %+v: verdict on frame is %d, want good", s, got)
	}
}

// borrowed checks that a call leaves pkt as it was: bytes, views, references.
func borrowed(t *testing.T, pkt *stack.PacketBuffer, call func()) {
	t.Helper()
	before, refs := flat(pkt), pkt.ReadRefs()
	slices := pkt.AsSlices()
	call()
	if !bytes.Equal(flat(pkt), before) {
		t.Fatal("the packet's bytes were changed")
	}
	if got := pkt.ReadRefs(); got != refs {
		t.Fatalf("the packet has %d references, had %d", got, refs)
	}
	after := pkt.AsSlices()
	if len(after) != len(slices) {
		t.Fatalf("the packet has %d views, had %d", len(after), len(slices))
	}
	for i := range after {
		if &after[i][0] != &slices[i][0] {
			t.Fatalf("view %d of the packet was replaced", i)
		}
	}
}

// shared checks that the payload of seg lies in the memory of pkt.
func shared(t *testing.T, pkt, seg *stack.PacketBuffer) {
	t.Helper()
	payload := pkt.AsSlices()[1:]
	for _, b := range seg.AsSlices()[1:] {
		if !within(b, payload) {
			t.Fatal("payload was copied")
		}
	}
}

// within reports whether b is a part of one of the slices.
func within(b []byte, slices [][]byte) bool {
	for _, s := range slices {
		for i := range s {
			if &s[i] == &b[0] {
				return true
			}
		}
	}
	return false
}

func testSegments(t *testing.T, s *spec) {
	t.Helper()
	pkt := s.build()
	defer pkt.DecRef()
	whole := flat(pkt)
	var list stack.PacketBufferList
	defer list.Reset()
	borrowed(t, pkt, func() {
		if err := offload.Segment(pkt, &list); err != nil {
			t.Fatalf("spec %+v: %v", s, err)
		}
	})
	want := slowFrames(s, whole, int(s.mss))
	if list.Len() != len(want) {
		t.Fatalf("%d frames, want %d", list.Len(), len(want))
	}
	var payload []byte
	for i, seg := range list.AsSlice() {
		checkFrame(t, s, pkt, seg, want[i])
		payload = append(payload, seg.Data().AsRange().ToSlice()...)
	}
	if !bytes.Equal(payload, s.payload) {
		t.Fatal("payloads of the frames do not add up to the packet's")
	}
}

func TestSegment(t *testing.T) {
	r := linktest.NewRand(t)
	for range 300 {
		s := randomSpec(r, r.IntN(1+r.IntN(65000)))
		testSegments(t, &s)
	}
}

// TestSegmentEdges goes through sizes around multiples of the MSS, each flag
// for itself, and the greatest packet.
func TestSegmentEdges(t *testing.T) {
	r := linktest.NewRand(t)
	for _, v6 := range []bool{false, true} {
		for _, mss := range []int{1, 3, 535, 1447, 1448, 1460} {
			for _, n := range []int{0, 1, mss - 1, mss, mss + 1, 2*mss - 1, 2 * mss, 2*mss + 1} {
				s := spec{v6: v6, mss: uint16(mss), payload: randomBytes(r, n), tcpWords: 3}
				s.cuts = randomCuts(r, n)
				for bit := range 8 {
					if s.flags = 1 << bit; s.flags&0x06 != 0 && n > mss {
						continue
					}
					s.urgent = uint16(mss + 1)
					testSegments(t, &s)
				}
			}
		}
		for _, mss := range []int{536, 1448, 65535} {
			s := spec{v6: v6, mss: uint16(mss), payload: randomBytes(r, 65535-60), flags: 0x99}
			s.cuts = []int{len(s.payload)}
			if mss > 65000 {
				s.mss = uint16(len(s.payload))
			}
			testSegments(t, &s)
		}
	}
}

// TestSegmentWraps has the sequence number and the identification pass their
// greatest values.
func TestSegmentWraps(t *testing.T) {
	r := linktest.NewRand(t)
	s := spec{mss: 100, payload: randomBytes(r, 1000), cuts: []int{1000}, seq: 1<<32 - 250, id: 1<<16 - 3}
	testSegments(t, &s)
}

func TestSegmentShares(t *testing.T) {
	r := linktest.NewRand(t)
	for range 20 {
		s := randomSpec(r, 1+r.IntN(5000))
		pkt := s.build()
		var list stack.PacketBufferList
		if err := offload.Segment(pkt, &list); err != nil {
			t.Fatal(err)
		}
		for _, seg := range list.AsSlice() {
			shared(t, pkt, seg)
		}
		// Frames outlive the packet, whose memory they hold.
		want := slowFrames(&s, flat(pkt), int(s.mss))
		pkt.DecRef()
		for i, seg := range list.AsSlice() {
			if !bytes.Equal(flat(seg), want[i]) {
				t.Fatalf("frame %d changed when the packet went", i)
			}
		}
		list.Reset()
	}
}

// TestSegmentSharedHeaders has the packet's header view shared with a clone,
// as when a bond gives the same packet to several slaves.
func TestSegmentSharedHeaders(t *testing.T) {
	r := linktest.NewRand(t)
	s := randomSpec(r, 4000)
	s.mss = 1000
	pkt := s.build()
	defer pkt.DecRef()
	other := pkt.Clone()
	defer other.DecRef()
	var list stack.PacketBufferList
	borrowed(t, pkt, func() {
		if err := offload.Segment(pkt, &list); err != nil {
			t.Fatal(err)
		}
	})
	list.Reset()
}

// TestSegmentAppends has several packets share a list.
func TestSegmentAppends(t *testing.T) {
	r := linktest.NewRand(t)
	var list stack.PacketBufferList
	defer list.Reset()
	for i := range 3 {
		s := spec{mss: 10, payload: randomBytes(r, 30), cuts: []int{30}}
		pkt := s.build()
		if err := offload.Segment(pkt, &list); err != nil {
			t.Fatal(err)
		}
		pkt.DecRef()
		if got, want := list.Len(), 3*(i+1); got != want {
			t.Fatalf("list of %d, want %d", got, want)
		}
	}
}

func TestComplete(t *testing.T) {
	r := linktest.NewRand(t)
	for range 300 {
		s := randomSpec(r, r.IntN(1500))
		s.flags = uint8(r.Uint32())
		pkt := s.build()
		want := flat(pkt)
		fixTCP(&s, want)
		borrowed(t, pkt, func() {
			seg, err := offload.Complete(pkt)
			if err != nil {
				t.Fatalf("spec %+v: %v", s, err)
			}
			checkFrame(t, &s, pkt, seg, want)
			if len(s.payload) > 0 {
				shared(t, pkt, seg)
			}
			seg.DecRef()
		})
		pkt.DecRef()
	}
}

// TestFaults has one packet for each way to be malformed.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		v6     bool
		change func(*stack.PacketBuffer)
		want   offload.Fault
	}{
		{"no type", false, func(p *stack.PacketBuffer) { p.GSOOptions.Type = stack.GSONone }, offload.FaultType},
		{"gvisor type", false, func(p *stack.PacketBuffer) { p.GSOOptions.Type = stack.GSOGvisor }, offload.FaultType},
		{"type v6 on v4", false, func(p *stack.PacketBuffer) { p.GSOOptions.Type = stack.GSOTCPv6 }, offload.FaultType},
		{"type v4 on v6", true, func(p *stack.PacketBuffer) { p.GSOOptions.Type = stack.GSOTCPv4 }, offload.FaultType},
		{"ethertype", false, func(p *stack.PacketBuffer) { p.LinkHeader().Slice()[12] = 9 }, offload.FaultType},
		{"three tags", false, func(p *stack.PacketBuffer) {
			copy(p.LinkHeader().Slice()[12:], "\x81\x00")
			copy(p.NetworkHeader().Slice(), "\x00\x00\x81\x00\x00\x00\x81\x00")
		}, offload.FaultType},
		{"udp v4", false, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[9] = 17 }, offload.FaultType},
		{"udp v6", true, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[6] = 17 }, offload.FaultType},
		{"fragment", false, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[6] = 0x20 }, offload.FaultType},
		{"later fragment", false, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[7] = 1 }, offload.FaultType},
		{"version 4", false, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[0] = 0x55 }, offload.FaultHeaders},
		{"version 6", true, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[0] = 0x40 }, offload.FaultHeaders},
		{"short IHL", false, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[0] = 0x44 }, offload.FaultHeaders},
		{"long IHL", false, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[0] = 0x4f }, offload.FaultHeaders},
		{"odd IHL", false, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[0] = 0x46 }, offload.FaultHeaders},
		{"offset before the end", false, func(p *stack.PacketBuffer) { p.TransportHeader().Slice()[12] = 0x70 }, offload.FaultHeaders},
		{"short offset", false, func(p *stack.PacketBuffer) { p.TransportHeader().Slice()[12] = 0x40 }, offload.FaultHeaders},
		{"long offset", true, func(p *stack.PacketBuffer) { p.TransportHeader().Slice()[12] = 0xf0 }, offload.FaultHeaders},
		{"extension too long", true, func(p *stack.PacketBuffer) {
			p.NetworkHeader().Slice()[6] = 60
			p.TransportHeader().Slice()[1] = 255
		}, offload.FaultHeaders},
		{"length v4", false, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[3]++ }, offload.FaultLength},
		{"length v6", true, func(p *stack.PacketBuffer) { p.NetworkHeader().Slice()[5]++ }, offload.FaultLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec{v6: c.v6, mss: 100, payload: make([]byte, 300), cuts: []int{300}, tcpWords: 3}
			pkt := s.build()
			defer pkt.DecRef()
			c.change(pkt)
			var list stack.PacketBufferList
			if err := offload.Segment(pkt, &list); !errors.Is(err, c.want) || list.Len() != 0 {
				t.Errorf("Segment: error %v and %d frames, want %v and none", err, list.Len(), c.want)
			}
			if seg, err := offload.Complete(pkt); !errors.Is(err, c.want) || seg != nil {
				t.Errorf("Complete: error %v, want %v", err, c.want)
			}
			if c.want.Error() == "" || c.want.Error() == offload.Fault(0).Error() {
				t.Errorf("fault %d has no text", c.want)
			}
		})
	}
}

// TestFaultsOfSize has the faults that only Segment, or only one of both,
// can find.
func TestFaultsOfSize(t *testing.T) {
	segment := func(s spec) error {
		pkt := s.build()
		defer pkt.DecRef()
		var list stack.PacketBufferList
		defer list.Reset()
		return offload.Segment(pkt, &list)
	}
	complete := func(s spec) error {
		pkt := s.build()
		defer pkt.DecRef()
		seg, err := offload.Complete(pkt)
		if err == nil {
			seg.DecRef()
		}
		return err
	}
	small := spec{mss: 100, payload: make([]byte, 300), cuts: []int{300}}
	huge := spec{mss: 65535, payload: make([]byte, 70000), cuts: []int{70000}}
	huge6 := huge
	huge6.v6 = true
	with := func(s spec, change func(*spec)) spec { change(&s); return s }
	for _, c := range []struct {
		name string
		got  error
		want error
	}{
		{"mss 0", segment(with(small, func(s *spec) { s.mss = 0 })), offload.FaultMSS},
		{"syn", segment(with(small, func(s *spec) { s.flags = 2 })), offload.FaultFlags},
		{"rst", segment(with(small, func(s *spec) { s.flags = 4 })), offload.FaultFlags},
		{"syn alone", segment(with(small, func(s *spec) { s.flags, s.mss = 2, 300 })), nil},
		{"v4 segment too long", segment(huge), offload.FaultLength},
		{"v6 segment too long", segment(huge6), offload.FaultLength},
		{"v4 cut small", segment(with(huge, func(s *spec) { s.mss = 1460 })), nil},
		{"v6 cut small", segment(with(huge6, func(s *spec) { s.mss = 1460 })), nil},
		{"v4 too long", complete(huge), offload.FaultLength},
		{"v6 too long", complete(huge6), offload.FaultLength},
		{"mss 0 complete", complete(with(small, func(s *spec) { s.mss = 0 })), nil},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestWithoutHeaders has packets that no header was pushed to.
func TestWithoutHeaders(t *testing.T) {
	for n := range 100 {
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: bufferOf(make([]byte, n), []int{n}), ReserveHeaderBytes: n})
		pkt.GSOOptions = stack.GSO{Type: stack.GSOTCPv4, MSS: 10, NeedsCsum: true}
		if n > 0 {
			pkt.LinkHeader().Push(n)
		}
		var list stack.PacketBufferList
		if err := offload.Segment(pkt, &list); err == nil || list.Len() != 0 {
			t.Errorf("%d bytes: error %v, %d frames", n, err, list.Len())
		}
		if _, err := offload.Complete(pkt); err == nil {
			t.Errorf("%d bytes: no error", n)
		}
		pkt.DecRef()
	}
}

// TestConcurrentReaders has one packet cut, completed and judged by several
// goroutines at once, as when a bond broadcasts it.
func TestConcurrentReaders(t *testing.T) {
	r := linktest.NewRand(t)
	s := randomSpec(r, 20000)
	s.flags, s.mss = 0, 1000
	pkt := s.build()
	defer pkt.DecRef()
	want := slowFrames(&s, flat(pkt), 1000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var list stack.PacketBufferList
			for range 20 {
				if err := offload.Segment(pkt, &list); err != nil {
					t.Error(err)
				}
				for i, seg := range list.AsSlice() {
					if !bytes.Equal(flat(seg), want[i]) {
						t.Errorf("frame %d is wrong", i)
					}
				}
				list.Reset()
				seg, err := offload.Complete(pkt)
				if err != nil {
					t.Error(err)
				}
				seg.DecRef()
				offload.Needs(pkt, 0)
				offload.Verify(s.proto(), pkt)
			}
		})
	}
	wg.Wait()
}

// TestSegmentForwarded cuts a packet whose IP and TCP headers were received,
// and consumed, and only the link header pushed.
func TestSegmentForwarded(t *testing.T) {
	r := linktest.NewRand(t)
	for _, v6 := range []bool{false, true} {
		s := spec{v6: v6, ext: v6, mss: 100, payload: randomBytes(r, 1234), cuts: []int{1234}, tcpWords: 3, seq: 7}
		out := s.build()
		whole := flat(out)
		options := out.GSOOptions
		out.DecRef()
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
			ReserveHeaderBytes: 20,
			Payload:            bufferOf(whole[14:], []int{3, 30, len(whole) - 14 - 33}),
		})
		defer pkt.DecRef()
		pkt.NetworkHeader().Consume(s.netLen())
		pkt.TransportHeader().Consume(s.tcpLen())
		copy(pkt.LinkHeader().Push(14), whole)
		pkt.NetworkProtocolNumber, pkt.TransportProtocolNumber = s.proto(), 6
		pkt.GSOOptions = options
		var list stack.PacketBufferList
		defer list.Reset()
		if err := offload.Segment(pkt, &list); err != nil {
			t.Fatal(err)
		}
		for i, want := range slowFrames(&s, whole, 100) {
			checkFrame(t, &s, pkt, list.AsSlice()[i], want)
		}
	}
}
