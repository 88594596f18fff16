package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bondstack.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version: 1\n")
	if text, err := ReadFile(path); string(text) != "version: 1\n" || err != nil {
		t.Errorf("ReadFile() = %q, %v", text, err)
	}
	write(strings.Repeat("a", 2*MaxSize))
	if text, err := ReadFile(path); len(text) != MaxSize+1 || err != nil {
		t.Errorf("of a large file %d bytes are read, %v", len(text), err)
	}
	if _, err := ReadFile(path + ".none"); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
	if _, err := ReadFile(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a folder, allowed is a regular file") {
		t.Errorf("a folder: %v", err)
	}
	for mode, want := range map[fs.FileMode]string{fs.ModeDir: "a folder", fs.ModeNamedPipe: "a pipe", fs.ModeDevice | fs.ModeCharDevice: "a device", fs.ModeSocket: "no file of bytes"} {
		if got := kindOf(mode); got != want {
			t.Errorf("kindOf(%v) = %q, want %q", mode, got, want)
		}
	}
}
