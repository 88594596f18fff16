package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"bondstack/bonding/control"

	"github.com/spf13/pflag"
)

// changeTimeout bounds how long a command waits for a change: a link may take
// some time to open or to let go.
const changeTimeout = 30 * time.Second

// changer is what the commands that change a running bond have in common.
type changer struct {
	name           string
	fs             *pflag.FlagSet
	socket         *string
	asJSON         *bool
	dryRun         *bool
	confirmWithin  *time.Duration
	stdout, stderr io.Writer
}

func newChanger(name string, stdout, stderr io.Writer) *changer {
	fs := newFlags(name)
	return &changer{name: name, fs: fs, stdout: stdout, stderr: stderr,
		dryRun:        fs.Bool("dry-run", false, "tell what would change, and change nothing"),
		confirmWithin: fs.Duration("confirm-within", 0, "take the change back unless bondstack confirm comes within `TIME`, such as 10s"),
		socket:        fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")"),
		asJSON:        fs.Bool("json", false, "print JSON"),
	}
}

// parse reads flags and arguments, which may be mixed. It wants least to most
// arguments, most < 0 being any number, of what the usage calls them.
func (c *changer) parse(help string, args []string, least, most int, what string) (rest []string, code int, done bool) {
	if code, done := parseMixed(c.fs, help, args, c.stdout, c.stderr); done {
		return nil, code, true
	}
	rest = c.fs.Args()
	switch n := len(rest); {
	case n < least || most >= 0 && n > most:
		return nil, usageError(c.name, c.stderr, fmt.Errorf("%s given; needed is %s", arguments(n), what)), true
	case *c.confirmWithin < 0 || *c.confirmWithin > control.MaxConfirm:
		return nil, usageError(c.name, c.stderr, fmt.Errorf("--confirm-within %v: allowed are 1ms to %v", *c.confirmWithin, control.MaxConfirm)), true
	case *c.confirmWithin > 0 && *c.confirmWithin < time.Millisecond:
		return nil, usageError(c.name, c.stderr, fmt.Errorf("--confirm-within %v: allowed are 1ms to %v", *c.confirmWithin, control.MaxConfirm)), true
	case *c.confirmWithin > 0 && *c.dryRun:
		return nil, usageError(c.name, c.stderr, errors.New("--confirm-within: a dry run has nothing to confirm")), true
	}
	return rest, exitOK, false
}

// parseMixed is parseFlags for commands that take arguments too.
func parseMixed(fs *pflag.FlagSet, help string, args []string, stdout, stderr io.Writer) (code int, done bool) {
	fs.SetInterspersed(true)
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, "%s\n\nFlags:\n%s", strings.TrimSpace(help), fs.FlagUsages())
		return exitOK, true
	case err != nil:
		return usageError(fs.Name(), stderr, explainFlag(err, fs)), true
	}
	return exitOK, false
}

// do has the running instance make the operations, and prints the outcome. What is
// wrong whatever the instance is wrong usage, and needs none.
func (c *changer) do(operations ...control.Operation) int {
	if err := control.Check(operations); err != nil {
		return usageError(c.name, c.stderr, err)
	}
	socket := *c.socket
	if socket == "" {
		socket = defaultSocket()
	}
	ctx, cancel := context.WithTimeout(context.Background(), changeTimeout)
	defer cancel()
	a, err := control.NewClient(socket).Change(ctx, control.Request{Operations: operations, DryRun: *c.dryRun,
		ConfirmWithinMs: c.confirmWithin.Milliseconds()})
	if refused, ok := errors.AsType[*control.Error](err); ok && refused.Status == http.StatusBadRequest {
		return usageError(c.name, c.stderr, err) // such as an option that there is not
	}
	if err != nil {
		return failure(c.name, c.stderr, explainAsk(socket, err))
	}
	if *c.asJSON {
		err = printJSON(c.stdout, a)
	} else {
		_, err = io.WriteString(c.stdout, answerText(&a))
	}
	if err != nil {
		return failure(c.name, c.stderr, err)
	}
	return exitOK
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// answerText is an answer for people.
func answerText(a *control.Answer) string {
	var b strings.Builder
	switch {
	case len(a.Differences) == 0:
		b.WriteString("nothing changes: all is so already\n")
	case a.Applied:
		b.WriteString("changed:\n")
	default:
		b.WriteString("would change:\n")
	}
	for _, d := range a.Differences {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	if len(a.Differences) > 0 {
		fmt.Fprintf(&b, "%s\n", a.Flows)
	}
	for _, w := range a.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	if p := a.Confirm; p != nil {
		fmt.Fprintf(&b, "taken back at %s unless you run: bondstack confirm %s\n", p.Deadline.Local().Format("15:04:05"), p.ID)
	}
	return b.String()
}

func arguments(n int) string {
	switch n {
	case 0:
		return "nothing is"
	case 1:
		return "1 argument is"
	}
	return fmt.Sprintf("%d arguments are", n)
}
