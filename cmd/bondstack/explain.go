package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"bondstack/bonding"
)

const explainHelp = `
Usage: bondstack explain lacp [--control SOCKET] [--json]

Tells in words what the bond of an instance of bondstack run does in mode
802.3ad: for each port why it is or is not distributing and what would make it,
and the last changes of state with their causes.

Examples:
  bondstack explain lacp
  bondstack explain lacp --json | jq '.ports[] | select(.distributes | not)'`

func runExplain(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("explain")
	socket := fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	asJSON := fs.Bool("json", false, "print JSON")
	topic, args := takeTopic(args)
	if code, done := parseFlags(fs, explainHelp, args, stdout, stderr); done {
		return code
	}
	if topic != "lacp" {
		return usageError("explain", stderr, fmt.Errorf("nothing to explain by the name %q; allowed is lacp", topic))
	}
	if *socket == "" {
		*socket = defaultSocket()
	}
	body, err := ask(*socket, "/v1/explain/lacp")
	if err == nil {
		body, err = formatExplanation(body, *asJSON)
	}
	if err == nil {
		_, err = stdout.Write(body)
	}
	if err != nil {
		return failure("explain", stderr, explainAsk(*socket, err))
	}
	return exitOK
}

// takeTopic returns what is to be explained, "" if the arguments begin with a
// flag, and the arguments behind it.
func takeTopic(args []string) (topic string, rest []string) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return "", args
	}
	return args[0], args[1:]
}

// lacpAnswer is the answer to a request for an explanation of LACP.
type lacpAnswer struct {
	bonding.LACPExplanation
	Error string `json:"error,omitempty"` // there is nothing to explain
}

func (r *runState) explainLACP() lacpAnswer {
	e, err := r.bond.ExplainLACP()
	if err != nil {
		return lacpAnswer{e, err.Error()}
	}
	return lacpAnswer{LACPExplanation: e}
}

// formatExplanation prints an answer for people, or as indented JSON.
func formatExplanation(body []byte, asJSON bool) ([]byte, error) {
	var a lacpAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	switch {
	case a.Error != "":
		return nil, errors.New(a.Error)
	case asJSON:
		return format(body, true)
	}
	return []byte(explanationText(&a.LACPExplanation)), nil
}

// explanationText is an explanation for people.
func explanationText(e *bonding.LACPExplanation) string {
	var b strings.Builder
	n := 0
	for _, p := range e.Ports {
		if p.Distributes {
			n++
		}
	}
	fmt.Fprintf(&b, "%s: %d of %d ports distribute\n%s\n\n", e.Bond, n, len(e.Ports), e.Summary)
	for _, p := range e.Ports {
		fmt.Fprintf(&b, "%s (port %d) %s\n", p.Slave, p.Port, p.State)
		if p.Remedy != "" {
			fmt.Fprintf(&b, "    remedy: %s\n", p.Remedy)
		}
	}
	if len(e.Changes) == 0 {
		return b.String()
	}
	b.WriteString("\nlast changes\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range e.Changes {
		who := c.Slave
		if who == "" {
			who = e.Bond
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s -> %s\t(%s: %s)\n", c.Time.Format("15:04:05.000"), who, c.Machine, c.From, c.To, c.Trigger, c.Cause)
	}
	t.Flush()
	return b.String()
}
