package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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

// A command that a signal ends has no time to put the terminal's settings back:
// they are as before. Those that a command set and left are kept.
func TestExecTerminalSettings(t *testing.T) {
	l := execLAN(t)
	for script, kept := range map[string]bool{"stty raw -echo; kill -KILL $$": false, "stty raw -echo": true} {
		master, slave := newTerminal(t)
		cmd := selfCommand(append(execArgs(), "sh", "-c", script)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		l.near.Start(cmd)
		cmd.Wait()
		slave.Close()
		settings, err := unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if raw := settings.Lflag&(unix.ICANON|unix.ECHO) == 0; raw != kept {
			t.Errorf("%s: the terminal is raw: %v, want %v", script, raw, kept)
		}
	}
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
