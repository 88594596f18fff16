package gro_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"bondstack/link/gro"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// streams are one of each sort.
func streams() map[string]*stream {
	return map[string]*stream{
		"IPv4":         {flow: linktest.Flow4(1), seq: 1<<32 - 2000, id: 65534},
		"IPv6":         {flow: linktest.Flow6(1), seq: 7},
		"IPv4, tag":    {flow: linktest.Flow4(2), tags: 1},
		"IPv6, 2 tags": {flow: linktest.Flow6(2), tags: 2},
	}
}

// Consecutive segments become one packet, which is a right one, and is cut to the
// same segments again.
func TestConsecutive(t *testing.T) {
	for name, s := range streams() {
		t.Run(name, func(t *testing.T) {
			frames := append(s.bulk(9, 1400), s.bulk(1, 300)...)
			out := joined(t, frames)
			if len(out) != 1 {
				t.Fatalf("%d frames, want 1", len(out))
			}
			if got := cut(t, out[0]); !slices.EqualFunc(got, frames, bytes.Equal) {
				t.Error("cut again they differ")
			}
			want := uint16(len(out[0].frame) - s.net())
			if got := binary.BigEndian.Uint16(out[0].frame[s.net()+2:]); name[:4] == "IPv4" && got != want {
				t.Errorf("total length %d, want %d", got, want)
			}
			if out[0].gso.MSS != 1400 || out[0].gso.MaxSize != 65536 {
				t.Errorf("options %+v", out[0].gso)
			}
		})
	}
}

// A packet has at most 65,535 bytes from its IP header on.
func TestLongest(t *testing.T) {
	for name, s := range streams() {
		out := joined(t, s.bulk(100, 1448))
		// 45 segments are 65,160 bytes of payload.
		if len(out) != 3 {
			t.Fatalf("%s: %d frames, want 3", name, len(out))
		}
		for i, want := range []int{45, 45, 10} {
			if got := len(cut(t, out[i])); got != want {
				t.Errorf("%s: %d segments in packet %d, want %d", name, got, i, want)
			}
		}
	}
	// To the byte: 65,535 is 20 + 20 + 5 * 13,099.
	s := &stream{flow: linktest.Flow4(1)}
	var frames [][]byte
	for range 6 {
		frames = append(frames, s.next(linktest.Segment{Payload: make([]byte, 13099)}))
	}
	if out := joined(t, frames); len(out) != 2 || len(out[0].frame) != 14+65535 {
		t.Errorf("%d frames, the first of %d bytes", len(out), len(out[0].frame))
	}
}

