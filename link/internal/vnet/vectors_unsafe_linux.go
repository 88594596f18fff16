package vnet

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// AppendVector appends the bytes of b, if any.
func AppendVector(v []unix.Iovec, b []byte) []unix.Iovec {
	if len(b) == 0 {
		return v
	}
	v = append(v, unix.Iovec{Base: unsafe.SliceData(b)})
	v[len(v)-1].SetLen(len(b))
	return v
}
