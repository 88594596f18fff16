package tap

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// readVector receives one frame without waiting. Both calls are made without
// telling the scheduler: they do not block, and most are shorter than a
// handover.
func readVector(fd int, v []unix.Iovec) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	return int(n), errno
}

// writeVector sends one frame without waiting.
func writeVector(fd int, v []unix.Iovec) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	return int(n), errno
}
