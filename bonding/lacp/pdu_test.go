package lacp_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"bondstack/bonding/lacp"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// firstPDU is the first one of a fresh Linux port of 1 Gbit/s, slow and active.
func firstPDU(t testing.TB) []byte {
	return unhex(t, `01 01
		01 14 ffff 020000000010 0009 00ff 0001 c5 000000
		02 14 ffff 000000000000 0001 00ff 0001 02 000000
		03 10 0000 000000000000000000000000
		00 00`+strings.Repeat("00", 50))
}

var firstFields = lacp.PDU{
	Version: 1,
	Actor: lacp.Info{SystemPriority: 0xffff, System: lacp.MAC{2, 0, 0, 0, 0, 0x10}, Key: 9, PortPriority: 255, Port: 1,
		State: lacp.Activity | lacp.Aggregation | lacp.Defaulted | lacp.Expired},
	Partner: lacp.Info{SystemPriority: 0xffff, Key: 1, PortPriority: 255, Port: 1, State: lacp.Timeout},
}

// The four views of one array: each field where the standard has it, and back.

func TestPDUDeconstruct(t *testing.T) {
	b := firstPDU(t)
	if len(b) != lacp.PDUSize {
		t.Fatalf("len = %d, want %d", len(b), lacp.PDUSize)
	}
	for _, f := range []struct {
		name   string
		offset int
		fill   string
		get    func(*lacp.PDU) any
		want   any
	}{
		{"version", 1, "f1", func(p *lacp.PDU) any { return p.Version }, uint8(0xf1)},
		{"actor system priority", 4, "1234", func(p *lacp.PDU) any { return p.Actor.SystemPriority }, uint16(0x1234)},
		{"actor system", 6, "a1a2a3a4a5a6", func(p *lacp.PDU) any { return p.Actor.System.String() }, "a1:a2:a3:a4:a5:a6"},
		{"actor key", 12, "1234", func(p *lacp.PDU) any { return p.Actor.Key }, uint16(0x1234)},
		{"actor port priority", 14, "1234", func(p *lacp.PDU) any { return p.Actor.PortPriority }, uint16(0x1234)},
		{"actor port", 16, "1234", func(p *lacp.PDU) any { return p.Actor.Port }, uint16(0x1234)},
		{"actor state", 18, "a5", func(p *lacp.PDU) any { return p.Actor.State }, lacp.State(0xa5)},
		{"partner system priority", 24, "1234", func(p *lacp.PDU) any { return p.Partner.SystemPriority }, uint16(0x1234)},
		{"partner system", 26, "a1a2a3a4a5a6", func(p *lacp.PDU) any { return p.Partner.System.String() }, "a1:a2:a3:a4:a5:a6"},
		{"partner key", 32, "1234", func(p *lacp.PDU) any { return p.Partner.Key }, uint16(0x1234)},
		{"partner port priority", 34, "1234", func(p *lacp.PDU) any { return p.Partner.PortPriority }, uint16(0x1234)},
		{"partner port", 36, "1234", func(p *lacp.PDU) any { return p.Partner.Port }, uint16(0x1234)},
		{"partner state", 38, "a5", func(p *lacp.PDU) any { return p.Partner.State }, lacp.State(0xa5)},
		{"max delay", 44, "1234", func(p *lacp.PDU) any { return p.MaxDelay }, uint16(0x1234)},
	} {
		c := bytes.Clone(b)
		copy(c[f.offset:], unhex(t, f.fill))
		p, err := lacp.Parse(c)
		if err != nil || f.get(&p) != f.want {
			t.Errorf("%s at %d = %v, %v, want %v", f.name, f.offset, f.get(&p), err, f.want)
		}
		if got := p.AppendTo(nil); !bytes.Equal(got, c) {
			t.Errorf("%s: emitted % x, want % x", f.name, got, c)
		}
	}
}

func TestPDUConstruct(t *testing.T) {
	p := lacp.PDU{}
	b := p.AppendTo([]byte("before"))
	want := "before" + string(unhex(t, "0100 0114"+strings.Repeat("00", 18)+"0214"+strings.Repeat("00", 18)+
		"0310"+strings.Repeat("00", 14)+strings.Repeat("00", 52)))
	if string(b) != want {
		t.Errorf("empty PDU = % x, want % x", b, want)
	}
}

