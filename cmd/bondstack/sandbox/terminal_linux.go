package sandbox

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// HoldTerminal notes whether this process's group is the foreground of its
// terminal, and the terminal's settings. restore is called with a command's exit
// code. It makes the group the foreground again, where a command, such as a shell,
// made it another one; and it has the settings as they were, as shells do, where a
// signal ended the command. What a command that ended by itself has set, stays.
func HoldTerminal() (restore func(code int)) {
	nothing := func(int) {}
	terminal, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nothing
	}
	own := unix.Getpgrp()
	if before, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP); err != nil || before != own {
		unix.Close(terminal)
		return nothing
	}
	settings, err := unix.IoctlGetTermios(terminal, unix.TCGETS)
	return func(code int) {
		defer unix.Close(terminal)
		signal.Ignore(syscall.SIGTTOU) // that who is in the background gets for these
		if now, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP); err == nil && now != own {
			_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, own)
		}
		if err == nil && code > codeSignal {
			_ = unix.IoctlSetTermios(terminal, unix.TCSETS, settings)
		}
	}
}