// changes are what keeps the second of two segments from joining. net and tcp are
// where its headers are.
var changes = []struct {
	name   string
	only   byte // the IP version, 0 for both
	resum  bool
	change func(b []byte, net, tcp int)
}{
	{"destination MAC", 0, true, func(b []byte, net, tcp int) { b[0] ^= 2 }},
	{"source MAC", 0, true, func(b []byte, net, tcp int) { b[11]++ }},
	{"type of service", 4, true, func(b []byte, net, tcp int) { b[net+1] ^= 4 }},
	{"ECN mark", 4, true, func(b []byte, net, tcp int) { b[net+1] ^= 3 }},
	{"identification skips one", 4, true, func(b []byte, net, tcp int) { b[net+5]++ }},
	{"identification is the same", 4, true, func(b []byte, net, tcp int) { b[net+5]-- }},
	{"DF", 4, true, func(b []byte, net, tcp int) { b[net+6] ^= 0x40 }},
	{"reserved IP bit", 4, true, func(b []byte, net, tcp int) { b[net+6] ^= 0x80 }},
	{"first fragment", 4, true, func(b []byte, net, tcp int) { b[net+6] ^= 0x20 }},
	{"later fragment", 4, true, func(b []byte, net, tcp int) { b[net+7]++ }},
	{"TTL", 4, true, func(b []byte, net, tcp int) { b[net+8]-- }},
	{"protocol UDP", 4, true, func(b []byte, net, tcp int) { b[net+9] = 17 }},
	{"bad header checksum", 4, false, func(b []byte, net, tcp int) { b[net+10]++ }},
	{"source address", 4, true, func(b []byte, net, tcp int) { b[net+15]++ }},
	{"destination address", 4, true, func(b []byte, net, tcp int) { b[net+19]++ }},
	{"length too short", 4, true, func(b []byte, net, tcp int) { b[net+3]-- }},
	{"length too long", 4, true, func(b []byte, net, tcp int) { b[net+3]++ }},
	{"version", 0, false, func(b []byte, net, tcp int) { b[net] ^= 0x10 }},
	{"traffic class", 6, true, func(b []byte, net, tcp int) { b[net] ^= 8 }},
	{"ECN mark", 6, true, func(b []byte, net, tcp int) { b[net+1] ^= 0x30 }},
	{"flow label", 6, true, func(b []byte, net, tcp int) { b[net+3]++ }},
	{"length too short", 6, true, func(b []byte, net, tcp int) { b[net+5]-- }},
	{"next header UDP", 6, true, func(b []byte, net, tcp int) { b[net+6] = 17 }},
	{"extension header", 6, true, func(b []byte, net, tcp int) { b[net+6] = 0 }},
	{"hop limit", 6, true, func(b []byte, net, tcp int) { b[net+7]-- }},
	{"source address", 6, true, func(b []byte, net, tcp int) { b[net+23]++ }},
	{"destination address", 6, true, func(b []byte, net, tcp int) { b[net+39]++ }},
	{"source port", 0, true, func(b []byte, net, tcp int) { b[tcp+1]++ }},
	{"destination port", 0, true, func(b []byte, net, tcp int) { b[tcp+3]++ }},
	{"gap", 0, true, func(b []byte, net, tcp int) { b[tcp+7]++ }},
	{"overlap", 0, true, func(b []byte, net, tcp int) { b[tcp+7]-- }},
	{"acknowledgement", 0, true, func(b []byte, net, tcp int) { b[tcp+11]++ }},
	{"no ACK", 0, true, func(b []byte, net, tcp int) { b[tcp+13] &^= 0x10 }},
	{"FIN", 0, true, func(b []byte, net, tcp int) { b[tcp+13] |= 0x01 }},
	{"SYN", 0, true, func(b []byte, net, tcp int) { b[tcp+13] |= 0x02 }},
	{"RST", 0, true, func(b []byte, net, tcp int) { b[tcp+13] |= 0x04 }},
	{"URG", 0, true, func(b []byte, net, tcp int) { b[tcp+13] |= 0x20 }},
	{"ECE", 0, true, func(b []byte, net, tcp int) { b[tcp+13] |= 0x40 }},
	{"CWR", 0, true, func(b []byte, net, tcp int) { b[tcp+13] |= 0x80 }},
	{"reserved TCP bit", 0, true, func(b []byte, net, tcp int) { b[tcp+12] |= 1 }},
	{"header length", 0, true, func(b []byte, net, tcp int) { b[tcp+12] -= 0x10 }},
	{"header length below 20", 0, true, func(b []byte, net, tcp int) { b[tcp+12] = 0x40 }},
	{"window", 0, true, func(b []byte, net, tcp int) { b[tcp+15]-- }},
	{"urgent pointer", 0, true, func(b []byte, net, tcp int) { b[tcp+19]++ }},
	{"time stamp", 0, true, func(b []byte, net, tcp int) { b[tcp+27]++ }},
	{"bad checksum", 0, false, func(b []byte, net, tcp int) { b[tcp+17] ^= 1 }},
	{"damaged payload", 0, false, func(b []byte, net, tcp int) { b[len(b)-1] ^= 1 }},
}

