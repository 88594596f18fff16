package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bondstack/link/linktest"
)

// needsModes skips where files have no owner and mode.
func needsModes(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
}

func TestDefaultSocket(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	if got, want := defaultSocket(), filepath.Join("/run/user/7", "bondstack", "control"); got != want {
		t.Errorf("with a runtime folder: %s, want %s", got, want)
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	got := defaultSocket()
	if want := filepath.Join(os.TempDir(), fmt.Sprintf("bondstack-%d", os.Getuid()), "control"); got != want {
		t.Errorf("without: %s, want %s", got, want)
	}
}

// The folder of the default place is the user's alone, and so is the socket.
func TestControlModes(t *testing.T) {
	needsModes(t)
	dir := filepath.Dir(tempSocket(t))
	t.Setenv("XDG_RUNTIME_DIR", dir)
	path := defaultSocket()
	c, err := listenControl(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, f := range []struct {
		path string
		mode os.FileMode
	}{{filepath.Dir(path), os.ModeDir | 0o700}, {path, os.ModeSocket | 0o600}, {path + ".lock", 0o600}} {
		info, err := os.Stat(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != f.mode {
			t.Errorf("%s has mode %v, want %v", f.path, info.Mode(), f.mode)
		}
	}
}

// A second instance says who has the socket, and leaves the first alone.
func TestSecondInstance(t *testing.T) {
	linktest.CheckGoroutines(t)
	first := start(t, newNetwork(t, "eth0", "eth1").kinds(), backup...)
	second := launch(t, first.socket, newNetwork(t, "eth0", "eth1").kinds(), backup...)
	<-second.ended
	if second.err == nil {
		t.Fatal("the second instance runs")
	}
	for _, want := range []string{fmt.Sprintf("process %d", os.Getpid()), first.socket, "bond0", "--control"} {
		if !strings.Contains(second.err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", second.err, want)
		}
	}
	if st := first.status(); st.PID != os.Getpid() {
		t.Errorf("the first instance says it is process %d", st.PID)
	}
}

// A socket that nobody listens on any more is replaced.
func TestStaleSocket(t *testing.T) {
	path := tempSocket(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("no stale socket: %v", err)
	}
	i := launch(t, path, newNetwork(t, "eth0", "eth1").kinds(), backup...)
	eventually(t, "the instance answers", func() bool { _, err := askStatus(path); return err == nil })
	if err := i.end(); err != nil {
		t.Error(err)
	}
}

// What is no socket stays as it is.
func TestControlRefusesOtherFiles(t *testing.T) {
	path := tempSocket(t)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := listenControl(path)
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("listenControl(a file) = %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "precious" {
		t.Errorf("the file has %q", got)
	}
	// Nor is a symbolic link followed, to whatever it leads.
	link := path + "2"
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if _, err := listenControl(link); err == nil {
		t.Error("listenControl(a symbolic link) = nil")
	}
}

func TestControlRefusesForeignFolder(t *testing.T) {
	needsModes(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a folder of another user's")
	}
	path := tempSocket(t)
	if err := os.Chown(filepath.Dir(path), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	_, err := listenControl(path)
	if err == nil || !strings.Contains(err.Error(), "belongs to user 12345") || !strings.Contains(err.Error(), "--control") {
		t.Errorf("listenControl() in another user's folder = %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a socket in it: %v", err)
	}
}

// Somebody who listens and does not answer is not pushed aside.
func TestControlRefusesMutePeer(t *testing.T) {
	path := tempSocket(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	if _, err := listenControl(path); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("listenControl() = %v", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the socket is gone: %v", err)
	}
}

// Of many that start at once one gets the socket, and the others say who has it.
func TestControlRace(t *testing.T) {
	linktest.CheckGoroutines(t)
	path := tempSocket(t)
	ended := make(chan *instance)
	const n = 4
	for range n {
		i := launch(t, path, newNetwork(t, "eth0", "eth1").kinds(), backup...)
		go func() { <-i.ended; ended <- i }()
	}
	for range n - 1 {
		if i := <-ended; i.err == nil || !strings.Contains(i.err.Error(), "holds it") {
			t.Errorf("run() = %v, want that another holds the socket", i.err)
		}
	}
	if _, err := askStatus(path); err != nil {
		t.Errorf("nobody has the socket: %v", err)
	}
	go func() { <-ended }()
}
