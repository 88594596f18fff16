package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// How often: go test -run TestExecLeaves ./cmd/bondstack -exec.runs=1000 -exec.kills=20
var (
	execRuns  = flag.Int("exec.runs", 20, "runs of bondstack exec that must leave nothing")
	execKills = flag.Int("exec.kills", 5, "kills of bondstack exec that must leave nothing")
)

// traces is what there is of sandboxes: by what kind of thing, which.
type traces map[string][]string

// marker in the environment of a command tells its processes from others.
const marker = "BONDSTACK_TEST_MARKER"

// traces looks for what sandboxes may leave: processes with the marker, interfaces,
// addresses and routes of the near namespace, mounts.
func (l *lan) traces(value string) traces {
	l.t.Helper()
	lines := func(name string, args ...string) []string {
		return strings.Split(l.near.Run(name, args...), "\n")
	}
	found := traces{
		"addresses": lines("ip", "-o", "address"),
		"routes":    lines("ip", "route", "show", "table", "all"),
	}
	for _, line := range lines("ip", "-o", "link") {
		if f := strings.Fields(line); len(f) > 1 { // without the state, which the kernel shows late
			found["links"] = append(found["links"], f[1])
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		// Those that a sandbox makes; others are of other programs.
		if f := strings.Fields(line); len(f) > 1 && slices.Contains([]string{"/etc/resolv.conf", "/proc", "/sys", "/dev/net"}, f[1]) {
			found["mounts"] = append(found["mounts"], line)
		}
	}
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(marker+"="+value)) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			found["processes"] = append(found["processes"], string(line))
		}
	}
	return found
}

// awaitTraces waits until only what was there before is left.
func (l *lan) awaitTraces(value string, before traces) {
	l.t.Helper()
	var now traces
	defer func() {
		if l.t.Failed() {
			l.t.Logf("before there was\n%v, now\n%v", before, now)
		}
	}()
	eventually(l.t, "nothing is left", func() bool {
		now = l.traces(value)
		return maps.EqualFunc(now, before, slices.Equal)
	})
}

// Runs leave no namespace, device, route, descriptor or process.
func TestExecLeavesNothing(t *testing.T) {
	l := execLAN(t)
	value := fmt.Sprint("runs", os.Getpid())
	before := l.traces(value)
	descriptors := countDescriptors(t)
	begin := time.Now()
	for range *execRuns {
		cmd := selfCommand(append(execArgs(), "true")...)
		cmd.Env = append(cmd.Env, marker+"="+value)
		code, _, stderr := l.exec(cmd)
		if code != 0 || stderr != "" {
			t.Fatalf("exit code %d, %s", code, stderr)
		}
	}
	t.Logf("%d runs took %v each", *execRuns, time.Since(begin)/time.Duration(*execRuns))
	l.awaitTraces(value, before)
	if after := countDescriptors(t); after != descriptors {
		t.Errorf("%d descriptors, %d before", after, descriptors)
	}
}

// countDescriptors counts those of this process.
func countDescriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A kill of bondstack at any moment leaves nothing, neither of the command nor of
// what that has started.
func TestExecKilled(t *testing.T) {
	l := execLAN(t)
	value := fmt.Sprint("kills", os.Getpid())
	before := l.traces(value)
	const seed = 7
	moments := rand.New(rand.NewPCG(seed, 0))
	for n := range *execKills {
		cmd := selfCommand(append(execArgs(), "sh", "-c", "setsid sleep 1000 & sleep 1000 & readlink /proc/self/ns/net; exec sleep 1000")...)
		unprivilegedToo := n%2 == 1
		if unprivilegedToo {
			cmd = unprivileged(t, nil, "exec", "--slave", "user:", "--mode", "1", "--detect", "0", "--",
				"sh", "-c", "setsid sleep 1000 & sleep 1000 & exec sleep 1000")
		}
		cmd.Env = append(cmd.Env, marker+"="+value)
		l.near.Start(cmd)
		moment := time.Duration(moments.Int64N(int64(300 * time.Millisecond)))
		time.Sleep(moment) // not for a state: the moment is what is tried
		cmd.Process.Kill()
		cmd.Wait()
		l.awaitTraces(value, before)
		if t.Failed() {
			t.Fatalf("seed %d, kill %d, after %v, unprivileged: %v", seed, n, moment, unprivilegedToo)
		}
	}
}
