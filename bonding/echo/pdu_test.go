package echo

import (
	"bytes"
	"testing"
	"time"
)

var sample = PDU{Farewell: true, Interval: 10 * time.Millisecond, System: 0x0102030405060708, Discriminator: 0x1112131415161718,
	Sequence: 0x21222324, Count: 1, Entries: [MaxPeers]Entry{{0x3132333435363738, 0x41424344, true}}}

var sampleBytes = []byte{'B', 'E', 1, 1, 0, 10, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
	0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x41, 0x42, 0x43, 0x44, 1, 0, 0, 0}

func TestPDUBytes(t *testing.T) {
	if got := sample.AppendTo(nil); !bytes.Equal(got, sampleBytes) {
		t.Errorf("AppendTo() = % x, want % x", got, sampleBytes)
	}
	var p PDU
	if err := p.Parse(append(bytes.Clone(sampleBytes), 0, 0, 0)); err != nil || p != sample {
		t.Errorf("Parse() = %+v, %v, want %+v", p, err, sample)
	}
}

func TestPDURefused(t *testing.T) {
	with := func(at int, bytes_ ...byte) []byte {
		b := bytes.Clone(sampleBytes)
		copy(b[at:], bytes_)
		return b
	}
	zero := make([]byte, 8)
	for _, c := range []struct {
		b    []byte
		want error
	}{
		{nil, errShort}, {sampleBytes[:headerSize-1], errShort}, {sampleBytes[:len(sampleBytes)-1], errShort},
		{with(0, 'b'), errForeign}, {with(1, 'e'), errForeign}, {with(2, 2), errForeign}, {with(6, MaxPeers+1), errCount}, {with(6, 255), errCount},
		{with(4, 0, 0), errField}, {with(8, zero...), errField}, {with(16, zero...), errField},
	} {
		var p PDU
		if err := p.Parse(c.b); err != c.want {
			t.Errorf("Parse(% x) = %v, want %v", c.b, err, c.want)
		}
	}
}

func FuzzPDU(f *testing.F) {
	f.Add(sampleBytes)
	f.Add(sampleBytes[:headerSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, q PDU
		if p.Parse(b) != nil {
			return
		}
		if err := q.Parse(p.AppendTo(nil)); err != nil || q != p {
			t.Errorf("% x: once %+v, again %+v, %v", b, p, q, err)
		}
	})
}

func TestParseAllocatesNothing(t *testing.T) {
	var p PDU
	b := make([]byte, 0, MaxSize)
	if n := testing.AllocsPerRun(100, func() { p.Parse(sampleBytes); b = p.AppendTo(b[:0]) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