func TestPDUParse(t *testing.T) {
	got, err := lacp.Parse(firstPDU(t))
	if err != nil || got != firstFields {
		t.Errorf("Parse() = %+v, %v, want %+v", got, err, firstFields)
	}
}

func TestPDUEmit(t *testing.T) {
	if got, want := firstFields.AppendTo(nil), firstPDU(t); !bytes.Equal(got, want) {
		t.Errorf("AppendTo() = % x, want % x", got, want)
	}
}

// Case A10: neither too strict nor too loose.
func TestPDURules(t *testing.T) {
	b := firstPDU(t)
	for n := range lacp.PDUSize {
		if _, err := lacp.Parse(b[:n]); !errors.Is(err, lacp.ErrShort) {
			t.Errorf("Parse of %d octets: %v, want %v", n, err, lacp.ErrShort)
		}
	}
	for _, version := range []byte{2, 0xf1} {
		c := append(bytes.Clone(b), make([]byte, 18)...)
		c[1] = version
		p, err := lacp.Parse(c)
		if p.Version = 1; err != nil || p != firstFields {
			t.Errorf("version %#x with a longer frame: %+v, %v", version, p, err)
		}
	}
	c := bytes.Clone(b)
	for _, i := range []int{2, 3, 19, 20, 21, 22, 23, 39, 40, 41, 42, 43, 46, 57, 58, 59, 60, 109} {
		c[i] ^= 0xff // reserved octets, TLV types and lengths
	}
	if p, err := lacp.Parse(c); err != nil || p != firstFields {
		t.Errorf("reserved octets set: %+v, %v", p, err)
	}
	c[0] = 3
	if _, err := lacp.Parse(c); !errors.Is(err, lacp.ErrSubtype) {
		t.Errorf("subtype 3: %v, want %v", err, lacp.ErrSubtype)
	}
}

func TestMarker(t *testing.T) {
	b := unhex(t, "0201 0110 1234 a1a2a3a4a5a6 12345678 0000 0000"+strings.Repeat("00", 90))
	want := lacp.Marker{Version: 1, Type: lacp.MarkerInformation, Port: 0x1234,
		System: lacp.MAC{0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6}, ID: 0x12345678}
	got, err := lacp.ParseMarker(b)
	if err != nil || got != want {
		t.Errorf("ParseMarker() = %+v, %v, want %+v", got, err, want)
	}
	if e := want.AppendTo(nil); !bytes.Equal(e, b) {
		t.Errorf("AppendTo() = % x, want % x", e, b)
	}
	for n := range b {
		if _, err := lacp.ParseMarker(b[:n]); !errors.Is(err, lacp.ErrShort) {
			t.Errorf("ParseMarker of %d octets: %v", n, err)
		}
	}
	if _, err := lacp.ParseMarker(firstPDU(t)); !errors.Is(err, lacp.ErrSubtype) {
		t.Errorf("ParseMarker of a LACPDU: %v", err)
	}
}

func TestStateString(t *testing.T) {
	if got, want := lacp.State(0x3f).String(), "active,short_timeout,aggregating,in_sync,collecting,distributing"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if got := lacp.State(0xc0).String(); got != "defaulted,expired" {
		t.Errorf("String() = %q", got)
	}
}

func TestCodecAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	b := firstPDU(t)
	buf := make([]byte, 0, lacp.PDUSize)
	if n := testing.AllocsPerRun(100, func() {
		p, err := lacp.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		buf = p.AppendTo(buf[:0])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(firstPDU(f))
	f.Add(firstPDU(f)[:109])
	f.Add(append(firstPDU(f), 1, 2, 3))
	f.Add((&lacp.Marker{Type: 1, Port: 3, ID: 77}).AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := lacp.Parse(b); err == nil {
			again, err := lacp.Parse(p.AppendTo(nil))
			if err != nil || again != p {
				t.Fatalf("%+v became %+v, %v", p, again, err)
			}
		} else if len(b) >= lacp.PDUSize && b[0] == lacp.SubtypeLACP {
			t.Fatalf("refused: %v", err)
		}
		if m, err := lacp.ParseMarker(b); err == nil {
			again, err := lacp.ParseMarker(m.AppendTo(nil))
			if err != nil || again != m {
				t.Fatalf("%+v became %+v, %v", m, again, err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	frame := firstPDU(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := lacp.Parse(frame); err != nil {
			b.Fatal(err)
		}
	}
}
