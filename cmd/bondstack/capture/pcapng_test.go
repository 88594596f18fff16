package capture

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

// frames is a source of some frames.
type frames struct {
	list    []bonding.Captured
	dropped uint64
}

func (f *frames) Next(context.Context) (bonding.Captured, bool) {
	if len(f.list) == 0 {
		return bonding.Captured{}, false
	}
	next := f.list[0]
	f.list = f.list[1:]
	return next, true
}

func (f *frames) Dropped() uint64 { return f.dropped }

func some() *frames {
	udp, icmp := linktest.Flow4(1).UDP([]byte("hello")), linktest.Flow4(2).IP(1, make([]byte, 8))
	at := time.Unix(1700000000, 123456789)
	return &frames{dropped: 7, list: []bonding.Captured{
		{Time: at, Slave: "eth0", Out: true, Length: len(udp), Data: udp},
		{Time: at.Add(time.Microsecond), Slave: "eth1", Length: len(udp), Data: udp[:30]},
		{Time: at.Add(time.Second), Out: true, Length: len(icmp), Data: icmp},
		{Time: at.Add(2 * time.Second), Slave: "eth0", Length: len(udp), Data: udp},
	}}
}

// TestReadableByTshark: tshark finds the interfaces, directions, times and comments.
func TestReadableByTshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("needs root and tshark (apt-get install tshark)")
	}
	path := filepath.Join(t.TempDir(), "out.pcapng")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	totals, err := Write(t.Context(), file, some(), Options{Bond: "bond0", SnapLen: 65664})
	if want := (Totals{Written: 4, Dropped: 7}); err != nil || totals != want {
		t.Fatalf("Write = %+v, %v, want %+v", totals, err, want)
	}
	cmd := exec.Command(tshark, "-r", path, "-T", "fields", "-E", "separator=|", "-t", "r",
		"-e", "frame.interface_name", "-e", "frame.packet_flags_direction", "-e", "frame.comment", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "frame.cap_len", "-e", "ip.src")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "TZ=UTC")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, want := range [][]string{
		{"eth0", "0x00000002", "eth0 sent", "1700000000.123456789", "47", "47", "10.1.0.1"},
		{"eth1", "0x00000001", "eth1 received", "1700000000.123457789", "47", "30", "10.1.0.1"},
		{"bond0", "0x00000002", "bond0 sent", "1700000001.123456789", "42", "42", "10.1.0.2"},
		{"eth0", "0x00000001", "eth0 received", "1700000002.123456789", "47", "47", "10.1.0.1"},
	} {
		if i >= len(lines) || lines[i] != strings.Join(want, "|") {
			t.Errorf("frame %d: %q, want %q", i, lines[min(i, len(lines)-1)], strings.Join(want, "|"))
		}
	}
}

func TestWriteEnds(t *testing.T) {
	filter, err := ParseFilter("udp")
	if err != nil {
		t.Fatal(err)
	}
	flushed := 0
	var out bytes.Buffer
	totals, err := Write(t.Context(), &out, some(), Options{Bond: "bond0", Filter: filter, Flush: func() error { flushed++; return nil }})
	if want := (Totals{Written: 2, Filtered: 2, Dropped: 7}); err != nil || totals != want || flushed != 4 {
		t.Errorf("with a filter: %+v, %v, flushed %d times; want %+v, 4 (a frame that is cut has no protocol)", totals, err, flushed, want)
	}
	totals, err = Write(t.Context(), &out, some(), Options{Bond: "bond0", Count: 2})
	if totals.Written != 2 || err != nil {
		t.Errorf("two frames: %+v, %v", totals, err)
	}
	full := errors.New("no space")
	if _, err := Write(t.Context(), &out, some(), Options{Bond: "bond0", Flush: func() error { return full }}); !errors.Is(err, full) {
		t.Errorf("where writing fails: %v", err)
	}
}
