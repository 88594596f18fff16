package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	vectorFile = "../../testdata/xmit-hash.jsonl"
	// A UDP frame, 192.168.1.10:40000 to 10.0.0.5:80, and the same in VLAN 100.
	macs        = "0200000000aa021122334455"
	vectorFrame = "0800" + "4500001c0000000040110000" + "c0a8010a" + "0a000005" + "9c40005000080000"
	udpFrame    = macs + vectorFrame
	vlanFrame   = macs + "81000064" + vectorFrame
)

// TestHashVectors gives the command every recorded frame, all of a policy and
// a number of slaves at once.
func TestHashVectors(t *testing.T) {
	f, err := os.Open(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type group struct {
		policy string
		slaves int
	}
	in, want := map[group]*strings.Builder{}, map[group]*strings.Builder{}
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var v struct {
			Policy        string
			Slaves, Slave int
		}
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		g := group{v.Policy, v.Slaves}
		if in[g] == nil {
			in[g], want[g] = &strings.Builder{}, &strings.Builder{}
		}
		fmt.Fprintf(in[g], "%s\n", s.Bytes())
		fmt.Fprintln(want[g], v.Slave)
	}
	if n != 5400 || len(in) != 18 {
		t.Fatalf("%d vectors in %d groups, want 5400 in 18", n, len(in))
	}
	for g := range in {
		r := runWith(in[g].String(), "hash", "--policy", g.policy, "--slaves", fmt.Sprint(g.slaves), "--in", "-")
		if r.code != 0 || r.stdout != want[g].String() || r.stderr != "" {
			t.Errorf("%s, %d slaves: exit code %d, stderr %q, or not the recorded slaves", g.policy, g.slaves, r.code, r.stderr)
		}
	}
}

func TestHashOneFrame(t *testing.T) {
	for _, tt := range []struct {
		args, want string
	}{
		{"--policy layer3+4 --slaves 2 --frame " + udpFrame, "0\n"},
		{"--policy layer3+4 --slaves 3 --frame " + udpFrame, "2\n"},
		{"--policy 1 --slaves 3 --frame " + strings.ToUpper(udpFrame), "2\n"},
		{"--policy layer2 --slaves 4 --frame " + udpFrame, "3\n"},
		{"--policy vlan+srcmac --slaves 7 --frame " + vlanFrame, "2\n"},
		{"--policy vlan+srcmac --slaves 7 --via vlan --frame " + vlanFrame, "2\n"},
		{"--policy vlan+srcmac --slaves 7 --via raw --frame " + vlanFrame, "4\n"},
		{"--policy layer2 --slaves 3 --via vlan --frame " + vlanFrame, "2\n"},
		{"--policy layer2 --slaves 3 --via raw --frame " + vlanFrame, "0\n"},
		{"--policy layer2 --slaves 2 --frame 02", "0\n"},
		{"--policy layer3+4 --slaves 9223372036854775807 --frame " + udpFrame, "800021360\n"},
	} {
		r := runWith("", append([]string{"hash"}, strings.Fields(tt.args)...)...)
		if r.code != 0 || r.stdout != tt.want || r.stderr != "" {
			t.Errorf("hash %s: %+v, want %q", tt.args, r, tt.want)
		}
	}
}

func TestHashExplain(t *testing.T) {
	r := runWith("", "hash", "--policy", "layer3+4", "--slaves", "3", "--explain", "--frame", udpFrame)
	r.check(t, "explain", 0, "2\n  policy layer3+4, via vlan\n", "")
	r.check(t, "explain", 0, "\n  h >>= 1 = 0x2faf5b70\n  slave = 0x2faf5b70 mod 3 = 2\n", "")
}

func TestHashFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "frames")
	lines := `{"frame":"` + vlanFrame + `","policy":"layer3+4","slaves":9,"FRAME":"zz","Via":"x"}` + "\r\n" +
		`{"via":"raw", "frame":"` + vlanFrame + `"}` + "\n" +
		`{"via":null,"frame":"` + vlanFrame + `"}` // no newline at the end
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"hash", "--policy", "layer2", "--slaves", "3", "--in", file}
	runWith("", args...).check(t, "a file", 0, "2\n0\n2\n", "")
	runWith("", append(args, "--via=raw")...).check(t, "a file, raw", 0, "0\n0\n0\n", "")
	runWith("", "hash", "--policy", "layer2", "--slaves", "3", "--in", "-").check(t, "no lines", 0, "", "")
}