// What differs from the segment before it passes by itself, to the bit, and so
// does what comes after it and before it.
func TestNotJoined(t *testing.T) {
	for _, version := range []byte{4, 6} {
		for _, c := range changes {
			if c.only != 0 && c.only != version {
				continue
			}
			t.Run(fmt.Sprintf("IPv%d/%s", version, c.name), func(t *testing.T) {
				s := &stream{flow: linktest.Flow4(1), seq: 100, id: 100, tags: 1}
				size := 20
				if version == 6 {
					s.flow, size = linktest.Flow6(1), 40
				}
				frames := s.bulk(3, 100)
				b := frames[1]
				c.change(b, s.net(), s.net()+size)
				if c.resum {
					resum(b, s.net())
				}
				out := joined(t, frames)
				if len(out) == 2 && c.name == "protocol UDP" || len(out) == 3 {
					for i, r := range out {
						if !bytes.Equal(r.frame, frames[i]) || r.gso != (stack.GSO{}) {
							t.Errorf("frame %d has changed", i)
						}
					}
					return
				}
				t.Errorf("%d frames, want 3", len(out))
			})
		}
	}
}

// VLAN tags keep segments apart, and so does a tag more.
func TestTagsDiffer(t *testing.T) {
	for i, change := range []func(b []byte) []byte{
		func(b []byte) []byte { b[15]++; return b },
		func(b []byte) []byte { b[14] |= 0x20; return b }, // priority
		func(b []byte) []byte { b[12] = 0x88; b[13] = 0xa8; return b },
		func(b []byte) []byte { return linktest.VLAN(b, 0x8100, 9) },
		func(b []byte) []byte { return append(append([]byte{}, b[:12]...), b[16:]...) },
	} {
		s := &stream{flow: linktest.Flow4(1), tags: 1}
		frames := s.bulk(2, 100)
		frames[1] = change(frames[1])
		if out := joined(t, frames); len(out) != 2 {
			t.Errorf("change %d: %d frames, want 2", i, len(out))
		}
	}
}

// A packet ends with PSH and with a shorter segment, and a longer one begins a
// new one.
func TestEnds(t *testing.T) {
	psh := header.TCPFlagAck | header.TCPFlagPsh
	for name, c := range map[string]struct {
		sizes []int
		push  int // which has PSH
		want  []int
	}{
		"PSH on the second":       {[]int{10, 10, 10, 10}, 1, []int{2, 2}},
		"PSH on the first":        {[]int{10, 10, 10}, 0, []int{1, 2}},
		"PSH on the last":         {[]int{10, 10, 10}, 2, []int{3}},
		"shorter one":             {[]int{10, 10, 9, 9, 9}, -1, []int{3, 2}},
		"longer one":              {[]int{10, 10, 11, 11}, -1, []int{2, 2}},
		"no payload":              {[]int{10, 10, 0, 10, 10}, -1, []int{2, 1, 2}},
		"no payload at the front": {[]int{0, 10, 10}, -1, []int{1, 2}},
		"one":                     {[]int{10}, -1, []int{1}},
	} {
		for sort, s := range streams() {
			var frames [][]byte
			for i, size := range c.sizes {
				seg := linktest.Segment{Payload: bytes.Repeat([]byte{byte(i)}, size)}
				if i == c.push {
					seg.Flags = psh
				}
				frames = append(frames, s.next(seg))
			}
			var got []int
			var again [][]byte
			for _, r := range joined(t, frames) {
				segments := cut(t, r)
				got = append(got, len(segments))
				again = append(again, segments...)
			}
			if !slices.Equal(got, c.want) || !slices.EqualFunc(again, frames, bytes.Equal) {
				t.Errorf("%s, %s: packets of %v segments, want %v", sort, name, got, c.want)
			}
		}
	}
}

