//go:build unix

package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// quietly runs f with the process's standard error pointing nowhere, and
// reports whether it did. It is for the Go runtime, which prints past os.Stderr.
func quietly(f func()) bool {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer null.Close()
	saved, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return false
	}
	defer unix.Close(saved)
	if unix.Dup2(int(null.Fd()), 2) != nil {
		return false
	}
	f()
	return unix.Dup2(saved, 2) == nil
}

// cpuTime is how much CPU time the process has had.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
