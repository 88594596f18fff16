//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkFolder refuses a folder of another user's: who owns the folder can put
// a socket of his own in it.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Getuid() && st.Uid != 0 {
		return fmt.Errorf("control socket: folder %s belongs to user %d, not to you; name another socket with --control", dir, st.Uid)
	}
	return nil
}

// lockFile keeps two instances that start at once from taking one socket. The
// lock goes with the process.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("control socket: locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// isOurs reports whether this process opened a descriptor itself, or keeps it from
// what it starts.
func isOurs(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC != 0
}
