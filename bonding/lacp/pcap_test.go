package lacp_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const captures = "../../testdata/lacp"

type captured struct {
	at    time.Duration // since the epoch
	frame []byte
}

// readPcap reads a little-endian pcap file of Ethernet frames.
func readPcap(t testing.TB, name string) []captured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(captures, name))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	if len(b) < 24 || le.Uint32(b) != 0xa1b2c3d4 || le.Uint32(b[20:]) != 1 {
		t.Fatalf("%s is not a pcap file of Ethernet frames", name)
	}
	var list []captured
	for b = b[24:]; len(b) >= 16; {
		n := int(le.Uint32(b[8:]))
		if len(b) < 16+n {
			t.Fatalf("%s is cut", name)
		}
		at := time.Duration(le.Uint32(b))*time.Second + time.Duration(le.Uint32(b[4:]))*time.Microsecond
		list = append(list, captured{at, b[16 : 16+n]})
		b = b[16+n:]
	}
	return list
}
