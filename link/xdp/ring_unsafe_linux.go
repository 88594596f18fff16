package xdp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setOption sets an option of the socket to a value of any type.
func setOption[T any](fd, option int, value *T) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option),
		uintptr(unsafe.Pointer(value)), unsafe.Sizeof(*value), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// option reads an option of the socket. A kernel that knows less of it than T
// leaves the rest zero.
func option[T any](fd, option int) (value T, err error) {
	size := uint32(unsafe.Sizeof(value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option),
		uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return value, errno
	}
	return value, nil
}

// registerMemory gives the socket the memory of its frames.
func registerMemory(fd int, memory []byte, frame int) error {
	return setOption(fd, unix.XDP_UMEM_REG, &unix.XDPUmemReg{
		Addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))), Len: uint64(len(memory)), Size: uint32(frame),
	})
}

// mapRing maps a ring of n entries that the kernel has made.
func mapRing[T uint64 | unix.XDPDesc](fd, n int, page int64, at unix.XDPRingOffset) (ring[T], error) {
	var entry T
	size := int(at.Desc) + n*int(unsafe.Sizeof(entry))
	b, err := unix.Mmap(fd, page, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return ring[T]{}, fmt.Errorf("map a ring: %w", err)
	}
	return ring[T]{
		producer: (*uint32)(unsafe.Pointer(&b[at.Producer])),
		consumer: (*uint32)(unsafe.Pointer(&b[at.Consumer])),
		flags:    (*uint32)(unsafe.Pointer(&b[at.Flags])),
		entries:  unsafe.Slice((*T)(unsafe.Pointer(&b[at.Desc])), n),
		mapped:   b,
	}, nil
}
