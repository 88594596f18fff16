package packet

import (
	"bytes"
	"testing"
)

func TestRestoreTag(t *testing.T) {
	b := []byte{9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x08, 0x00, 'x'}
	want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x88, 0xa8, 0xe0, 0x05, 0x08, 0x00, 'x'}
	if !restoreTag(b, vlanTag{protocol: 0x88a8, control: 0xe005}) || !bytes.Equal(b, want) {
		t.Errorf("restoreTag made %x, want %x", b, want)
	}
}

func FuzzRestoreTag(f *testing.F) {
	f.Add(make([]byte, 15), uint16(0x8100), uint16(5))
	f.Add(make([]byte, 16), uint16(0x88a8), uint16(0xffff))
	f.Fuzz(func(t *testing.T, b []byte, protocol, control uint16) {
		before := bytes.Clone(b)
		ok := restoreTag(b, vlanTag{protocol, control})
		if ok != (len(b) >= vlanTagSize+tagOffset) {
			t.Fatalf("restoreTag of %d bytes = %v", len(b), ok)
		}
		if !ok {
			if !bytes.Equal(b, before) {
				t.Errorf("bytes changed: %x, were %x", b, before)
			}
			return
		}
		want := append([]byte{}, before[4:16]...)
		want = append(want, byte(protocol>>8), byte(protocol), byte(control>>8), byte(control))
		want = append(want, before[16:]...)
		if !bytes.Equal(b, want) {
			t.Errorf("restoreTag made %x of %x, want %x", b, before, want)
		}
	})
}
