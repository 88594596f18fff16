package vlan_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"bondstack/link/linktest"
	"bondstack/link/vlan"
)

// model says where a frame goes, decided in the plainest way: the number of the
// device, 0 for the trunk itself; the frame without the tags that are stripped; and
// the name of a counter.
func model(frame []byte, devices map[uint32]int) (place int, stripped []byte, counter string) {
	at := 12
	without := func(at int) []byte { return slices.Concat(frame[:12], frame[at:]) }
	for tags := 0; ; tags++ {
		if len(frame) < at+2 {
			return 0, frame, ""
		}
		typ := binary.BigEndian.Uint16(frame[at:])
		switch {
		case typ != 0x8100 && typ != 0x88a8:
			return 0, without(at), ""
		case tags > 8:
			return -1, nil, "nested"
		case len(frame) < at+6:
			return -1, nil, "truncated"
		}
		id := binary.BigEndian.Uint16(frame[at+2:]) & 0xfff
		if n, ok := devices[uint32(typ)<<16|uint32(id)]; ok {
			return n, without(at + 4), ""
		}
		if id != 0 {
			return 0, without(at), "unknown"
		}
		at += 4
	}
}

// Whatever arrives goes to one place, as the model says, or is counted.
func FuzzReceive(f *testing.F) {
	plain := to(baseMAC)
	f.Add(plain)
	f.Add(plain[:13])
	for _, tags := range [][]uint32{{0x81000005}, {0x88a80005}, {0x81000000, 0x81000005}, {0x8100e006}, {0x81000fff}, {0x81000007}} {
		frame := plain
		for i := len(tags) - 1; i >= 0; i-- {
			frame = linktest.VLAN(frame, uint16(tags[i]>>16), uint16(tags[i]))
		}
		for n := 14; n < min(len(frame), 24); n++ {
			f.Add(frame[:n])
		}
		f.Add(frame)
	}
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	trunk := newTrunk(f, r)
	devices := map[uint32]int{0x81000005: 1, 0x88a80005: 2, 0x81000007: 3}
	var sinks [4]linktest.Sink
	trunk.Attach(&sinks[0])
	add(f, trunk, q(5), vlan.Options{}).Attach(&sinks[1])
	add(f, trunk, ad(5), vlan.Options{}).Attach(&sinks[2])
	add(f, trunk, q(7), vlan.Options{LinkAddress: ownMAC}).Attach(&sinks[3])
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := trunk.Stats()
		r.Inject(frame)
		after := trunk.Stats()
		place, stripped, counter := model(frame, devices)
		filtered := after.OtherHost - before.OtherHost
		for i := range sinks {
			got := sinks[i].Drain()
			want := 0
			if i == place && filtered == 0 {
				want = 1
			}
			if len(got) != want || want == 1 && string(got[0].Frame) != string(stripped) {
				t.Errorf("place %d got %+v, want %d frames; the model says %d, %q", i, got, want, place, counter)
			}
		}
		if filtered != 0 && (place < 0 || counter != "") {
			t.Errorf("filtered, where the model says %d, %q", place, counter)
		}
		for name, n := range map[string]uint64{
			"unknown": after.UnknownVLAN - before.UnknownVLAN, "truncated": after.Truncated - before.Truncated, "nested": after.Nested - before.Nested,
		} {
			if (n == 1) != (name == counter) || n > 1 {
				t.Errorf("%s counted %d, the model says %q", name, n, counter)
			}
		}
	})
}

// A frame of any bytes is sent with the path's tags, which it gets where it has not
// all of them, or is counted as short.
func FuzzWrite(f *testing.F) {
	plain := from(baseMAC)
	f.Add(plain)
	for n := range 30 {
		f.Add(linktest.VLAN(linktest.VLAN(plain, 0x8100, 5), 0x88a8, 7)[:n])
	}
	f.Add(linktest.VLAN(plain, 0x88a8, 0xe007))
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	trunk := newTrunk(f, r)
	outer := add(f, trunk, ad(7), vlan.Options{Priority: 1})
	inner := add(f, newTrunk(f, outer), q(5), vlan.Options{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, tt := range []struct {
			d    *vlan.Device
			tags []byte
		}{{outer, []byte{0x88, 0xa8, 0x20, 7}}, {inner, []byte{0x88, 0xa8, 0x20, 7, 0x81, 0, 0, 5}}} {
			has := len(frame) >= 12+len(tt.tags)
			for i := 0; has && i < len(tt.tags); i += 4 {
				tag := frame[12+i:]
				has = tag[0] == tt.tags[i] && tag[1] == tt.tags[i+1] && tag[2]&0xf == 0 && tag[3] == tt.tags[i+3]
			}
			want := frame
			if !has && len(frame) >= 14 {
				want = slices.Concat(frame[:12], tt.tags, frame[12:])
			}
			n, err := linktest.Write(tt.d, frame)
			got := r.Drain()
			switch {
			case n != 1 || err != nil:
				t.Errorf("WritePackets() = %d, %v", n, err)
			case len(frame) < 14:
				if len(got) != 0 {
					t.Errorf("%x was sent as %x", frame, got[0].Frame)
				}
			case len(got) != 1 || !bytes.Equal(got[0].Frame, want):
				t.Errorf("%x was sent as %+v, want %x", frame, got, want)
			}
		}
	})
}
