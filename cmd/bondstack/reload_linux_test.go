package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// A file that has become a pipe is refused and not waited for: all goes on, and the
// next one is read.
func TestReloadPipe(t *testing.T) {
	r := runText(t, newNetwork(t, "eth0", "eth1"), firstFile)
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(r.path, 0o600); err != nil {
		t.Fatal(err)
	}
	r.reload <- syscall.SIGHUP
	eventually(t, "the pipe is refused", func() bool {
		log := r.log.String()
		return strings.Contains(log, "is a pipe, allowed is a regular file") && strings.Contains(log, "nothing is changed")
	})
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if log := r.again(firstFile); !strings.Contains(log, "reloaded") {
		t.Errorf("after the pipe: %s", log)
	}
}
