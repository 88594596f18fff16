package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// self is this program's file.
const self = "/proc/self/exe"

// spawn starts this program anew with the relay's far end, and returns its exit
// code when it has ended. prepare is run first, on the thread that starts it; the
// new process is killed when that thread ends, and so with this process. args
// makes its arguments of the relay's descriptor, which has the same number in the
// new process: all numbers that the command may have been given stay free.
func spawn(relay *Relay, attr *syscall.SysProcAttr, args func(far string) []string, prepare func() error) (int, error) {
	type result struct {
		code int
		err  error
	}
	ended := make(chan result)
	attr.Pdeathsig = unix.SIGKILL
	go func() {
		// Never unlocked: what prepare changed ends with the thread.
		runtime.LockOSThread()
		var r result
		defer func() { ended <- r }()
		var p *os.Process
		if r.err = prepare(); r.err == nil {
			p, r.err = start(relay, attr, args)
		}
		if r.err != nil {
			return
		}
		var state *os.ProcessState
		if state, r.err = p.Wait(); r.err == nil {
			r.code = codeOf(state.Sys().(syscall.WaitStatus))
		}
	}()
	r := <-ended
	return r.code, r.err
}

// start starts the process, and closes this one's far end.
func start(relay *Relay, attr *syscall.SysProcAttr, args func(far string) []string) (*os.Process, error) {
	// Nothing else is started by this process.
	if _, err := unix.FcntlInt(uintptr(relay.far), unix.F_SETFD, 0); err != nil {
		return nil, fmt.Errorf("hand the relay on: %w", err)
	}
	defer relay.closeFar()
	p, err := os.StartProcess(self, args(strconv.Itoa(relay.far)), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   attr,
	})
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: this program finds itself by /proc, which has to be mounted", err)
	}
	return p, err
}

// codeOf makes an exit code of a process's end.
func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return codeSignal + int(status.Signal())
	}
	return status.ExitStatus()
}