// Partial checksums join with each other and with whole ones; a partial one that
// is wrong does not, nor one whose place is wrong.
func TestPartialChecksums(t *testing.T) {
	for _, wrong := range []string{"", "field", "place", "start"} {
		s := &stream{flow: linktest.Flow4(1)}
		frames := s.bulk(3, 100)
		list := listOf(frames)
		for _, pkt := range list.AsSlice()[:2] {
			pkt.GSOOptions = stack.GSO{NeedsCsum: true, CsumOffset: 16, L3HdrLen: 20}
			tcp := header.TCP(pkt.Data().AsRange().ToSlice()[20:])
			sum := header.PseudoHeaderChecksum(6, header.IPv4(frames[0][14:]).SourceAddress(), header.IPv4(frames[0][14:]).DestinationAddress(), uint16(len(tcp)))
			views, skip := pkt.AsViewList()
			field := views.Front().AsSlice()[skip+14+20+16:]
			binary.BigEndian.PutUint16(field, sum)
			switch wrong {
			case "field":
				field[0]++
			case "place":
				pkt.GSOOptions.CsumOffset++
			case "start":
				pkt.GSOOptions.L3HdrLen++
			}
		}
		out := joinList(t, list)
		if want := map[bool]int{true: 1, false: 3}[wrong == ""]; len(out) != want {
			t.Errorf("wrong %q: %d frames, want %d", wrong, len(out), want)
		} else if wrong == "" && !slices.EqualFunc(cut(t, out[0]), frames, bytes.Equal) {
			t.Error("cut again they differ")
		}
		list.Reset()
	}
}

// Who vouches for a checksum is believed, but not for that of an IPv4 header.
func TestVouched(t *testing.T) {
	s := &stream{flow: linktest.Flow4(1)}
	frames := s.bulk(4, 100)
	frames[1][len(frames[1])-1]++ // vouched for: whoever did has his reasons
	frames[3][14+8]--
	list := listOf(frames)
	defer list.Reset()
	for _, pkt := range list.AsSlice() {
		pkt.RXChecksumValidated = true
	}
	if out := joinList(t, list); len(out) != 2 || len(cut(t, out[0])) != 3 {
		t.Errorf("%d frames, want 3 segments and 1", len(out))
	}
}

// Packets of several segments, and the checksum that comes back as another zero,
// stay as they are.
func TestStays(t *testing.T) {
	s := &stream{flow: linktest.Flow4(1)}
	frames := s.bulk(2, 100)
	list := listOf(frames)
	list.AsSlice()[1].GSOOptions.Type = stack.GSOTCPv4
	if out := joinList(t, list); len(out) != 2 {
		t.Errorf("a packet of several segments joined")
	}
	list.Reset()
	frames = zeroSum(t)
	if out := joined(t, frames); len(out) != 1 || !slices.EqualFunc(cut(t, out[0]), frames, bytes.Equal) {
		t.Errorf("a checksum of zero: %d frames", len(out))
	}
	binary.BigEndian.PutUint16(frames[1][14+20+16:], 0xffff)
	if out := joined(t, frames); len(out) != 2 {
		t.Errorf("the other zero joined")
	}
}

// zeroSum returns two segments, of which the second has the checksum 0.
func zeroSum(t *testing.T) [][]byte {
	s := &stream{flow: linktest.Flow4(1)}
	frames := s.bulk(2, 100)
	for i := range 1 << 16 {
		binary.BigEndian.PutUint16(frames[1][100:], uint16(i))
		if resum(frames[1], 14); binary.BigEndian.Uint16(frames[1][14+20+16:]) == 0 {
			return frames
		}
	}
	t.Fatal("no checksum of zero")
	return nil
}

