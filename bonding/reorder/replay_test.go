package reorder

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// replays are orders of arrival, step by step, with what each step delivers.
// "A3" is piece 3 on link A, "y:A3" that of stream y; "fin", "rst", "syn" and
// "ack" follow a piece that is such; "+1ms" lets time pass; "gone B" tells of a
// link. Pieces count from 0; the hold time is 2 ms.
var replays = []struct {
	name   string
	origin uint32
	steps  string // one on each line: what comes, "->", what is delivered
	counts Counts
}{
	{name: "in order", steps: `
		A0 B1 A2 B3 -> 0 1 2 3
		A4 A5 A6 -> 4 5 6`},
	{name: "one link ahead of the other", steps: `
		A0 B1 -> 0 1
		A2 A4 A6 -> 2
		B3 -> 3 4
		B5 -> 5 6
		A8 -> .
		B7 -> 7 8`,
		counts: Counts{Held: 3, Filled: 3}},
	{name: "loss, known once both links have delivered something later", steps: `
		A0 B1 -> 0 1
		B3 B5 -> .
		A4 -> 3 4 5
		A6 B7 -> 6 7
		A2 -> 2
		A8 B9 -> 8 9`, // 2 is sent again
		counts: Counts{Held: 3, Lost: 3, Gaps: 1, Late: 1}},
	{name: "two losses in a row", steps: `
		A0 B1 -> 0 1
		B3 B5 B7 -> .
		A6 -> 3 5 6 7
		A8 -> 8`,
		counts: Counts{Held: 4, Lost: 4, Gaps: 2}},
	{name: "loss of the tail is not held up for long", steps: `
		A0 B1 -> 0 1
		B3 -> .
		+7ms -> .
		+1ms -> 3
		A2 -> 2`,
		counts: Counts{Held: 1, Expired: 1, Gaps: 1, Late: 1}},
	{name: "retransmission passes at once", steps: `
		A0 B1 A2 -> 0 1 2
		A4 -> .
		B1 A1 B0 -> 1 1 0
		B3 -> 3 4`,
		counts: Counts{Held: 1, Filled: 1, Late: 3}},
	{name: "retransmission fills the gap", steps: `
		A0 B1 -> 0 1
		B3 B5 -> .
		B2 -> 2 3
		A4 -> 4 5`,
		counts: Counts{Held: 2, Filled: 2}},
	{name: "an idle link holds the flow up once", steps: `
		A0 B1 -> 0 1
		A2 A4 A5 -> 2
		+8ms -> 4 5
		A7 -> 7
		A9 A11 -> 9 11
		A10 -> 10`, // B is out of use: each gap is a loss
		counts: Counts{Held: 5, Expired: 2, Lost: 3, Gaps: 4, Late: 1}},
	{name: "new flows do not wait for an idle link", steps: `
		A0 B1 -> 0 1
		A3 -> .
		+1500us A5 -> .
		+500us -> 3 5
		y:A0 y:A2 -> y:0 y:2`,
		counts: Counts{Held: 3, Expired: 2, Lost: 1, Gaps: 3}},
	{name: "an idle link comes back", steps: `
		A0 B1 -> 0 1
		A3 -> .
		+8ms -> 3
		A5 -> 5
		B6 -> 6
		A8 -> .
		B7 -> 7 8`,
		counts: Counts{Held: 3, Expired: 1, Lost: 1, Filled: 1, Gaps: 2}},
	{name: "several gaps end with one expiry", steps: `
		A0 B1 -> 0 1
		A2 A4 A6 A8 -> 2
		+8ms -> 4 6 8
		A10 A12 -> 10 12
		B3 -> 3
		A14 -> .
		B13 -> 13 14`,
		counts: Counts{Held: 6, Expired: 3, Lost: 2, Late: 1, Gaps: 5, Filled: 1}},
	{name: "a link that is always too late loses its say", steps: `
		A0 B1 -> 0 1
		A2 A4 -> 2
		+8ms -> 4
		B3 -> 3
		A6 -> .
		+8ms -> 6
		B5 -> 5
		A8 -> 8
		B7 -> 7
		A10 -> .
		+8ms -> 10
		B9 -> 9
		A12 -> 12`,
		counts: Counts{Held: 5, Expired: 3, Lost: 2, Gaps: 5, Late: 4}},
	{name: "a link that lags is waited for while it goes on", steps: `
		A0 B1 -> 0 1
		A2 A4 A6 A8 -> 2
		+1500us -> .
		B3 -> 3 4
		+1500us -> .
		B5 -> 5 6
		+1500us -> .
		B7 -> 7 8`,
		counts: Counts{Held: 3, Filled: 3}},
	{name: "so is one that is busy with other flows", steps: `
		A0 B1 y:A0 -> 0 1 y:0
		A3 -> .
		+1500us y:B1 +1500us y:B2 +1500us y:B3 -> y:1 y:2 y:3
		B2 -> 2 3
		A5 -> .
		y:B4 +8ms -> y:4 5`,
		counts: Counts{Held: 2, Filled: 1, Expired: 1, Gaps: 1}},
	{name: "but not for ever", steps: `
		A0 B1 -> 0 1
		A2 A4 A6 A8 A10 A12 A14 A16 -> 2
		+1500us B3 +1500us B5 +1500us B7 +1500us B9 -> 3 4 5 6 7 8 9 10
		+1500us -> .
		+500us -> 12 14 16`,
		counts: Counts{Held: 7, Filled: 4, Expired: 3, Gaps: 3}},
	{name: "a link dies with frames held", steps: `
		A0 B1 -> 0 1
		A2 A4 A6 -> 2
		gone B -> 4 6
		A8 -> 8`,
		counts: Counts{Held: 3, LinkGone: 2, Lost: 1, Gaps: 3}},
	{name: "the link that delivered what is held dies", steps: `
		A0 B1 -> 0 1
		A2 A4 -> 2
		gone A -> .
		B3 -> 3 4
		B5 -> 5`,
		counts: Counts{Held: 1, Filled: 1}},
	{name: "all links die", steps: `
		A0 B1 -> 0 1
		A2 A4 -> 2
		gone AB -> 4`,
		counts: Counts{Held: 1, LinkGone: 1, Gaps: 1}},
	{name: "sequence wraps", origin: 1<<32 - 250, steps: `
		A0 B1 -> 0 1
		A2 A4 -> 2
		B3 B5 -> 3 4 5
		B7 B9 -> .
		A8 -> 7 8 9
		A6 -> 6`,
		counts: Counts{Held: 4, Filled: 1, Lost: 3, Gaps: 1, Late: 1}},
	{name: "the numbers' sign wraps", origin: 1<<31 - 250, steps: `
		A0 B1 -> 0 1
		A2 A4 -> 2
		B3 B5 -> 3 4 5`,
		counts: Counts{Held: 1, Filled: 1}},
	{name: "several flows wait for themselves alone", steps: `
		B0ack A0 y:B0 z:A0 -> 0ack 0 y:0 z:0
		A2 y:B2 -> .
		z:B1 A3 -> z:1
		y:A1 -> y:1 y:2
		B1 -> 1 2 3`,
		counts: Counts{Held: 3, Filled: 3}},
	{name: "pure acknowledgements, windows and other protocols pass", steps: `
		A0 B1 -> 0 1
		A3 -> .
		A4ack B2ack -> 4ack 2ack
		B2 -> 2 3`,
		counts: Counts{Held: 1, Filled: 1}},
	{name: "a FIN has its place", steps: `
		A0 B1 -> 0 1
		A3fin -> .
		B2 -> 2 3fin`,
		counts: Counts{Held: 1, Filled: 1}},
	{name: "a reset passes at once, after what is held", steps: `
		A0 B1 -> 0 1
		A3 -> .
		A4rst -> 3 4rst
		B2 -> 2`,
		counts: Counts{Held: 1, Evicted: 1, Gaps: 1}},
	{name: "a SYN begins anew", steps: `
		A100 B101 -> 100 101
		A103 -> .
		A0syn -> 103 0syn
		A1 -> .
		B0 -> 0 1`,
		counts: Counts{Held: 2, Evicted: 1, Filled: 1, Gaps: 1}},
	{name: "an unknown flow begins where it is first seen", steps: `
		y:A0 y:B1 -> y:0 y:1
		A7 -> 7
		B6 -> 6
		B8 A9 -> 8 9`,
		counts: Counts{Late: 1}},
	{name: "equal pieces are both delivered", steps: `
		A0 B1 -> 0 1
		A3 A3 -> .
		B2 -> 2 3 3`,
		counts: Counts{Held: 2, Filled: 2}},
	{name: "three links", steps: `
		A0 B1 C2 -> 0 1 2
		A3 A6 A9 C5 -> 3
		B4 -> 4 5 6
		C8 -> .
		B10 -> 8 9 10`, // 7 is lost
		counts: Counts{Held: 5, Filled: 2, Lost: 3, Gaps: 1}},
}

