// Package top is a live view of a bond in a terminal: slaves, links, rates,
// failovers, LACP. It asks for the status at an interval, and shows what lies
// between two answers.
//
//	err := top.Run(ctx, top.Options{Ask: ask, Out: os.Stdout, In: os.Stdin, Interval: time.Second})
//
// On a terminal it has the whole screen, and keys: q quits, p pauses, s sorts by
// the next column. Elsewhere it prints a block of lines each interval, or lines of
// JSON. However it ends, but for kill -9, the terminal is as it was before.
package top

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"bondstack/bonding"

	"golang.org/x/term"
)

// Status is what an instance tells of itself, as far as it is shown.
type Status struct {
	bonding.Status
	Absent []string `json:"absent"` // slaves that have not appeared
}

// Bounds of an interval.
const (
	MinInterval = 100 * time.Millisecond
	MaxInterval = time.Hour
)

// Options are the settings of Run.
type Options struct {
	// Ask returns the present status.
	Ask func(ctx context.Context) (*Status, error)
	// Out is where to print. The whole screen is used where it is an *os.File
	// that is a terminal, In is one too, and neither Once nor JSON is set.
	Out io.Writer
	In  *os.File
	// Interval is between two questions.
	Interval time.Duration
	Once     bool // ends after the first interval
	JSON     bool // prints a line of JSON for each interval
	NoColor  bool
}

// CheckInterval returns an error where an interval is out of bounds.
func CheckInterval(d time.Duration) error {
	if d < MinInterval || d > MaxInterval {
		return fmt.Errorf("%v is out of range, allowed are %v to %v", d, MinInterval, MaxInterval)
	}
	return nil
}

// Run shows the bond until ctx ends, which is no error, a key is pressed that
// quits, or nobody answers any more.
func Run(ctx context.Context, o Options) error {
	out, isFile := o.Out.(*os.File)
	if isFile && o.In != nil && !o.Once && !o.JSON && term.IsTerminal(int(out.Fd())) && term.IsTerminal(int(o.In.Fd())) {
		return runScreen(ctx, o, out)
	}
	err := runPlain(ctx, o)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// sample is a status and when it was asked for.
type sample struct {
	at time.Time
	*Status
}

func (o *Options) ask(ctx context.Context) (sample, error) {
	st, err := o.Ask(ctx)
	return sample{time.Now(), st}, err
}

// runPlain prints a block, or a line of JSON, for each interval.
func runPlain(ctx context.Context, o Options) error {
	last, err := o.ask(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		next, err := o.ask(ctx)
		if err != nil {
			return err
		}
		if err := o.print(between(last, next)); err != nil {
			return err
		}
		if o.Once {
			return nil
		}
		last = next
	}
}

func (o *Options) print(r *Report) error {
	if o.JSON {
		return json.NewEncoder(o.Out).Encode(r)
	}
	text := ""
	for _, l := range view(r, byOrder, 0) {
		text += l.render(0, false) + "\n"
	}
	if !o.Once {
		text += "\n"
	}
	_, err := io.WriteString(o.Out, text)
	return err
}
