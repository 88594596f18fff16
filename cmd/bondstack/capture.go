package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/term"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/capture"
)

const captureHelp = `
Usage: bondstack capture [--slave NAME ... | --bond] [-w FILE] [--filter EXPRESSION]
                         [--snaplen BYTES] [--count N] [--for TIME] [--control SOCKET]

Captures the frames of a running instance as pcapng, until it is interrupted: at its
slaves, as their links send and receive them, or with --bond between the bond and the
stack. Each slave is an interface of the file; whether a frame was sent or received is
in its flags and comment. Packets that are segmented later are there whole, and may
have no checksum yet.

The instance copies each frame into room of 16 MiB, and waits for nobody: what there
is no room for is missing in the file, and counted at the end. Fewer bytes a frame
(--snaplen) leave room for more frames.

EXPRESSION is in tcpdump's language: ip, ip6, arp, tcp, udp, icmp, icmp6, igmp, lacp,
lldp, broadcast, multicast, host, net, port, src, dst, ether, vlan, less, greater, and,
or, not, and brackets.

Examples:
  bondstack capture -w bond.pcapng
  bondstack capture --slave eth0 --filter 'tcp port 80 or lacp' --count 1000 -w eth0.pcapng
  bondstack capture --bond --snaplen 128 -w - | wireshark -k -i -
  bondstack capture --filter lacp -w - | tshark -r - -O slow`

// captureFlags are what the flags say.
type captureFlags struct {
	slaves         []string
	bond           bool
	file, filter   string
	snaplen        int
	count          uint64
	long           time.Duration
	socket         string
	stdout, stderr io.Writer
}

func runCapture(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	c := captureFlags{stdout: stdout, stderr: stderr}
	fs := newFlags("capture")
	fs.StringArrayVar(&c.slaves, "slave", nil, "the `NAME` of a slave; may be given again (default all)")
	fs.BoolVar(&c.bond, "bond", false, "capture between the bond and the stack")
	fs.StringVarP(&c.file, "write", "w", "", "the `FILE` to write, - for the standard output (default that, where it is no terminal)")
	fs.StringVar(&c.filter, "filter", "", "write only frames that the `EXPRESSION` chooses")
	fs.IntVar(&c.snaplen, "snaplen", bonding.MaxSnapLen, "how many `BYTES` of a frame to keep")
	fs.Uint64Var(&c.count, "count", 0, "end after `N` frames (default never)")
	fs.DurationVar(&c.long, "for", 0, "end after this `TIME` (default never)")
	fs.StringVar(&c.socket, "control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	if code, done := parseFlags(fs, captureHelp, args, stdout, stderr); done {
		return code
	}
	if err := c.check(); err != nil {
		return usageError("capture", stderr, err)
	}
	if c.socket == "" {
		c.socket = defaultSocket()
	}
	if err := c.run(); err != nil {
		return failure("capture", stderr, explainAsk(c.socket, err))
	}
	return exitOK
}

// check finds what can be known before anybody is asked.
func (c *captureFlags) check() error {
	if c.filter != "" {
		if _, err := capture.ParseFilter(c.filter); err != nil {
			return fmt.Errorf("--filter: %w", err)
		}
	}
	switch {
	case c.bond && len(c.slaves) > 0:
		return errors.New("give --bond or --slave, not both")
	case c.snaplen < 1 || c.snaplen > bonding.MaxSnapLen:
		return fmt.Errorf("--snaplen: %d: allowed are 1 to %d", c.snaplen, bonding.MaxSnapLen)
	case c.long < 0:
		return fmt.Errorf("--for: %v: a time above 0 is needed", c.long)
	}
	if f, ok := c.stdout.(*os.File); c.file == "" && ok && term.IsTerminal(int(f.Fd())) {
		return errors.New("-w: missing: the standard output is a terminal; give -w FILE, or -w - to write there all the same")
	}
	return nil
}

// run copies the answer of the instance to the file.
func (c *captureFlags) run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if c.long > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, c.long)
		defer cancel()
	}
	resp, err := askStream(ctx, c.socket, "/v1/capture?"+c.query().Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	to := c.stdout
	if c.file != "" && c.file != "-" {
		file, err := os.Create(c.file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		to = file
	}
	fmt.Fprintln(c.stderr, "capturing")
	n, err := io.Copy(to, resp.Body)
	if err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Fprintf(c.stderr, "%d bytes", n)
	if written := resp.Trailer.Get(captureTotals); written != "" {
		fmt.Fprintf(c.stderr, ", %s", written)
	}
	fmt.Fprintln(c.stderr)
	return nil
}

func (c *captureFlags) query() url.Values {
	q := url.Values{"slave": c.slaves, "filter": {c.filter}, "snaplen": {strconv.Itoa(c.snaplen)}, "count": {strconv.FormatUint(c.count, 10)}}
	if c.bond {
		q.Set("bond", "1")
	}
	return q
}

// captureTotals is the trailer of the answer that says what became of the frames.
const captureTotals = "Capture-Totals"

// capturePatience is for how long a reader may take nothing at all.
const capturePatience = 30 * time.Second

// capture answers with pcapng until the client goes or the bond ends.
func (r *runState) capture(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	var filter capture.Filter
	snaplen, err := strconv.Atoi(q.Get("snaplen"))
	count, err2 := strconv.ParseUint(q.Get("count"), 10, 64)
	err = errors.Join(err, err2)
	if text := q.Get("filter"); text != "" && err == nil {
		filter, err = capture.ParseFilter(text)
	}
	var c *bonding.Capture
	if err == nil {
		c, err = r.bond.Capture(bonding.CaptureOptions{Slaves: q["slave"], Bond: q.Get("bond") != "", SnapLen: snaplen})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	defer c.Close()
	w.Header().Set("Content-Type", "application/x-pcapng")
	w.Header().Set("Trailer", captureTotals)
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Time{})                                  // of the request: the answer may last
	totals, _ := capture.Write(req.Context(), w, c, capture.Options{ // who reads no more sees no error
		Bond: r.bond.Name(), SnapLen: snaplen, Filter: filter, Count: count,
		Flush: func() error {
			rc.SetWriteDeadline(time.Now().Add(capturePatience))
			return rc.Flush()
		},
	})
	w.Header().Set(captureTotals, fmt.Sprintf("%d frames, %d filtered out, %d dropped for want of room", totals.Written, totals.Filtered, totals.Dropped))
}