func TestReplays(t *testing.T) {
	for _, tt := range replays {
		for _, family := range []func(int) stream{stream4, stream6} {
			t.Run(tt.name, func(t *testing.T) {
				r := newRig(t, Options{Hold: 2 * time.Millisecond})
				names := map[uint32]string{}
				for _, line := range strings.Split(strings.TrimSpace(tt.steps), "\n") {
					in, want, _ := strings.Cut(line, "->")
					r.play(in, names, family, tt.origin)
					var got []string
					for _, id := range r.drain() {
						got = append(got, names[id])
					}
					if got, want := strings.Join(got, " "), strings.Trim(want, " ."); got != want {
						t.Errorf("%s: delivered %q, want %q", strings.TrimSpace(in), got, want)
					}
				}
				want := tt.counts
				if got := r.counters.Counts(); got != want {
					t.Errorf("counts are\n %+v, want\n %+v", got, want)
				}
			})
		}
	}
}

// play has the events of a line happen.
func (r *rig) play(line string, names map[uint32]string, family func(int) stream, origin uint32) {
	r.tb.Helper()
	words := strings.Fields(line)
	for i, w := range words {
		switch {
		case w[0] == '+':
			d, err := time.ParseDuration(w[1:])
			if err != nil {
				r.tb.Fatal(err)
			}
			r.clock.Advance(d)
		case w == "gone":
			var links uint32
			for _, l := range words[i+1] {
				links |= 1 << (l - 'A')
			}
			r.Gone(links)
			return
		default:
			s, flow := family(0), ""
			if w[1] == ':' {
				s, flow, w = family(int(w[0])), w[:2], w[2:]
			}
			s.origin = origin
			link, kind := int(w[0]-'A'), strings.TrimLeft(w[1:], "0123456789")
			k, err := strconv.Atoi(strings.TrimSuffix(w[1:], kind))
			if err != nil {
				r.tb.Fatal(err)
			}
			id := uint32(len(names))
			names[id] = fmt.Sprint(flow, k, kind)
			r.give(link, id, s.kind(k, kind))
		}
	}
}

// kind is the frame of a piece that is more or less than data.
func (s stream) kind(k int, kind string) []byte {
	seg := linktest.Segment{Seq: s.origin + uint32(k*size)}
	switch kind {
	case "ack":
	case "fin":
		seg.Flags = header.TCPFlagFin | header.TCPFlagAck
	case "rst":
		seg.Flags = header.TCPFlagRst
	case "syn":
		seg.Flags = header.TCPFlagSyn
		seg.Seq--
	default:
		return s.piece(k)
	}
	return s.segment(seg)
}
