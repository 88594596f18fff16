package config

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// ReadFile returns the text of a file, up to one byte more than MaxSize, which Read
// finds fault with. It refuses what is not a regular file, without waiting for it: a
// program that reads its file again must not hang at a pipe that nobody writes.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is %s, allowed is a regular file", path, kindOf(info.Mode()))
	}
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

// kindOf says what a file is that is not a regular one.
func kindOf(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	case mode&os.ModeDevice != 0:
		return "a device"
	}
	return "no file of bytes"
}
