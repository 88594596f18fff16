package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bondstack/cmd/bondstack/sandbox"
	"bondstack/link/netnstest"

	"golang.org/x/sys/unix"
)

// Without user namespaces, and without a TUN device, the error tells the way out.
func TestExecWithout(t *testing.T) {
	l := execLAN(t)
	args := []string{"exec", "--slave", "user:", "--mode", "1", "--", "true"}
	closed := unprivileged(t, nil, args...)
	closed.Args[4] = strings.Replace(closed.Args[4], "chmod 666", "chmod 600", 1)
	for _, tt := range []struct {
		what string
		cmd  *exec.Cmd
		want string
	}{
		{"user namespaces", wrapped(`unshare --user --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$0" "$@"' "$0" "$@"`, args...),
			"no user namespace, which bondstack needs without root: fork/exec /proc/self/exe: no space left on device; the kernel allows none: sysctl -w user.max_user_namespaces=10000, or run bondstack as root"},
		{"a TUN device", wrapped(`unshare --mount sh -c 'mount -t tmpfs none /dev/net && exec "$0" "$@"' "$0" "$@"`, args...),
			"there are no TAP devices: /dev/net/tun does not open: no such file or directory; load the kernel's module tun"},
		{"the right to open it", closed, "/dev/net/tun does not open: permission denied; run bondstack as root, or"},
	} {
		code, _, stderr := l.exec(tt.cmd)
		if code != sandbox.CodeFailure || !strings.Contains(stderr, tt.want) {
			t.Errorf("without %s: exit code %d, %q, want %q in it", tt.what, code, stderr, tt.want)
		}
	}
}

// wrapped is this program run by a line of shell, in which it is "$0" and its
// arguments are "$@".
func wrapped(line string, args ...string) *exec.Cmd {
	cmd := selfCommand()
	cmd.Path, cmd.Args = "/bin/sh", slices.Concat([]string{"sh", "-c", line, os.Args[0]}, args)
	return cmd
}

// unprivileged wraps a command: nobody runs it, and may open a TUN device. files
// are its descriptors from 3 on.
func unprivileged(t testing.TB, files []*os.File, args ...string) *exec.Cmd {
	t.Helper()
	for _, tool := range []string{"unshare", "setpriv", "mknod"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs root and %s: %v", tool, err)
		}
	}
	self, err := os.Open(os.Args[0]) // nobody may not enter its folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { self.Close() })
	const script = `mount -t tmpfs -o mode=755 none /dev/net && mknod /dev/net/tun c 10 200 && chmod 666 /dev/net/tun &&
		exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"`
	cmd := selfCommand()
	cmd.Path, cmd.Args = "/usr/bin/unshare", slices.Concat([]string{"unshare", "--mount", "sh", "-c", script, "sh",
		fmt.Sprint("/proc/self/fd/", 3+len(files))}, args)
	cmd.ExtraFiles = append(slices.Clone(files), self)
	return cmd
}

// Who is nobody runs a command on two links to the host's sockets.
func TestExecUnprivilegedUser(t *testing.T) {
	l := execLAN(t)
	l.near.Up("lo")
	dir, sum := writeRandom(t, 3<<20)
	serve(t, l.near, dir)
	code, stdout, stderr := l.exec(unprivileged(t, nil, "exec", "--slave", "user:,loopback=on", "--slave", "user:", "--mode", "balance-rr", "--",
		"sh", "-c", "id -u; grep -c 'Cap[IPEA].*:.*0000000000000000' /proc/self/status; ls /sys/class/net; curl -s --max-time 60 http://10.0.2.2/file | sha256sum; ping -n -c 1 10.0.2.2 >&2; exit 9"))
	if want := "65534\n4\nbond0\nlo\n" + sum; code != 9 || !strings.HasPrefix(stdout, want) || !strings.Contains(stderr, "1 received") {
		t.Errorf("exit code %d, output\n%s, want\n%s; errors %s", code, stdout, want, stderr)
	}
	code, stdout, stderr = l.exec(unprivileged(t, nil, "exec", "--map-root", "--slave", "user:", "--mode", "1", "--", "id", "-u"))
	if code != 0 || stdout != "0\n" {
		t.Errorf("as root: exit code %d, %s%s", code, stdout, stderr)
	}
	code, _, stderr = l.exec(unprivileged(t, nil, "exec", "--slave", "s0", "--mode", "1", "--address", "10.9.0.2/24", "--", "true"))
	if code != 125 || !strings.Contains(stderr, "slave s0: kind packet needs root") || !strings.Contains(stderr, "fd, user") {
		t.Errorf("with a slave of kind packet: exit code %d, %s", code, stderr)
	}
}

// packetSocket opens a packet socket on an interface of a namespace.
func packetSocket(t testing.TB, at *netnstest.Namespace, name string) *os.File {
	t.Helper()
	var file *os.File
	at.Do(func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		file = os.NewFile(uintptr(fd), name)
		i, err := net.InterfaceByName(name)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: i.Index})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { file.Close() })
	return file
}

// Who is nobody runs a command on packet sockets that root opened, of which the
// command gets none; a cut is borne.
func TestExecUnprivilegedDescriptors(t *testing.T) {
	const size = 20 << 20
	l := execLAN(t)
	dir, sum := writeRandom(t, size)
	serve(t, l.far, dir)
	files := []*os.File{packetSocket(t, l.near, "s0"), packetSocket(t, l.near, "s1")}
	cmd := unprivileged(t, files, "exec", "--slave", "fd:3", "--slave", "fd:4", "--mode", "active-backup", "--address", "10.9.0.2/24", "--",
		"sh", "-c", "ls -l /proc/self/fd | grep -c socket: >&2; exec curl -s --max-time 110 http://10.9.0.1/file")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	d := startDownload(t, l.near, cmd)
	d.take(size / 4)
	l.far.Down("p0")
	d.take(size / 4)
	l.far.Up("p0")
	d.finish(sum)
	if !strings.HasSuffix(errs.String(), "\n0\n") && errs.String() != "0\n" {
		t.Errorf("the command has sockets: %s", &errs)
	}
}

// A stack of ours runs on descriptors as well; one that was not passed is refused.
func TestRunOnDescriptors(t *testing.T) {
	l := newLAN(t)
	i := &instance{t: t, socket: tempSocket(t)}
	cmd := selfCommand("run", "--control", i.socket, "--slave", "fd:3", "--slave", "fd:4", "--mode", "active-backup", "--address", "10.9.0.2/24")
	cmd.ExtraFiles = []*os.File{packetSocket(t, l.near, "s0"), packetSocket(t, l.near, "s1")}
	l.near.Start(cmd)
	eventually(t, "the instance answers", func() bool {
		_, err := askStatus(i.socket)
		return err == nil
	})
	l.far.Run("ping", "-n", "-i", "0.01", "-c", "5", "10.9.0.2")
	if st := i.status(); !st.up("fd3", "fd4") {
		t.Errorf("status %+v", st)
	}
	cmd.Process.Signal(unix.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, _, err := openFD("fd"+strconv.Itoa(int(cmd.ExtraFiles[0].Fd())), linkOptions{}); err == nil || !strings.Contains(err.Error(), "was not passed") {
		t.Errorf("a descriptor of this process's own is taken: %v", err)
	}
}
