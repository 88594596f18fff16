package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// initName is this program's name where it is the first process of a sandbox.
const initName = "bondstack-init"

// initSettings is what the first process is told, beside the command.
type initSettings struct {
	Resolver    string
	MustResolve bool
	DropRights  bool
}

// Hook must be called first in main. In the first process of a sandbox it does
// not return.
func Hook() {
	if len(os.Args) > 3 && os.Args[0] == initName && os.Getpid() == 1 {
		code, err := runInit(os.Args[1], os.Args[2], os.Args[3:])
		if err != nil {
			fmt.Fprintf(os.Stderr, "bondstack exec: %v\n", err)
		}
		os.Exit(code)
	}
}

// runInit runs the command, and returns the exit code.
func runInit(far, text string, args []string) (int, error) {
	relay, err := strconv.Atoi(far)
	if err != nil {
		return CodeFailure, err
	}
	unix.CloseOnExec(relay)
	got := make(chan os.Signal, 16)
	catch(got)
	var s initSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return CodeFailure, err
	}
	if err := mountAll(s); err != nil {
		return CodeFailure, err
	}
	allowPing()
	path, err := find(args[0], os.Getenv("PATH"))
	if err != nil {
		return codeOfError(err), fmt.Errorf("%s: %w", args[0], err)
	}
	select {
	case sig := <-got: // with the whole group
		return Interrupted{sig.(syscall.Signal)}.Code(), nil
	default:
	}
	pid, err := startCommand(path, args, s.DropRights)
	if err != nil {
		return codeOfError(err), fmt.Errorf("%s: %w", args[0], err)
	}
	go handOn(relay, got, pid)
	return reap(pid)
}

// find finds a command as a shell does.
func find(name, path string) (string, error) {
	found, err := exec.LookPath(name)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return found, nil
	case errors.Is(err, exec.ErrNotFound):
		for _, dir := range filepath.SplitList(path) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err == nil && !info.IsDir() {
				return "", unix.EACCES
			}
		}
		return "", errNotFound
	}
	return "", errors.Unwrap(err) // without the name
}

var errNotFound = errors.New("command not found")

// codeOfError is the exit code where a command could not be started.
func codeOfError(err error) int {
	if errors.Is(err, errNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return CodeNotFound
	}
	return CodeNotExecutable
}

// startCommand starts the command.
func startCommand(path string, args []string, dropRights bool) (pid int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if dropRights {
		if err := dropInherited(); err != nil {
			return 0, err
		}
	}
	return syscall.ForkExec(path, args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
}

// dropInherited has what the thread executes get no rights from it.
func dropInherited() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop rights: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read rights: %w", err)
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop rights: %w", err)
	}
	return nil
}

// handOn sends the command the signals that come by the relay, except those that
// this process got as well, as one of the group that the command is in. It ends
// everything when the process that the user started is gone.
func handOn(relay int, got <-chan os.Signal, pid int) {
	told := make(chan syscall.Signal)
	go func() {
		for {
			told <- nextTold(relay)
		}
	}()
	var p pairs
	timer := time.NewTimer(idle)
	for {
		select {
		case s := <-got:
			p.got(s.(syscall.Signal), time.Now())
		case s := <-told:
			p.told(s, time.Now())
		case <-timer.C:
		}
		alone, next := p.due(time.Now())
		for _, s := range alone {
			unix.Kill(pid, s)
		}
		timer.Reset(next)
	}
}

// nextTold reads a signal from the relay.
func nextTold(relay int) syscall.Signal {
	var b [1]byte
	for {
		n, err := unix.Read(relay, b[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case n != 1:
			os.Exit(codeSignal + int(unix.SIGKILL))
		default:
			return syscall.Signal(b[0])
		}
	}
}

// reap waits for the command, and for all that loses its parent meanwhile.
func reap(pid int) (int, error) {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return CodeFailure, fmt.Errorf("wait for the command: %w", err)
		case ended == pid:
			return codeOf(syscall.WaitStatus(status)), nil
		}
	}
}
