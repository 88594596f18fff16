package vnet

import (
	"reflect"
	"sync/atomic"
	"unsafe"

	"gvisor.dev/gvisor/pkg/buffer"
)

// chunkOffset is where in a view its chunk is, and countOffset where in that the
// count of references. gVisor does not export them, so they are looked up by
// name and tried; where that fails countsReferences is false.
var chunkOffset, countOffset, countsReferences = findReferences()

// findReferences finds what references needs.
func findReferences() (chunk, count uintptr, ok bool) {
	c, ok := reflect.TypeFor[buffer.View]().FieldByName("chunk")
	if !ok || len(c.Index) != 1 || c.Type.Kind() != reflect.Pointer || c.Type.Elem().Kind() != reflect.Struct {
		return 0, 0, false
	}
	count, ok = offsetOf(c.Type.Elem(), "refCount")
	if !ok || !countsRight(c.Offset, count) {
		return 0, 0, false
	}
	return c.Offset, count, true
}

// offsetOf returns where in a structure a field of 64 bits is, which may be in
// an embedded one.
func offsetOf(in reflect.Type, name string) (uintptr, bool) {
	f, ok := in.FieldByName(name)
	if !ok || f.Type.Size() != 8 {
		return 0, false
	}
	var offset uintptr
	for _, i := range f.Index {
		if in.Kind() != reflect.Struct {
			return 0, false // embedded by pointer
		}
		offset += in.Field(i).Offset
		in = in.Field(i).Type
	}
	return offset, true
}

// countsRight tries the offsets.
func countsRight(chunk, count uintptr) bool {
	v := buffer.NewView(1)
	defer v.Release()
	one := referencesAt(v, chunk, count)
	c := v.Clone()
	two := referencesAt(v, chunk, count)
	c.Release()
	return one == 1 && two == 2 && referencesAt(v, chunk, count) == 1
}

// references returns how many views refer to the chunk of a view. When it is one
// all others have been released, and what they did to the chunk has happened
// before.
func references(v *buffer.View) int64 { return referencesAt(v, chunkOffset, countOffset) }

func referencesAt(v *buffer.View, chunkOffset, countOffset uintptr) int64 {
	chunk := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(v), chunkOffset))
	return (*atomic.Int64)(unsafe.Add(chunk, countOffset)).Load()
}
