package vnet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// virtioBytes is a header whose numbers are in the machine's byte order.
func virtioBytes(flags, GSOType byte, numbers ...uint16) []byte {
	b := []byte{flags, GSOType}
	for _, n := range numbers {
		b = binary.NativeEndian.AppendUint16(b, n)
	}
	return b
}

func TestVirtioParseAndPut(t *testing.T) {
	raw := virtioBytes(NeedsChecksum, TCPv4, 66, 1448, 34, 16)
	want := Header{
		Flags: 1, GSOType: 1, HeaderLen: 66, GSOSize: 1448, ChecksumStart: 34, ChecksumOffset: 16,
	}
	got, ok := Parse(raw)
	if !ok || got != want {
		t.Errorf("Parse(%x) = %+v, %v, want %+v, true", raw, got, ok, want)
	}
	b := make([]byte, Size)
	want.Put(b)
	if !bytes.Equal(b, raw) {
		t.Errorf("put = %x, want %x", b, raw)
	}
	for n := range Size {
		if h, ok := Parse(raw[:n]); ok {
			t.Errorf("Parse of %d bytes = %+v, true, want false", n, h)
		}
	}
}

func TestVirtioVouched(t *testing.T) {
	for flags, want := range map[uint8]bool{0: false, NeedsChecksum: true, DataValid: true, 4: false} {
		if got := (Header{Flags: flags}).Vouched(); got != want {
			t.Errorf("vouched() with flags %d = %v, want %v", flags, got, want)
		}
	}
}

func TestVirtioForPacket(t *testing.T) {
	v4 := stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, CsumOffset: header.TCPChecksumOffset, MSS: 1448, L3HdrLen: 20}
	v6 := v4
	v6.Type, v6.L3HdrLen = stack.GSOTCPv6, 40
	noMSS, noChecksum, soft := v4, v4, v4
	noMSS.MSS, noChecksum.NeedsCsum, soft.Type = 0, false, stack.GSOGvisor
	for _, c := range []struct {
		name    string
		gso     stack.GSO
		payload int
		tags    int
		want    Header
	}{
		{"plain", stack.GSO{}, 5000, 0, Header{}},
		{"ipv4", v4, 5000, 0, Header{1, TCPv4, 14 + 52, 1448, 34, 16}},
		{"ipv6", v6, 5000, 0, Header{1, TCPv6, 14 + 72, 1448, 54, 16}},
		{"behind a tag", v4, 5000, 1, Header{1, TCPv4, 18 + 52, 1448, 38, 16}},
		{"one segment", v4, 1448, 0, Header{1, 0, 14 + 52, 0, 34, 16}},
		{"one byte more", v4, 1449, 0, Header{1, TCPv4, 14 + 52, 1448, 34, 16}},
		{"over 64 KiB", v4, 1<<16 + 1, 0, Header{1, TCPv4, 14 + 52, 1448, 34, 16}},
		{"no segment size", noMSS, 5000, 0, Header{1, 0, 14 + 52, 0, 34, 16}},
		{"checksum made", noChecksum, 5000, 0, Header{0, TCPv4, 14 + 52, 1448, 0, 0}},
		{"a partial checksum only", stack.GSO{NeedsCsum: true, CsumOffset: 6, L3HdrLen: 20}, 5000, 0, Header{1, 0, 14 + 52, 0, 34, 6}},
		{"segmented by gvisor", soft, 5000, 0, Header{}},
	} {
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
			ReserveHeaderBytes: 200,
			Payload:            buffer.MakeWithData(make([]byte, c.payload)),
		})
		pkt.TransportHeader().Push(32)
		pkt.NetworkHeader().Push(int(max(c.gso.L3HdrLen, 20)))
		pkt.LinkHeader().Push(header.EthernetMinimumSize + c.tags*vlanTagSize)
		pkt.GSOOptions = c.gso
		if got := For(pkt); got != c.want {
			t.Errorf("%s: For = %+v, want %+v", c.name, got, c.want)
		}
		pkt.DecRef()
	}
}

func TestVirtioGSOOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		h    Header
		want stack.GSO
	}{
		{"none", Header{}, stack.GSO{}},
		{"ipv4", Header{1, TCPv4, 66, 1448, 34, 16},
			stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, CsumOffset: 16, MSS: 1448, L3HdrLen: 20, MaxSize: GSOMaxSize}},
		{"ipv6 with congestion marks", Header{1, TCPv6 | ECN, 86, 1428, 54, 16},
			stack.GSO{Type: stack.GSOTCPv6, NeedsCsum: true, CsumOffset: 16, MSS: 1428, L3HdrLen: 40, MaxSize: GSOMaxSize}},
		{"verified by hardware", Header{DataValid, TCPv4, 66, 1448, 0, 0},
			stack.GSO{Type: stack.GSOTCPv4, MSS: 1448, MaxSize: GSOMaxSize}},
		{"checksum in the link header", Header{1, TCPv4, 66, 1448, 13, 16},
			stack.GSO{Type: stack.GSOTCPv4, MSS: 1448, MaxSize: GSOMaxSize}},
		{"unknown", Header{1, 99, 66, 1448, 34, 16}, stack.GSO{}},
		{"one segment", Header{1, 0, 0, 0, 34, 16}, stack.GSO{NeedsCsum: true, CsumOffset: 16, L3HdrLen: 20}},
		{"one segment, verified", Header{DataValid, 0, 0, 0, 34, 16}, stack.GSO{}},
	} {
		if got := c.h.GSOOptions(14); got != c.want {
			t.Errorf("%s: gsoOptions = %+v, want %+v", c.name, got, c.want)
		}
	}
}

func FuzzVirtio(f *testing.F) {
	f.Add(virtioBytes(1, 1, 66, 1448, 34, 16))
	f.Add(virtioBytes(2, 0x84, 0, 65535, 65535, 65535))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, ok := Parse(raw)
		if ok != (len(raw) >= Size) {
			t.Fatalf("Parse of %d bytes = %v", len(raw), ok)
		}
		if !ok {
			return
		}
		b := make([]byte, Size)
		h.Put(b)
		if !bytes.Equal(b, raw[:Size]) {
			t.Errorf("put after parse = %x, want %x", b, raw[:Size])
		}
		if gso := h.GSOOptions(14); gso.Type == stack.GSONone && !gso.NeedsCsum && gso != (stack.GSO{}) {
			t.Errorf("gsoOptions of no segments = %+v", gso)
		}
	})
}
