package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"bondstack/bonding"
)

const explainHelp = `
Usage: bondstack explain bond [--control SOCKET] [--json]
       bondstack explain lacp [--control SOCKET] [--json]
       bondstack explain --flow FLOW [--vlan ID] [--to-mac MAC] [--control SOCKET] [--json]
       bondstack explain --frame HEX [--control SOCKET] [--json]

Tells in words what the bond of a running instance does, and why.

bond   for each slave why it is or is not in use, what would have it used, and the
       last failovers with their causes
lacp   the same for the ports of an 802.3ad bond, with the partner's part in it,
       and the last changes of LACP's states

--flow tells which slave sends the packets of a flow, by which rule and arithmetic,
and which would with each of the slaves down; --frame does so for a frame from its
destination MAC on. A flow is tcp:FROM:PORT-TO:PORT, udp:FROM:PORT-TO:PORT or
icmp:FROM-TO, as the bond's host sends it. Where the hash takes MAC addresses, that of
the next hop is the one that the stack knows or asks for, or --to-mac.

Examples:
  bondstack explain bond
  bondstack explain --flow tcp:10.0.0.2:4000-10.0.0.1:80
  bondstack explain --flow udp:[fd00::2]:4000-[fd00::1]:53 --vlan 5
  bondstack explain --frame 0200000000020200000000010800... --json
  bondstack explain lacp --json | jq '.ports[] | select(.distributes | not)'`

// topics are what can be explained by a word: the request, and how its answer is
// printed for people.
var topics = map[string]struct {
	path string
	text func(body []byte) (string, error)
}{
	"bond": {"/v1/explain/bond", textOf(bondText)},
	"lacp": {"/v1/explain/lacp", textOf(lacpText)},
}

func runExplain(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("explain")
	socket := fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	asJSON := fs.Bool("json", false, "print JSON")
	flow := fs.String("flow", "", "a `FLOW` such as tcp:10.0.0.2:4000-10.0.0.1:80")
	frame := fs.String("frame", "", "a frame in `HEX`, from its destination MAC on")
	vlan := fs.Int("vlan", 0, "the `ID` of the VLAN that the flow is in, 1 to 4094")
	mac := fs.String("to-mac", "", "the `MAC` of the flow's next hop (default the one that the stack knows)")
	topic, args := takeTopic(args)
	if code, done := parseFlags(fs, explainHelp, args, stdout, stderr); done {
		return code
	}
	path, text := topics[topic].path, topics[topic].text
	query := url.Values{}
	switch given := *flow != "" || *frame != ""; {
	case topic != "" && text == nil:
		return usageError("explain", stderr, fmt.Errorf("nothing to explain by the name %q; allowed are bond and lacp, or --flow, or --frame", topic))
	case (topic != "") == given || *flow != "" && *frame != "":
		return usageError("explain", stderr, errors.New("give one of bond, lacp, --flow and --frame"))
	case *flow == "" && (*mac != "" || *vlan != 0):
		return usageError("explain", stderr, errors.New("--vlan and --to-mac go with --flow"))
	case *flow != "":
		query.Set("flow", *flow)
		query.Set("vlan", strconv.Itoa(*vlan))
		query.Set("to_mac", *mac)
		path, text = "/v1/explain/frame", textOf(frameText)
	case *frame != "":
		query.Set("frame", *frame)
		path, text = "/v1/explain/frame", textOf(frameText)
	}
	if topic == "" {
		if _, err := parseQuestion(query); err != nil {
			return usageError("explain", stderr, err)
		}
	}
	if *socket == "" {
		*socket = defaultSocket()
	}
	if err := explain(*socket, path+"?"+query.Encode(), text, *asJSON, stdout); err != nil {
		return failure("explain", stderr, explainAsk(*socket, err))
	}
	return exitOK
}

// explain asks for an explanation and prints it.
func explain(socket, path string, text func([]byte) (string, error), asJSON bool, stdout io.Writer) error {
	body, err := ask(socket, path)
	if err != nil {
		return err
	}
	var fault struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(body, &fault); err != nil {
		return err
	}
	if fault.Error != "" {
		return errors.New(fault.Error)
	}
	if asJSON {
		if body, err = format(body, true); err == nil {
			_, err = stdout.Write(body)
		}
		return err
	}
	s, err := text(body)
	if err == nil {
		_, err = io.WriteString(stdout, s)
	}
	return err
}

// takeTopic returns what is to be explained, "" if the arguments begin with a
// flag, and the arguments behind it.
func takeTopic(args []string) (topic string, rest []string) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return "", args
	}
	return args[0], args[1:]
}

// textOf reads an answer and has it printed for people.
func textOf[T any](print func(*strings.Builder, *T)) func([]byte) (string, error) {
	return func(body []byte) (string, error) {
		var v T
		if err := json.Unmarshal(body, &v); err != nil {
			return "", err
		}
		var b strings.Builder
		print(&b, &v)
		return b.String(), nil
	}
}

func lacpText(b *strings.Builder, e *bonding.LACPExplanation) {
	n := 0
	for _, p := range e.Ports {
		if p.Distributes {
			n++
		}
	}
	fmt.Fprintf(b, "%s: %d of %d ports distribute\n%s\n\n", e.Bond, n, len(e.Ports), e.Summary)
	for _, p := range e.Ports {
		fmt.Fprintf(b, "%s (port %d) %s\n", p.Slave, p.Port, p.State)
		remedy(b, p.Remedy)
	}
	if len(e.Changes) == 0 {
		return
	}
	b.WriteString("\nlast changes\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, c := range e.Changes {
		who := c.Slave
		if who == "" {
			who = e.Bond
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s -> %s\t(%s: %s)\n", c.Time.Format("15:04:05.000"), who, c.Machine, c.From, c.To, c.Trigger, c.Cause)
	}
	t.Flush()
}

func remedy(b *strings.Builder, text string) {
	if text != "" {
		fmt.Fprintf(b, "    remedy: %s\n", text)
	}
}

func bondText(b *strings.Builder, e *bonding.Explanation) {
	fmt.Fprintf(b, "%s (%s): %s\n\n", e.Bond, e.Mode, e.Summary)
	for _, s := range e.Slaves {
		fmt.Fprintf(b, "%s: %s\n", s.Slave, s.Why)
		remedy(b, s.Remedy)
	}
	if len(e.Failovers) == 0 {
		return
	}
	b.WriteString("\nlast failovers\n")
	for _, f := range e.Failovers {
		fmt.Fprintf(b, "  %s\n", f)
	}
}

func frameText(b *strings.Builder, e *frameAnswer) {
	fmt.Fprintf(b, "%s (%s)\n", e.Bond, e.Mode)
	if e.Note != "" {
		fmt.Fprintf(b, "note: %s\n", e.Note)
	}
	fmt.Fprintf(b, "sent by %s\n", e.FramePath)
	for _, s := range e.Steps {
		fmt.Fprintf(b, "    %s\n", s)
	}
	for _, w := range e.Without {
		fmt.Fprintf(b, "with %s down by %s\n", w.Down, w.FramePath)
	}
}