// Connections do not disturb each other, and each keeps its order; more than are
// followed at a time still come out right.
func TestInterleaved(t *testing.T) {
	const segments = 6
	for _, n := range []int{2, 8, 9, 20} {
		var frames [][]byte
		all := make([]*stream, n)
		for i := range all {
			all[i] = &stream{flow: linktest.Flow4(i), id: uint16(i)}
		}
		for range segments {
			for _, s := range all {
				frames = append(frames, s.bulk(1, 50)...)
			}
		}
		out := joined(t, frames)
		if n <= 8 && len(out) != n {
			t.Errorf("%d connections: %d frames", n, len(out))
		}
		sameStreams(t, frames, out)
	}
}

// UDP passes between segments that join, and a fragment, of which nobody knows
// the connection, parts them.
func TestBetween(t *testing.T) {
	s := &stream{flow: linktest.Flow4(1)}
	frames := s.bulk(2, 50)
	udp := linktest.Flow4(1).UDP(make([]byte, 50))
	if out := joined(t, [][]byte{frames[0], udp, frames[1]}); len(out) != 2 || len(cut(t, out[0])) != 2 || !bytes.Equal(out[1].frame, udp) {
		t.Errorf("with UDP between: %d frames", len(out))
	}
	fragment := append([]byte{}, frames[0]...)
	fragment[14+7] = 9
	resum(fragment, 14)
	if out := joined(t, [][]byte{frames[0], fragment, frames[1]}); len(out) != 3 || !bytes.Equal(out[1].frame, fragment) {
		t.Errorf("with a fragment between: %d frames", len(out))
	}
}

// Frames of every length, and headers that are not in one piece, pass.
func TestCutOff(t *testing.T) {
	for _, s := range streams() {
		frame := s.bulk(1, 20)[0]
		var frames [][]byte
		for n := 14; n < len(frame); n++ {
			frames = append(frames, frame[:n])
		}
		out := joined(t, frames)
		if len(out) != len(frames) {
			t.Errorf("%d frames of %d", len(out), len(frames))
		}
	}
}

// connection returns what tells a connection from others, and "" for frames that
// may be of any.
func connection(b []byte) string {
	for len(b) >= 18 && (b[12] == 0x81 && b[13] == 0 || b[12] == 0x88 && b[13] == 0xa8) {
		b = append(append([]byte{}, b[:12]...), b[16:]...)
	}
	switch {
	case len(b) >= 54 && b[12] == 8 && b[13] == 0 && b[14]>>4 == 4 && b[23] == 6 && b[20]&0x3f == 0 && b[21] == 0 && b[14]&15 >= 5 && len(b) >= 34+int(b[14]&15)*4:
		tcp := 14 + int(b[14]&15)*4
		return string(b[26:34]) + string(b[tcp:tcp+4])
	case len(b) >= 74 && b[12] == 0x86 && b[13] == 0xdd && b[14]>>4 == 6 && b[20] == 6:
		return string(b[22:54]) + string(b[54:58])
	}
	return ""
}

// sameStreams checks that what came out, cut again, is what went in: each
// connection in its order, and also against what may be of any connection.
func sameStreams(tb testing.TB, in [][]byte, out []result) {
	tb.Helper()
	var again [][]byte
	for _, r := range out {
		again = append(again, cut(tb, r)...)
	}
	if len(again) != len(in) {
		tb.Fatalf("%d frames of %d", len(again), len(in))
	}
	connections := map[string]bool{}
	for _, b := range in {
		connections[connection(b)] = true
	}
	for c := range connections {
		of := func(frames [][]byte) (list [][]byte) {
			for _, b := range frames {
				if connection(b) == c {
					list = append(list, b)
				}
			}
			return list
		}
		if !slices.EqualFunc(of(in), of(again), bytes.Equal) {
			tb.Fatalf("connection %x differs", c)
		}
	}
}

