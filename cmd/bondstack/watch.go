package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"bondstack/bonding/control"
)

const watchHelp = `
Usage: bondstack watch [--control SOCKET] [--json] [--count N]

Prints the events of the bond of a running instance as they come, until it ends or
is interrupted. A reader that is too slow loses some, and is told how many.

Examples:
  bondstack watch
  bondstack watch --json | jq 'select(.kind == "active")'
  bondstack watch --count 1`

func runWatch(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("watch")
	socket := fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	asJSON := fs.Bool("json", false, "print a line of JSON for each event")
	count := fs.Uint64("count", 0, "end after `N` events (default never)")
	if code, done := parseFlags(fs, watchHelp, args, stdout, stderr); done {
		return code
	}
	if *socket == "" {
		*socket = defaultSocket()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	enough := errors.New("enough")
	seen := uint64(0)
	err := control.NewClient(*socket).Watch(ctx, func() { fmt.Fprintln(stderr, "watching") }, func(e control.Event) error {
		if err := printEvent(stdout, e, *asJSON); err != nil {
			return err
		}
		if seen++; seen == *count {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) && ctx.Err() == nil {
		return failure("watch", stderr, explainAsk(*socket, err))
	}
	return exitOK
}

func printEvent(w io.Writer, e control.Event, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(e)
	}
	_, err := fmt.Fprintf(w, "%s %s\n", e.Time.Local().Format(time.StampMilli), e)
	return err
}
