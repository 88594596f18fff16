package linktest

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"time"
)

// Captured is a frame of a capture.
type Captured struct {
	// At is when it was seen, since the Unix epoch.
	At time.Duration
	// Frame is as on the wire, without FCS.
	Frame []byte
}

// ReadPcap reads the frames of a file, and fails the test where it cannot.
func ReadPcap(tb testing.TB, name string) []Captured {
	tb.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	list, err := ParsePcap(b)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return list
}

// The sizes of a pcap file's header and of a frame's, and what they begin with:
// little-endian, with microseconds, link type Ethernet.
const (
	pcapHeader   = 24
	pcapRecord   = 16
	pcapMagic    = 0xa1b2c3d4
	pcapEthernet = 1
)

// ParsePcap reads the frames of a little-endian pcap file of Ethernet frames.
// Their bytes are those of b. The error says what the file is not.
func ParsePcap(b []byte) ([]Captured, error) {
	le := binary.LittleEndian
	if len(b) < pcapHeader || le.Uint32(b) != pcapMagic || le.Uint32(b[20:]) != pcapEthernet {
		return nil, fmt.Errorf("it is no little-endian pcap file of Ethernet frames")
	}
	var list []Captured
	for b = b[pcapHeader:]; len(b) > 0; {
		if len(b) < pcapRecord || uint64(len(b)) < pcapRecord+uint64(le.Uint32(b[8:])) {
			return nil, fmt.Errorf("it is cut after %d frames", len(list))
		}
		end := pcapRecord + int(le.Uint32(b[8:]))
		at := time.Duration(le.Uint32(b))*time.Second + time.Duration(le.Uint32(b[4:]))*time.Microsecond
		list = append(list, Captured{at, b[pcapRecord:end:end]})
		b = b[end:]
	}
	return list, nil
}
