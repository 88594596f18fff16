package top

import (
	"context"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// What a terminal is told: the second screen without a cursor and back, to begin
// at the top, to clear the rest of a line and of the screen.
const (
	enter     = "\x1b[?1049h\x1b[?25l"
	leave     = "\x1b[?25h\x1b[?1049l"
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

// screen is the live view on a terminal.
type screen struct {
	o      Options
	out    *os.File
	last   sample
	report *Report
	by     order
	paused bool
}

// runScreen has the terminal until it ends, and gives it back as it was.
func runScreen(ctx context.Context, o Options, out *os.File) (err error) {
	s := &screen{o: o, out: out}
	if s.last, err = o.ask(ctx); err != nil {
		return err
	}
	was, err := term.MakeRaw(int(o.In.Fd()))
	if err != nil {
		return err
	}
	defer func() {
		out.WriteString(leave)
		if restoreErr := term.Restore(int(o.In.Fd()), was); err == nil {
			err = restoreErr
		}
	}()
	if _, err := out.WriteString(enter); err != nil {
		return err
	}
	s.report = between(s.last, s.last)
	return s.loop(ctx, keys(ctx, o.In))
}

// keys sends what is typed, and is closed when there is nothing more to read. Its
// goroutine goes on until then: a read from a terminal cannot be ended.
func keys(ctx context.Context, in *os.File) <-chan byte {
	c := make(chan byte)
	go func() {
		defer close(c)
		buf := make([]byte, 1)
		for {
			if n, err := in.Read(buf); n == 0 || err != nil {
				return
			}
			select {
			case c <- buf[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	return c
}

func (s *screen) loop(ctx context.Context, typed <-chan byte) error {
	tick := time.NewTicker(s.o.Interval)
	defer tick.Stop()
	for {
		if err := s.draw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key, ok := <-typed:
			if !ok || s.press(key) {
				return nil
			}
		case <-tick.C:
			if err := s.next(ctx); err != nil {
				return err
			}
		}
	}
}

// press does what a key is for, and reports whether that is to quit.
func (s *screen) press(key byte) (quit bool) {
	const interrupt, endOfText = 3, 4 // ctrl-C, ctrl-D
	switch key {
	case 'q', 'Q', interrupt, endOfText:
		return true
	case 'p', 'P':
		s.paused = !s.paused
	case 's', 'S':
		s.by = (s.by + 1) % numOrders
	}
	return false
}

// next asks anew. After ctx has ended it is no error that nobody answers.
func (s *screen) next(ctx context.Context) error {
	if s.paused {
		return nil
	}
	now, err := s.o.ask(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	s.report, s.last = between(s.last, now), now
	return nil
}

// draw fills the screen by one write.
func (s *screen) draw() error {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width == 0 || height == 0 {
		width, height = 80, 24
	}
	lines := view(s.report, s.by, width)
	pause := "pause"
	if s.paused {
		pause = "paused, p goes on"
	}
	lines = lines[:min(len(lines), max(height-2, 1))]
	lines = append(lines, line{}, line{{"q quit   p " + pause + "   s sorted by " + orderNames[s.by], dim}})
	var b strings.Builder
	b.WriteString(home)
	for i, l := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l.render(width, !s.o.NoColor) + clearLine)
	}
	b.WriteString(clearRest)
	_, err = s.out.WriteString(b.String())
	return err
}
