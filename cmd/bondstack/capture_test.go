package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
)

// TestCaptureOfInstance: what the peer sends and is sent is in the file, by slave and
// direction, and no more than was asked for.
func TestCaptureOfInstance(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), append(backup, "--serve", "echo:7")...)
	path := filepath.Join(t.TempDir(), "out.pcapng")
	begun, w := io.Pipe()
	ended := make(chan int, 1)
	var stdout bytes.Buffer
	go func() {
		ended <- run([]string{"capture", "--control", i.socket, "--filter", "tcp port 7 and host 10.0.0.1", "--count", "6", "--snaplen", "60", "-w", path}, nil, &stdout, w)
		w.Close()
	}()
	line := make([]byte, len("capturing\n"))
	if _, err := io.ReadFull(begun, line); err != nil || string(line) != "capturing\n" {
		t.Fatalf("stderr begins with %q, %v", line, err)
	}
	c := n.dial("10.0.0.2:7")
	c.Write([]byte("hello"))
	c.CloseWrite()
	if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
		t.Fatalf("echo: %q, %v", got, err)
	}
	rest, _ := io.ReadAll(begun)
	if code := <-ended; code != exitOK || !strings.Contains(string(rest), "6 frames, ") || !strings.Contains(string(rest), " 0 dropped") {
		t.Errorf("exit code %d, stderr %q", code, rest)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	ways := map[string]bool{}
	for {
		data, info, options, err := r.ReadPacketDataWithOptions()
		if err != nil {
			break
		}
		read++
		at, err := r.Interface(info.InterfaceIndex)
		if err != nil || at.Name != "eth0" || info.CaptureLength > 60 || len(data) > 60 || info.Length < 54 {
			t.Errorf("frame %d: %+v at %+v, %v", read, info, at.Name, err)
		}
		ways[strings.Join(options.Comments, "")] = true
	}
	if read != 6 || !ways["eth0 sent"] || !ways["eth0 received"] {
		t.Errorf("%d frames, of which %v", read, ways)
	}
}

func TestCaptureFlagFaults(t *testing.T) {
	i := start(t, newNetwork(t, "eth0", "eth1").kinds(), backup...)
	for want, args := range map[string][]string{
		`--filter: filter "weather": "weather" is not known`: {"--filter", "weather"},
		"give --bond or --slave, not both":                   {"--bond", "--slave", "eth0"},
		"--snaplen: 0: allowed are 1 to 65664":               {"--snaplen", "0"},
		"--for: -1s":                                         {"--for", "-1s"},
	} {
		runWith("", append([]string{"capture", "-w", "-"}, args...)...).check(t, strings.Join(args, " "), exitUsage, "", want)
	}
	runWith("", "capture", "--control", i.socket, "--slave", "eth9").check(t, "no such slave", exitFailure, "", "422 Unprocessable Entity: capture \"eth9\": no such slave")
	runWith("", "capture", "--control", i.socket, "--for", "500ms").check(t, "nothing to capture", exitOK, "\x0a\x0d\x0d\x0a", "capturing\n")
	runWith("", "capture", "--control", tempSocket(t)).check(t, "no instance", exitFailure, "", "no instance runs on")
}
