package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bondstack/cmd/bondstack/sandbox"
	"bondstack/link/netnstest"

	"golang.org/x/sys/unix"
)

// execArgs are the flags of exec on a lan, for what follows "--". Nobody has the
// addresses.
func execArgs(flags ...string) []string {
	return slices.Concat([]string{"exec", "--slave", "s0", "--slave", "s1", "--mode", "active-backup", "--detect", "0"}, lanAddresses, flags, []string{"--"})
}

// selfCommand is this program with arguments, as a process of a namespace's.
func selfCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	// The race detector's process else takes a second to end.
	cmd.Env = append(os.Environ(), asCommand+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// execLAN is a lan on which exec can be run.
func execLAN(t testing.TB) *lan {
	t.Helper()
	l := newLAN(t)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("needs a TUN device: %v", err)
	}
	return l
}

// exec runs a command and returns its exit code, output and errors.
func (l *lan) exec(cmd *exec.Cmd) (code int, stdout, stderr string) {
	l.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	l.near.Start(cmd)
	cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// Exit codes are the command's, or say who failed and why, with the way out.
func TestExecExitCodes(t *testing.T) {
	l := execLAN(t)
	slave := func(name string) []string {
		return []string{"exec", "--slave", name, "--mode", "active-backup", "--address", "10.9.0.2/24", "--", "true"}
	}
	taken := func(address string) []string {
		return []string{"exec", "--slave", "s0", "--mode", "active-backup", "--address", address, "--", "true"}
	}
	for _, tt := range []struct {
		what string
		args []string
		code int
		want string // in the errors; "" for none
	}{
		{"success", append(execArgs(), "true"), 0, ""},
		{"a code", append(execArgs(), "sh", "-c", "exit 7"), 7, ""},
		{"the code of our failures", append(execArgs(), "sh", "-c", "exit 125"), 125, ""},
		{"TERM", append(execArgs(), "sh", "-c", "kill -TERM $$"), 128 + 15, ""},
		{"KILL", append(execArgs(), "sh", "-c", "kill -KILL $$"), 128 + 9, ""},
		{"no such command", append(execArgs(), "no-such-command"), 127, "no-such-command: command not found"},
		{"no such file", append(execArgs(), "/no/such/file"), 127, "/no/such/file: no such file"},
		{"no program", append(execArgs(), "/etc/passwd"), 126, "/etc/passwd: permission denied"},
		{"a folder", append(execArgs(), "/etc"), 126, "/etc: "},
		{"no such slave", slave("s7"), 125, `slave s7: packet: interface "s7": no such interface`},
		{"name taken", append(execArgs("--name", "lo"), "true"), 125, `device "lo": there is an interface of this name already; choose another --name`},
		{"address taken", taken("10.9.0.1/24"), 125, "address 10.9.0.1 is in use: the host with the Ethernet address 02:00:00:00:00:b0 has it; choose another --address"},
		{"IPv6 address taken", taken("fd00:9::1/64"), 125, "address fd00:9::1 is in use: the host with the Ethernet address 02:00:00:00:00:b0 has it"},
		{"no descriptor", []string{"exec", "--slave", "fd:77", "--mode", "1", "--address", "10.9.0.2/24", "--", "true"}, 125, "descriptor 77 is not open"},
	} {
		code, stdout, stderr := l.exec(selfCommand(tt.args...))
		if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) || tt.want == "" && stderr != "" {
			t.Errorf("%s: exit code %d, want %d; %q in %q", tt.what, code, tt.code, tt.want, stderr)
		}
	}
}

