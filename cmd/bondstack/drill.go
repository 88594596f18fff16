package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/drill"

	"golang.org/x/term"
)

const drillHelp = `
Usage: bondstack drill --cut SLAVE --for TIME [--how WAY] [--peer IP ...] [--count N]
         [--max-outage TIME] [--force] [--control SOCKET] [--json]

Runs a failover of the bond of a running instance on purpose, and reports what it
cost: for each peer the longest time without an answer, how many pings were lost and
when it was reached again, and the bond's own record of the failover. Peers are pinged
from the bonded stack every 5 ms; without --peer they are the gateways and the
neighbours that answer.

The slave is given back after the time, and also when this command is interrupted or
the instance ends. WAY is how it is taken away:
  silence  all its frames are discarded both ways while its link stays up, as by a
           broken path behind a switch: the ARP monitor, probes and LACP have to find
           it. Default where one of them is on.
  disable  the bond is told: the time that it takes to find a failure is not measured.
           Default elsewhere.
  drain    an orderly hand-over, which should lose nothing.

The exit code is 1 where a peer was not reached again, or the longest gap is longer
than --max-outage.

Examples:
  bondstack drill --cut eth0 --for 5s
  bondstack drill --cut eth0 --for 5s --how silence --peer 10.0.0.1 --max-outage 200ms
  bondstack drill --cut eth1 --for 2s --count 5 --json | jq .longest_gap_us`

func runDrill(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("drill")
	var r drill.Request
	fs.StringVar(&r.Slave, "cut", "", "the `SLAVE` to take away")
	length := fs.Duration("for", 0, "for how long, `TIME`, 100ms to 60s")
	how := fs.String("how", "", "the `WAY`: silence, disable or drain (default by the bond's monitors)")
	peers := fs.StringArray("peer", nil, "a host to ping, `IP`; may be given again (default those known)")
	fs.IntVar(&r.Count, "count", 1, "how many times, `N`")
	fs.BoolVar(&r.Force, "force", false, "cut the slave even where no other can serve")
	limit := fs.Duration("max-outage", 0, "fail where the longest gap is longer than a `TIME` (default no limit)")
	socket := fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	asJSON := fs.Bool("json", false, "print the result as JSON")
	if code, done := parseFlags(fs, drillHelp, args, stdout, stderr); done {
		return code
	}
	r.ForMs, r.How = length.Milliseconds(), bonding.CutHow(*how)
	var f faults
	f.each("--peer", *peers, func(text string) error {
		a, err := netip.ParseAddr(text)
		r.Peers = append(r.Peers, a)
		return err
	})
	if *limit < 0 {
		f.add("--max-outage", fmt.Errorf("%v is negative", *limit))
	}
	if len(f) == 0 {
		f.add("", r.Check())
	}
	if err := errors.Join(f...); err != nil {
		return usageError("drill", stderr, err)
	}
	if *socket == "" {
		*socket = defaultSocket()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	result, err := drill.Ask(ctx, *socket, r, drillProgress(stderr))
	if err != nil {
		return failure("drill", stderr, explainAsk(*socket, err))
	}
	if *asJSON {
		err = printJSON(stdout, result)
	} else {
		err = result.WriteText(stdout)
	}
	if err != nil {
		return failure("drill", stderr, err)
	}
	return drillVerdict(result, *limit, stderr)
}

// drillProgress tells of phases on a terminal.
func drillProgress(w io.Writer) func(drill.Line) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func(l drill.Line) { fmt.Fprintf(w, "%s %s\n", time.Now().Format(time.TimeOnly), l) }
}

// drillVerdict returns the exit code that follows from a result.
func drillVerdict(r *drill.Result, limit time.Duration, stderr io.Writer) int {
	switch d, ok := r.Outage(); {
	case !ok:
		return failure("drill", stderr, fmt.Errorf("not reached again: %v", r.Unreached))
	case limit > 0 && d > limit:
		return failure("drill", stderr, fmt.Errorf("the longest gap is %v, and --max-outage allows %v", d, limit))
	}
	return exitOK
}