// Whatever several connections send, with whatever in between, comes back from
// being joined and cut.
func TestRandomStreams(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		sameStreams(t, randomFrames(random), joined(t, randomFrames(rand.New(rand.NewPCG(seed, 7)))))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// randomFrames are those of up to four connections, with accidents.
func randomFrames(random *rand.Rand) (frames [][]byte) {
	all := []*stream{}
	for i := range 1 + random.IntN(4) {
		flow := linktest.Flow4(i)
		if random.IntN(2) == 0 {
			flow = linktest.Flow6(i)
		}
		all = append(all, &stream{flow: flow, tags: random.IntN(3), seq: random.Uint32(), id: uint16(random.Uint32())})
	}
	for range 1 + random.IntN(60) {
		s := all[random.IntN(len(all))]
		size := []int{100, 100, 100, 100, 1448, 0, 37}[random.IntN(7)]
		seg := linktest.Segment{Payload: make([]byte, size), Flags: header.TCPFlagAck}
		for i := range seg.Payload {
			seg.Payload[i] = byte(random.Uint32())
		}
		switch random.IntN(8) {
		case 0:
			seg.Flags |= header.TCPFlags(random.Uint32())
		case 1:
			seg.Flags |= header.TCPFlagPsh
		case 2:
			s.id++
		case 3:
			s.seq -= 100
		}
		b := s.next(seg)
		switch random.IntN(16) {
		case 0:
			b[random.IntN(len(b))] ^= 1 << random.IntN(8)
		case 1:
			b[14+random.IntN(len(b)-14)] ^= 1 << random.IntN(8)
			resum(b, s.net())
		}
		frames = append(frames, b)
	}
	return frames
}

// FuzzJoin changes segments, by bytes that tell where and how, and mends their
// checksums or not.
func FuzzJoin(f *testing.F) {
	f.Add([]byte{0, 100, 1, 20, 2, 3}, uint16(50), uint8(0))
	f.Add([]byte{1, 17, 0x40, 2, 33, 8}, uint16(1448), uint8(1))
	f.Add([]byte{0x82, 49, 0x08}, uint16(10), uint8(2))
	f.Fuzz(func(t *testing.T, edits []byte, size uint16, tags uint8) {
		for _, flow := range []linktest.Flow{linktest.Flow4(3), linktest.Flow6(3)} {
			s := &stream{flow: flow, tags: int(tags % 3), seq: 1<<32 - 100}
			frames := s.bulk(8, 1+int(size)%3000)
			for ; len(edits) >= 3; edits = edits[3:] {
				b := frames[edits[0]%8]
				at := int(edits[1]) % len(b)
				b[at] ^= edits[2]
				if net := s.net(); edits[0]&0x80 == 0 && len(b) > net+60 && (b[net]>>4 == 4 || b[net]>>4 == 6) {
					resum(b, net)
				}
			}
			sameStreams(t, frames, joined(t, frames))
		}
	})
}

// Joining allocates nothing.
func TestJoiningAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	withoutLeakCheck(t)
	var j gro.Joiner
	s := &stream{flow: linktest.Flow4(1)}
	list := listOf(s.bulk(44, 1448))
	defer list.Reset()
	// A collection may empty gVisor's pools, so less than one.
	if n := testing.AllocsPerRun(100, func() {
		j.Join(list)
		j.Reset()
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkJoin is what it costs to join 44 segments of 1,448 bytes, with their
// checksums vouched for and not, and what it costs where none can be joined.
func BenchmarkJoin(b *testing.B) {
	for _, c := range []struct {
		name    string
		vouched bool
		size    int
	}{{"vouched", true, 1448}, {"verified", false, 1448}, {"acks", true, 0}} {
		b.Run(c.name, func(b *testing.B) {
			s := &stream{flow: linktest.Flow4(1)}
			list := listOf(s.bulk(44, c.size))
			defer list.Reset()
			for _, pkt := range list.AsSlice() {
				pkt.RXChecksumValidated = c.vouched
			}
			var j gro.Joiner
			b.ReportAllocs()
			for b.Loop() {
				j.Join(list)
				j.Reset()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/44, "ns/segment")
		})
	}
}
