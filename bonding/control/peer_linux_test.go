package control_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/control"
)

// asClient in the environment has the test be a client of the socket named.
const asClient = "BONDSTACK_TEST_AS_CLIENT"

// TestAsClient is not a test: it is what another user runs.
func TestAsClient(t *testing.T) {
	socket := os.Getenv(asClient)
	if socket == "" {
		t.Skip("is run by TestOtherUser")
	}
	_, err := control.NewClient(socket).Change(context.Background(), ops(control.Operation{Op: control.Delete, Slave: "eth0"}))
	var e *control.Error
	if !errors.As(err, &e) || e.Status != 403 || !strings.Contains(e.Text, "user 65534 is refused") {
		t.Errorf("Change() = %v, want that user 65534 is refused", err)
	}
	_, err = control.NewClient(socket).Pending(context.Background())
	if !errors.As(err, &e) || e.Status != 403 {
		t.Errorf("Pending() = %v, want that it is refused", err)
	}
}

// Another user is refused even where the socket's mode lets him connect.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: becomes another user")
	}
	r := newRig(t, bonding.ActiveBackup, 2)
	dir := filepath.Dir(r.socket)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "client") // the test's own folder may be closed to others
	binary, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(copied, binary, 0o755)
	}
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.Chmod(r.socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, "-test.run", "^TestAsClient$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), asClient+"="+r.socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestAsClient") {
		t.Errorf("the other user: %v\n%s", err, out)
	}
	if got := r.slaves(); len(got) != 2 {
		t.Errorf("slaves %v", got)
	}
	r.must(ops(control.Operation{Op: control.Activate, Slave: "eth1"})) // root himself may
}