// A slave that is not there is waited for where that is asked for.
func TestExecWithoutSlaves(t *testing.T) {
	l := execLAN(t)
	code, _, stderr := l.exec(selfCommand("exec", "--slave", "s7", "--require-slaves=false", "--wait", "1ms", "--mode", "1", "--address", "10.9.0.2/24", "--", "true"))
	if code != 0 || !strings.Contains(stderr, "slave is missing") || !strings.Contains(stderr, "no slave is usable yet") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// The command has our files, environment and folder, and a network and a
// resolv.conf of its own; the host's stays.
func TestExecPassesThrough(t *testing.T) {
	l := execLAN(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before, _ := os.ReadFile("/etc/resolv.conf")
	script := `cat; echo "$VALUE" >&2; pwd >&3; cat /etc/resolv.conf >&3; ls /sys/class/net >&3
		ip -o address | grep -v fe80 | while read n name f address rest; do echo $name $address >&3; done
		ip route show default >&3; ip -6 route show default | cut -d' ' -f1-5 >&3; echo $$ >&3; ls -d /proc/[0-9]* | wc -l >&3`
	cmd := selfCommand(append(execArgs("--dns", "10.9.0.53", "--dns", "fd00:9::53", "--gateway", "10.9.0.1", "--gateway", "fd00:9::1"), "sh", "-c", script)...)
	cmd.Stdin = strings.NewReader("input\n")
	cmd.Env = append(cmd.Env, "VALUE=a value")
	cmd.Dir = "/usr"
	cmd.ExtraFiles = []*os.File{w}
	code, stdout, stderr := l.exec(cmd)
	w.Close()
	rest, _ := io.ReadAll(r)
	if code != 0 || stdout != "input\n" || stderr != "a value\n" {
		t.Errorf("exit code %d, output %q, errors %q", code, stdout, stderr)
	}
	const want = `/usr
# made by bondstack exec
nameserver 10.9.0.53
nameserver fd00:9::53
bond0
lo
lo 127.0.0.1/8
lo ::1/128
bond0 10.9.0.2/24
bond0 fd00:9::2/64
default via 10.9.0.1 dev bond0 
default via fd00:9::1 dev bond0
`
	if !strings.HasPrefix(string(rest), want) {
		t.Errorf("inside is\n%s, want\n%s", rest, want)
	}
	var pid, processes int
	if _, err := fmt.Sscan(strings.TrimPrefix(string(rest), want), &pid, &processes); err != nil || pid > 50 || processes > 6 {
		t.Errorf("process %d of %d: %v", pid, processes, err)
	}
	if after, _ := os.ReadFile("/etc/resolv.conf"); !bytes.Equal(after, before) {
		t.Errorf("the host's resolv.conf was %q and is %q", before, after)
	}
}

// trapping is a shell script that tells each signal that it gets, and ends with
// code 3 at USR2.
const trapping = `for s in INT TERM HUP QUIT USR1; do trap "echo got $s" $s; done
	trap 'echo got USR2; exit 3' USR2
	sleep 600 & echo ready; while :; do wait; done`

// expectLines reads lines, and wants exactly these.
func expectLines(t testing.TB, s *bufio.Scanner, want ...string) {
	t.Helper()
	for _, w := range want {
		if !s.Scan() {
			t.Fatalf("the output ended, want %q (%v)", w, s.Err())
		}
		if got := strings.TrimRight(s.Text(), "\r"); got != w {
			t.Fatalf("got line %q, want %q", got, w)
		}
	}
}

// Each signal that bondstack alone gets reaches the command, once.
func TestExecSignals(t *testing.T) {
	l := execLAN(t)
	cmd := selfCommand(append(execArgs(), "sh", "-c", trapping)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.near.Start(cmd)
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
	lines := bufio.NewScanner(out)
	expectLines(t, lines, "ready")
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1} {
		cmd.Process.Signal(s)
		expectLines(t, lines, "got "+strings.TrimPrefix(unix.SignalName(s), "SIG"))
	}
	// The whole group, as a terminal does: once too.
	syscall.Kill(-cmd.Process.Pid, unix.SIGUSR1)
	expectLines(t, lines, "got USR1")
	cmd.Process.Signal(unix.SIGUSR2)
	expectLines(t, lines, "got USR2")
	if lines.Scan() {
		t.Errorf("at the end comes %q", lines.Text())
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("exit code %d, want 3", cmd.ProcessState.ExitCode())
	}
}

// A signal while nothing can start yet ends the wait.
func TestExecInterruptedBefore(t *testing.T) {
	l := execLAN(t)
	l.far.Down("p0")
	l.far.Down("p1")
	cmd := selfCommand(append(execArgs("--verbose"), "true")...)
	cmd.Args = slices.Replace(cmd.Args, 1, 2, "exec", "--wait", "1h")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.near.Start(cmd)
	bufio.NewReader(errs).ReadString('\n') // the bond logs: signals are caught by now
	cmd.Process.Signal(unix.SIGTERM)
	io.Copy(io.Discard, errs)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 128+15 {
		t.Errorf("exit code %d, want 143", cmd.ProcessState.ExitCode())
	}
}

// Where the command deletes its device, bondstack says so.
func TestExecDeviceDeleted(t *testing.T) {
	l := execLAN(t)
	cmd := selfCommand(append(execArgs(), "sh", "-c", "ip link delete bond0; read line; exit 4")...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.near.Start(cmd)
	line, _ := bufio.NewReader(errs).ReadString('\n')
	if !strings.Contains(line, "the device was deleted") || !strings.Contains(line, "device=bond0") {
		t.Errorf("it logs %q", line)
	}
	in.Close()
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 4 {
		t.Errorf("exit code %d, want 4", cmd.ProcessState.ExitCode())
	}
}

// newTerminal opens a pseudo-terminal.
func newTerminal(t testing.TB) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// The terminal is the command's: its size, its changes of that, its keys.
func TestExecTerminal(t *testing.T) {
	l := execLAN(t)
	master, slave := newTerminal(t)
	script := `stty -echo; test -t 0 -a -t 1 && stty size; trap 'echo winch; stty size' WINCH; ` + trapping
	cmd := selfCommand(append(execArgs(), "sh", "-c", script)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	l.near.Start(cmd)
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
	slave.Close()
	lines := bufio.NewScanner(master)
	expectLines(t, lines, "33 77", "ready")
	master.Write([]byte{3}) // ^C
	expectLines(t, lines, "got INT")
	master.Write([]byte{0x1c}) // ^\
	expectLines(t, lines, "got QUIT")
	cmd.Process.Signal(unix.SIGHUP) // another than those that may be under way
	expectLines(t, lines, "got HUP")
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 20, Col: 40}); err != nil {
		t.Fatal(err)
	}
	expectLines(t, lines, "winch", "20 40")
	cmd.Process.Signal(unix.SIGUSR2)
	expectLines(t, lines, "got USR2")
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("exit code %d, want 3", cmd.ProcessState.ExitCode())
	}
}

// A download of the command's goes on while the active link is cut, three times.
func TestExecCut(t *testing.T) {
	const size = 60 << 20
	l := execLAN(t)
	dir, sum := writeRandom(t, size)
	serve(t, l.far, dir)
	i := &instance{t: t, socket: tempSocket(t)}
	cmd := selfCommand(append(execArgs("--control", i.socket), "curl", "--silent", "--show-error", "--fail", "--max-time", "110", "http://10.9.0.1/file")...)
	d := startDownload(t, l.near, cmd)
	p := l.ping("10.9.0.2")
	for range 3 {
		d.take(size / 8)
		active := i.status().ActiveSlave
		l.far.Down(peer(active))
		i.await("failover", func(st instanceStatus) bool { return st.ActiveSlave != active })
		d.take(size / 10)
		l.far.Up(peer(active))
		i.await("both up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	}
	lost, duplicates := p.stop()
	t.Logf("3 cuts, pings at 10 ms: lost %v", lost)
	if duplicates != 0 {
		t.Errorf("%d duplicates", duplicates)
	}
	d.finish(sum)
}

// With Linux's own driver as the partner, LACP brings both ports of a command's
// bond up; the command goes on when one link is cut.
func TestExecLACP(t *testing.T) {
	t.Parallel()
	l := newLACPLab(t, 2, "linux.uml")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("needs a TUN device: %v", err)
	}
	p := &linuxPartner{l, "fast", stateFolder(t)}
	p.start()
	defer p.stop()
	l.us = &instance{t: t, socket: tempSocket(t)}
	cmd := selfCommand("exec", "--control", l.us.socket, "--slave", "s0", "--slave", "s1", "--mode", "802.3ad", "-o", "lacp_rate=fast",
		"-o", "xmit_hash_policy=layer3+4", "--address", "10.9.0.2/24", "--", os.Args[0], echoCommand)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.near.Start(cmd)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "listening\n" {
		t.Fatalf("the command tells %q, %v; %s", line, err, &errs)
	}
	l.awaitPorts(p, "at first", true, true)
	if err := p.exchange(); err != nil {
		t.Errorf("exchange: %v", err)
	}
	l.near.Down("p0")
	l.us.await("one port is left", func(st instanceStatus) bool { return st.up("s1") })
	if err := p.exchange(); err != nil {
		t.Errorf("exchange with one link: %v", err)
	}
	cmd.Process.Signal(unix.SIGTERM)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 128+15 {
		t.Errorf("exit code %d, want 143", cmd.ProcessState.ExitCode())
	}
}

// echoCommand as first argument has the test's binary serve echoes at port 7.
const echoCommand = "test-echo"

func init() {
	if len(os.Args) != 2 || os.Args[1] != echoCommand {
		return
	}
	l, err := net.Listen("tcp", ":7")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("listening")
	serveEach(l, func(c net.Conn) { io.Copy(c, c) })
}

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
