package netnstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// threadNamespace is the network namespace of the calling thread.
const threadNamespace = "/proc/thread-self/ns/net"

// commandLimit bounds what Run runs: a test waits no longer for a command.
const commandLimit = 2 * time.Minute

// Namespace is a network namespace of its own, with a loopback interface that
// is up. Its methods fail the test that made it when they cannot do their deed,
// so they are called from that test's goroutine.
type Namespace struct {
	t    testing.TB
	file *os.File
}

// New makes a network namespace for the test and closes it when the test ends.
// It skips the test when the process may not make one.
func New(t testing.TB) *Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	file, err := newNamespace()
	if err != nil {
		t.Skipf("needs root with the right to make a network namespace: %v", err)
	}
	ns := &Namespace{t: t, file: file}
	t.Cleanup(func() { file.Close() })
	// Duplicate address detection takes more than a second; tests bring their
	// own addresses and know them to be unique.
	ns.Sysctl("net.ipv6.conf.default.accept_dad", "0")
	ns.Sysctl("net.ipv6.conf.all.accept_dad", "0")
	ns.Up("lo")
	return ns
}

// newNamespace opens a new namespace, made by a thread that ends afterwards.
func newNamespace() (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result)
	go func() {
		// Never unlocked: the runtime ends a thread whose goroutine ends
		// locked, so nothing runs in the new namespace by accident.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- result{err: fmt.Errorf("unshare: %w", err)}
			return
		}
		file, err := os.Open(threadNamespace)
		done <- result{file, err}
	}()
	r := <-done
	return r.file, r.err
}

// File returns the open namespace. It is closed when the test ends.
func (ns *Namespace) File() *os.File { return ns.file }

// Do runs f on a thread that is in the namespace and returns after it. f runs
// on the calling goroutine, so it may fail the test; what it opens stays in the
// namespace, but goroutines that it starts do not run there.
func (ns *Namespace) Do(f func()) {
	ns.t.Helper()
	runtime.LockOSThread()
	home, err := os.Open(threadNamespace)
	if err != nil {
		runtime.UnlockOSThread()
		ns.t.Fatalf("netnstest: open the thread's namespace: %v", err)
	}
	defer home.Close()
	if err := unix.Setns(int(ns.file.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		ns.t.Fatalf("netnstest: enter the namespace: %v", err)
	}
	defer func() {
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			// The thread must not be used for anything else.
			panic(fmt.Sprintf("netnstest: leave the namespace: %v", err))
		}
		runtime.UnlockOSThread()
	}()
	f()
}

// Start starts the command inside the namespace. The caller waits for it; when
// the test ends, a command that still runs is killed.
func (ns *Namespace) Start(cmd *exec.Cmd) {
	ns.t.Helper()
	ns.Do(func() {
		if err := cmd.Start(); err != nil {
			ns.t.Fatalf("netnstest: start %s: %v", cmd, err)
		}
	})
	ns.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
}

// TryRun runs a command inside the namespace and returns what it printed, on
// both outputs.
func (ns *Namespace) TryRun(name string, args ...string) (string, error) {
	ns.t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	ns.Start(cmd)
	limit := time.AfterFunc(commandLimit, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	limit.Stop()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", cmd, err, strings.TrimSpace(out.String()))
	}
	return out.String(), err
}

// Run is TryRun for a command that must succeed.
func (ns *Namespace) Run(name string, args ...string) string {
	ns.t.Helper()
	out, err := ns.TryRun(name, args...)
	if err != nil {
		ns.t.Fatalf("netnstest: %v", err)
	}
	return out
}

// Sysctl sets a kernel parameter of the namespace by its dotted name. A
// parameter that the kernel does not have is left out: a kernel without IPv6
// still runs the tests.
func (ns *Namespace) Sysctl(name, value string) {
	ns.t.Helper()
	path := filepath.Join("/proc/sys", filepath.Join(strings.Split(name, ".")...))
	ns.Do(func() {
		err := os.WriteFile(path, []byte(value), 0)
		if err != nil && !os.IsNotExist(err) {
			ns.t.Fatalf("netnstest: set %s to %s: %v", name, value, err)
		}
	})
}
