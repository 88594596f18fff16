package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
)

const showHelp = `
Usage: bondstack show [--control SOCKET] [--json|--proc]

Prints the state of the bond that an instance of bondstack run or tap has: for people,
as JSON, or in the layout of Linux's /proc/net/bonding.

Examples:
  bondstack show
  bondstack show --proc
  bondstack show --json | jq .slaves`

func runShow(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("show")
	socket := fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	asJSON := fs.Bool("json", false, "print JSON")
	asProc := fs.Bool("proc", false, "print the layout of /proc/net/bonding")
	if code, done := parseFlags(fs, showHelp, args, stdout, stderr); done {
		return code
	}
	if *asJSON && *asProc {
		return usageError("show", stderr, errors.New("give one of --json and --proc"))
	}
	if *socket == "" {
		*socket = defaultSocket()
	}
	path := "/v1/status"
	if *asProc {
		path = "/v1/proc"
	}
	body, err := ask(*socket, path)
	if err == nil && !*asProc {
		body, err = format(body, *asJSON)
	}
	if err == nil {
		_, err = stdout.Write(body)
	}
	if err != nil {
		return failure("show", stderr, explainAsk(*socket, err))
	}
	return exitOK
}

// explainAsk says what to do when nobody answers.
func explainAsk(socket string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no instance runs on %s; start one with bondstack run or tap, be the user who runs it (sudo, where it is root), or name its socket with --control", socket)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("control socket %s: it is another user's, who alone may use it: be that user (sudo, where it is root): %w", socket, syscall.EACCES)
	}
	return err
}

// format prints a status for people, or as indented JSON.
func format(body []byte, asJSON bool) ([]byte, error) {
	if asJSON {
		var raw any
		d := json.NewDecoder(strings.NewReader(string(body)))
		d.UseNumber() // counters are more than a float holds
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		out, err := json.MarshalIndent(raw, "", "  ")
		return append(out, '\n'), err
	}
	var st instanceStatus
	if err := json.Unmarshal(body, &st); err != nil {
		return nil, err
	}
	return []byte(st.text()), nil
}

// shownFailovers is how many failovers are printed for people; --json has all.
const shownFailovers = 10

// text is the status for people.
func (st *instanceStatus) text() string {
	var b strings.Builder
	onOff := map[bool]string{true: "on", false: "off"}
	fmt.Fprintf(&b, "%s: %s, carrier %s, address %s, MTU %d\n", st.Name, st.Mode, onOff[st.Carrier], st.MACAddress, st.MTU)
	for _, a := range st.Addresses {
		fmt.Fprintf(&b, "  address %s (%s)\n", a.Prefix, a.State)
	}
	if st.Device != nil {
		b.WriteString(st.Device.text())
	}
	if f := st.Forwarded; f != nil {
		b.WriteString(forwardedText("forwarded", f))
	}
	if u := st.User; u != nil {
		b.WriteString(userText(u))
	}
	if st.ActiveSlave != "" {
		fmt.Fprintf(&b, "  active slave %s\n", st.ActiveSlave)
	}
	if r := st.Reorder; r != nil {
		fmt.Fprintf(&b, "  order of streams: %s; %d frames held, of which %d were filled up, %d lost, %d expired, %d other; %d late, %d overflowed\n",
			onOff[r.On], r.Held, r.Filled, r.Lost, r.Expired, r.LinkGone+r.Flushed+r.Evicted, r.Late, r.Overflow)
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nSLAVE\tROLE\tLINK\tSPEED\tFAILURES\tTX PACKETS\tTX BYTES\tRX PACKETS\tRX BYTES\tDROPPED")
	for _, s := range st.Slaves {
		speed := "unknown"
		if s.SpeedMbps != nil {
			speed = strconv.FormatUint(uint64(*s.SpeedMbps), 10) + " Mbit/s"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", s.Name, s.State, s.MIIStatus, speed, s.LinkFailureCount,
			s.Counters.TxPackets, s.Counters.TxBytes, s.Counters.RxPackets, s.Counters.RxBytes, s.Counters.TxDropped+s.Counters.RxDropped)
	}
	for _, name := range st.Absent {
		fmt.Fprintf(t, "%s\t-\tabsent\t\t\t\t\t\t\t\n", name)
	}
	t.Flush()
	b.WriteString(balanceText(&st.Status))
	if len(st.Failovers) > 0 {
		fmt.Fprintln(&b, "\nfailovers, the latest first:")
	}
	for i := range min(len(st.Failovers), shownFailovers) {
		fmt.Fprintf(&b, "  %s\n", st.Failovers[len(st.Failovers)-1-i])
	}
	for _, w := range st.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s\n", w)
	}
	return b.String()
}