func TestHashBadLines(t *testing.T) {
	good := `{"frame":"` + udpFrame + `"}` + "\n"
	for _, tt := range []struct{ line, want string }{
		{"", "not a JSON object"},
		{"frame", "not a JSON object"},
		{`["` + udpFrame + `"]`, "not a JSON object"},
		{good[:40], "not a JSON object"},
		{`{"frame":"00"} {}`, "not a JSON object"},
		{`{}`, `no "frame"`},
		{`null`, `no "frame"`},
		{`{"frame":null}`, `no "frame"`},
		{`{"frame":12}`, `no "frame"`},
		{`{"Frame":"` + udpFrame + `"}`, `no "frame"`},
		{`{"frame":""}`, "empty"},
		{`{"frame":"021"}`, "not hex"},
		{`{"frame":"zz"}`, "not hex"},
		{`{"frame":"02","via":"tap"}`, `via "tap"`},
		{`{"frame":"02","via":1}`, `"via" is no string`},
		{`{"frame":"` + strings.Repeat("00", maxLine/2) + `"}`, "line 3: longer than"},
	} {
		r := runWith(good+good+tt.line+"\n"+good, "hash", "--policy", "layer2", "--slaves", "2", "--in", "-")
		name := fmt.Sprintf("%.40q", tt.line)
		r.check(t, name, 1, "1\n1\n", "standard input, line 3: ")
		r.check(t, name, 1, "1\n1\n", tt.want)
	}
}

func TestHashWrongUsage(t *testing.T) {
	frame := " --frame " + udpFrame
	for _, tt := range []struct{ args, want string }{
		{"--slaves 2" + frame, "--policy is missing"},
		{"--policy layer4 --slaves 2" + frame, `xmit_hash_policy "layer4"`},
		{"--policy layer2" + frame, "--slaves is 0"},
		{"--policy layer2 --slaves -1" + frame, "--slaves is -1"},
		{"--policy layer2 --slaves two" + frame, `"two"`},
		{"--policy layer2 --slaves 2", "one of --frame and --in"},
		{"--policy layer2 --slaves 2 --in -" + frame, "one of --frame and --in"},
		{"--policy layer2 --slaves 2 --via tap" + frame, `via "tap"`},
		{"--policy layer2 --slaves 2 --frame 0x02", "--frame: the frame is not hex"},
		{"--policy layer2 --slaves 2 --frame=", "--frame: the frame is empty"},
		{"--policy layer2 --slaves 2 " + udpFrame, "unexpected argument"},
	} {
		r := runWith("", append([]string{"hash"}, strings.Fields(tt.args)...)...)
		r.check(t, tt.args, 2, "", tt.want)
	}
}

func TestHashFailures(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "frames")
	runWith("", "hash", "--policy", "layer2", "--slaves", "2", "--in", missing).check(t, "no such file", 1, "", missing)

	var stderr strings.Builder
	args := []string{"hash", "--policy", "layer2", "--slaves", "2", "--frame", udpFrame}
	if code := run(args, nil, brokenWriter{}, &stderr); code != 1 || !strings.Contains(stderr.String(), "no space") {
		t.Errorf("output that cannot be written: exit code %d, stderr %q", code, stderr.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestHashAnswersAtOnce asks one line after the other through a pipe, as a
// program does that waits for each answer.
func TestHashAnswersAtOnce(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run([]string{"hash", "--policy", "layer2", "--slaves", "2", "--in", "-"}, inR, outW, io.Discard)
		outW.Close()
	}()
	answers := bufio.NewReader(outR)
	for range 3 {
		fmt.Fprintf(inW, "{\"frame\":%q}\n", udpFrame)
		if got, err := answers.ReadString('\n'); got != "1\n" || err != nil {
			t.Fatalf("answer %q, %v, want 1", got, err)
		}
	}
	inW.Close()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}
