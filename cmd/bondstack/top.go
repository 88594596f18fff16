package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"bondstack/cmd/bondstack/top"
)

const topHelp = `
Usage: bondstack top [--control SOCKET] [--interval TIME] [--once] [--json]

Shows the bond of a running instance live: slaves, links, rates in each direction,
shares, losses, failovers, LACP. On a terminal it has the whole screen, and the keys
q (quit), p (pause) and s (sort); elsewhere it prints a block of lines each interval.
Colours are left out where NO_COLOR is set.

In the columns ACTOR and PARTNER a letter is a bit of LACP's port state: Activity,
Timeout short, aGgregation, Synchronization, Collecting, Distributing, deFaulted,
Expired.

Examples:
  bondstack top
  bondstack top --once --interval 5s
  bondstack top --json | jq -c '[.time, (.slaves[] | {name, tx_bits_per_second})]'`

func runTop(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("top")
	socket := fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	o := top.Options{Out: stdout, In: os.Stdin, NoColor: os.Getenv("NO_COLOR") != ""}
	fs.DurationVar(&o.Interval, "interval", time.Second, "what rates are measured over, and how often, `TIME`")
	fs.BoolVar(&o.Once, "once", false, "end after the first interval")
	fs.BoolVar(&o.JSON, "json", false, "print a line of JSON for each interval")
	if code, done := parseFlags(fs, topHelp, args, stdout, stderr); done {
		return code
	}
	var f faults
	f.add("--interval", top.CheckInterval(o.Interval))
	if err := errors.Join(f...); err != nil {
		return usageError("top", stderr, err)
	}
	if *socket == "" {
		*socket = defaultSocket()
	}
	o.Ask = func(context.Context) (*top.Status, error) {
		body, err := ask(*socket, "/v1/status")
		if err != nil {
			return nil, err
		}
		st := &top.Status{}
		return st, json.Unmarshal(body, st)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := top.Run(ctx, o); err != nil {
		return failure("top", stderr, explainAsk(*socket, err))
	}
	return exitOK
}
