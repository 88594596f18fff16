package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// The view of an instance, once and where nobody answers.
func TestTop(t *testing.T) {
	i := start(t, newNetwork(t, "eth0", "eth1").kinds(), backup...)
	var stdout, stderr bytes.Buffer
	if code := run([]string{"top", "--control", i.socket, "--once", "--interval", "100ms"}, nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d, %s", code, &stderr)
	}
	for _, want := range []string{"bond0  active-backup  carrier on", "\nSLAVE ", "\neth0   active  up ", "\neth1   backup  up "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &stdout)
		}
	}
	for code, args := range map[int][]string{exitUsage: {"--interval", "1ms"}, exitFailure: {"--control", tempSocket(t)}} {
		stderr.Reset()
		if got := run(append([]string{"top"}, args...), nil, io.Discard, &stderr); got != code || stderr.Len() == 0 {
			t.Errorf("top %q: exit code %d, %s", args, got, &stderr)
		}
	}
}
