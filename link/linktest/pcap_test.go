package linktest_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bondstack/link/linktest"
)

// pcapFile is a file of two frames.
var pcapFile = func() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	for _, w := range []uint32{100, 250, 3, 3} {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	b = append(b, "abc"...)
	for _, w := range []uint32{101, 0, 1, 60} { // cut when it was captured
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return append(b, 'd')
}()

func TestReadPcap(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.pcap")
	if err := os.WriteFile(name, pcapFile, 0o600); err != nil {
		t.Fatal(err)
	}
	got := linktest.ReadPcap(t, name)
	if len(got) != 2 || got[0].At != 100*time.Second+250*time.Microsecond || string(got[0].Frame) != "abc" ||
		got[1].At != 101*time.Second || string(got[1].Frame) != "d" {
		t.Errorf("ReadPcap() = %+v", got)
	}
	for _, n := range []int{0, 10, len(pcapFile) - 1, len(pcapFile) - 17, 24 + 16 + 2} {
		if list, err := linktest.ParsePcap(pcapFile[:n]); err == nil && n != len(pcapFile)-17 {
			t.Errorf("ParsePcap() of %d bytes = %v, nil", n, list)
		}
	}
}

// Any bytes are refused or read, and what is read is of the file.
func FuzzParsePcap(f *testing.F) {
	f.Add(pcapFile)
	f.Add(pcapFile[:24])
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := linktest.ParsePcap(b)
		if err != nil {
			return
		}
		size := 24
		for _, c := range list {
			size += 16 + len(c.Frame)
			if !bytes.Contains(b, c.Frame) {
				t.Errorf("frame %x is not of the file", c.Frame)
			}
		}
		if size != len(b) {
			t.Errorf("%d bytes were read of %d", size, len(b))
		}
	})
}
