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
	"testing"

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
	l.cut(0)
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

// Another host that remembers who had the addresses before learns at once who has
// them now: from exec, and from tap.
func TestAddressesAreIntroduced(t *testing.T) {
	l := &tapLAN{execLAN(t), netnstest.New(t)}
	learns := func(who string, bond func(), addresses ...string) {
		t.Helper()
		const before = "02:00:00:00:00:99"
		for _, a := range addresses {
			l.far.Run("ip", "neigh", "replace", a, "lladdr", before, "dev", "br0", "nud", "stale")
		}
		bond()
		for _, a := range addresses {
			eventually(t, who+" introduces "+a, func() bool {
				return !strings.Contains(l.far.Run("ip", "neigh", "show", a, "dev", "br0"), before)
			})
		}
	}
	learns("exec", func() {
		if code, _, errs := l.exec(selfCommand(append(execArgs("--detect", "1ms"), "true")...)); code != 0 {
			t.Errorf("exit code %d, %s", code, errs)
		}
	}, "10.9.0.2", "fd00:9::2")
	learns("tap", func() { l.tap("--mode", "active-backup") }, "10.9.0.2")
}
