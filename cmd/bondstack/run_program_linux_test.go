package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bondstack/bonding/control"
)

// userFile is a file that needs no rights.
const userFile = `version: 1
bonds:
- name: bond0
  mode: active-backup
  options: {miimon: 100}
  slaves: [{name: user0, kind: user}, {name: user1, kind: user}]
  addresses: [10.0.2.15/24]
  serve: ["echo:7"]
  control: SOCKET
`

// manager is the socket of a service manager, and what it was told.
func manager(t *testing.T) (path string, next func() string) {
	t.Helper()
	path = tempSocket(t)
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return path, func() string {
		b := make([]byte, 256)
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

// process runs the command on a file as a process of its own.
func process(t *testing.T, path, notify string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	cmd := exec.Command(self, "run", "-c", path, "--log-format", "json")
	cmd.Env = append(os.Environ(), asCommand+"=1", "NOTIFY_SOCKET="+notify)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, log
}

// A process tells its service manager of its states, reads its file again on
// SIGHUP, and ends with SIGTERM. When it is killed in the middle of changes, the
// next one starts from the file, whatever it has left: a socket and its lock.
func TestProgramProcess(t *testing.T) {
	notify, next := manager(t)
	expect := func(want string) {
		t.Helper()
		if got := next(); got != want {
			t.Fatalf("the manager is told %q, want %q", got, want)
		}
	}
	socket := tempSocket(t)
	path := filepath.Join(t.TempDir(), "bondstack.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "SOCKET", socket)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(userFile)
	first, _ := process(t, path, notify)
	expect("READY=1")
	// Changes without an end, from a client and by SIGHUP, and then the end.
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			if _, err := control.NewClient(socket).Change(t.Context(), control.Request{ConfirmWithinMs: 60_000, Operations: []control.Operation{
				{Op: control.Set, Option: "miimon", Value: fmt.Sprint(1 + i%50)}, {Op: control.Delete, Slave: "user1"}}}); err != nil {
				return
			}
			control.NewClient(socket).Revert(t.Context(), "")
		}
	}()
	first.Process.Signal(syscall.SIGHUP)
	expect("RELOADING=1")
	first.Process.Kill()
	first.Wait()
	<-stopped
	for _, left := range []string{socket, socket + ".lock"} {
		if _, err := os.Stat(left); err != nil {
			t.Errorf("a process that was killed leaves %s: %v", left, err)
		}
	}
	notify, next = manager(t) // the first may have said more
	second, log := process(t, path, notify)
	expect("READY=1")
	eventually(t, "the second process answers", func() bool { st, err := askStatus(socket); return err == nil && st.PID == second.Process.Pid })
	if st, err := askStatus(socket); err != nil || st.MIIMonMs != 100 || !st.up("user0", "user1") {
		t.Errorf("after a kill: %+v, %v", st, err)
	}
	write(strings.Replace(userFile, "miimon: 100", "miimon: 25", 1))
	second.Process.Signal(syscall.SIGHUP)
	expect("RELOADING=1")
	expect("READY=1")
	if st, err := askStatus(socket); err != nil || st.MIIMonMs != 25 {
		t.Errorf("after SIGHUP: %+v, %v", st, err)
	}
	second.Process.Signal(syscall.SIGTERM)
	expect("STOPPING=1")
	if err := second.Wait(); err != nil {
		t.Errorf("it ends with %v:\n%s", err, log)
	}
	if !strings.Contains(log.String(), `"msg":"reloaded"`) {
		t.Errorf("the log is not JSON:\n%s", log)
	}
}
