package sandbox

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// HoldTerminal notes whether this process's group is the foreground of its
// terminal. restore makes it so again, where a command, such as a shell, made
// another group the foreground and ended.
func HoldTerminal() (restore func()) {
	nothing := func() {}
	terminal, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nothing
	}
	own := unix.Getpgrp()
	if before, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP); err != nil || before != own {
		unix.Close(terminal)
		return nothing
	}
	return func() {
		defer unix.Close(terminal)
		now, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP)
		if err != nil || now == own {
			return
		}
		signal.Ignore(syscall.SIGTTOU) // that who is in the background gets for this
		_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, own)
	}
}
