package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runscLimit bounds how long it may take to build runsc.
const runscLimit = 4 * time.Minute

// buildRunsc builds gVisor's own sandbox, of the version in go.mod, into the user's
// cache, and returns its path. That needs the module proxy, or a filled cache.
func buildRunsc(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("with -short runsc is not built")
	}
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "gvisor.dev/gvisor").Output()
	if err != nil {
		t.Skipf("needs the go command to build runsc: %v", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("needs a cache folder to build runsc: %v", err)
	}
	path := filepath.Join(cache, "bondstack-test", "runsc-"+strings.TrimSpace(string(version)))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	// A module of its own: runsc needs modules that ours does not.
	dir := t.TempDir()
	built := filepath.Join(dir, "runsc")
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), runscLimit)
	defer cancel()
	for _, args := range [][]string{
		{"mod", "init", "runsc"},
		{"get", "gvisor.dev/gvisor/runsc@" + strings.TrimSpace(string(version))},
		{"build", "-o", built, "gvisor.dev/gvisor/runsc"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("needs runsc: go %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	t.Logf("runsc was built in %v", time.Since(begin))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	// Under another name first: a test beside this one may look for it.
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	content, err := os.ReadFile(built)
	if err == nil {
		err = os.WriteFile(part, content, 0o700)
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// runscBundle makes a folder with what runsc is to run: a command on the host's
// files, in the network namespace that runsc is in.
func runscBundle(t testing.TB, command ...string) string {
	t.Helper()
	type object = map[string]any
	// Without a path runsc makes a network namespace of its own. The first process
	// that it sees is that of bondstack's in the sandbox.
	namespaces := []object{{"type": "network", "path": "/proc/1/ns/net"}}
	for _, kind := range []string{"pid", "mount", "ipc", "uts"} {
		namespaces = append(namespaces, object{"type": kind})
	}
	config, err := json.Marshal(object{
		"ociVersion": "1.0.0",
		"process": object{"args": command, "cwd": "/", "user": object{"uid": 0, "gid": 0},
			"env": []string{"PATH=" + os.Getenv("PATH")}},
		"root":   object{"path": "/", "readonly": true},
		"mounts": []object{{"destination": "/proc", "type": "proc", "source": "proc"}},
		"linux":  object{"namespaces": namespaces},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A program on gVisor's own kernel, whose stack takes over the addresses of the
// bond's device, downloads over the bond while the active link is cut.
func TestExecRunsc(t *testing.T) {
	const size = 20 << 20
	l := execLAN(t)
	runsc := buildRunsc(t)
	dir, sum := writeRandom(t, size)
	serve(t, l.far, dir)
	i := &instance{t: t, socket: tempSocket(t)}
	bundle := runscBundle(t, "curl", "--silent", "--show-error", "--fail", "--max-time", "110", "http://10.9.0.1/file")
	cmd := selfCommand(append(execArgs("--control", i.socket), runsc, "--root", t.TempDir(), "--network=sandbox", "--ignore-cgroups",
		"run", "--bundle", bundle, fmt.Sprint("bondstack", os.Getpid()))...)
	cmd.Stderr = os.Stderr
	d := startDownload(t, l.near, cmd)
	d.take(size / 4)
	active := i.status().ActiveSlave
	l.far.Down(peer(active))
	i.await("failover", func(st instanceStatus) bool { return st.ActiveSlave != active })
	d.take(size / 4)
	l.far.Up(peer(active))
	d.finish(sum)
}
