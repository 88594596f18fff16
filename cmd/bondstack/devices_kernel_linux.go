package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/vishvananda/netns"
)

// benchKernel times the host kernel: one ip -batch of bridges for each of
// adding, renaming and deleting, in a network namespace that goes with it.
func benchKernel(count int) (tableResult, error) {
	result := tableResult{Name: "kernel"}
	if os.Geteuid() != 0 {
		return result, errors.New("skipped: needs root, to make a network namespace")
	}
	ip, err := exec.LookPath("ip")
	if err != nil {
		return result, fmt.Errorf("skipped: needs the command ip: %w", err)
	}
	done := make(chan error)
	go func() {
		// The thread is in another namespace from here on: it is never given
		// back, and ends with the goroutine.
		runtime.LockOSThread()
		done <- inNamespace(ip, count, &result)
	}()
	return result, <-done
}

func inNamespace(ip string, count int, result *tableResult) error {
	ns, err := netns.New()
	if err != nil {
		return fmt.Errorf("skipped: making a network namespace: %w", err)
	}
	defer ns.Close()
	for _, phase := range []struct {
		line func(b *strings.Builder, i int)
		ms   *[]float64
	}{
		{func(b *strings.Builder, i int) { fmt.Fprintf(b, "link add dev dev%d type bridge\n", i) }, &result.AddMs},
		{func(b *strings.Builder, i int) { fmt.Fprintf(b, "link set dev dev%d name new%d\n", i, i) }, &result.RenameMs},
		{func(b *strings.Builder, i int) { fmt.Fprintf(b, "link del dev new%d\n", i) }, &result.DeleteMs},
	} {
		var batch strings.Builder
		for i := range count {
			phase.line(&batch, i)
		}
		cmd := exec.Command(ip, "-batch", "-")
		cmd.Stdin = strings.NewReader(batch.String())
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("ip -batch: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
		}
		*phase.ms = append(*phase.ms, float64(time.Since(began))/1e6)
	}
	return nil
}
