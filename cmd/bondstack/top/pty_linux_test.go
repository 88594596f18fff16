package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"bondstack/link/linktest"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal: what the program has, and what a person sees and
// types.
type terminal struct {
	t           *testing.T
	user, inner *os.File
	before      unix.Termios

	mu   sync.Mutex
	seen strings.Builder
	more chan struct{} // has something when more was seen
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	// Not blocking, so that a read of it ends when it is closed.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	user := os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 60}); err != nil {
		t.Fatal(err)
	}
	m := &terminal{t: t, user: user, inner: inner, more: make(chan struct{}, 1)}
	m.before = m.termios()
	read := make(chan struct{})
	go func() { m.read(); close(read) }()
	t.Cleanup(func() { user.Close(); <-read; inner.Close() })
	return m
}

func (m *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := m.user.Read(buf)
		if err != nil {
			return
		}
		m.mu.Lock()
		m.seen.Write(buf[:n])
		m.mu.Unlock()
		select {
		case m.more <- struct{}{}:
		default:
		}
	}
}

func (m *terminal) termios() unix.Termios {
	m.t.Helper()
	s, err := unix.IoctlGetTermios(int(m.inner.Fd()), unix.TCGETS)
	if err != nil {
		m.t.Fatal(err)
	}
	return *s
}

// await waits until a text is seen, and forgets all that was seen until then.
func (m *terminal) await(text string) (seen string) {
	m.t.Helper()
	for limit := time.After(30 * time.Second); ; {
		m.mu.Lock()
		all := m.seen.String()
		at := strings.Index(all, text)
		if at >= 0 {
			rest := all[at+len(text):]
			m.seen.Reset()
			m.seen.WriteString(rest)
		}
		m.mu.Unlock()
		if at >= 0 {
			return all[:at+len(text)]
		}
		select {
		case <-m.more:
		case <-limit:
			m.t.Fatalf("waited in vain for %q, seen is %q", text, all)
		}
	}
}

// restored checks that the terminal is as it was, and shows its first screen.
func (m *terminal) restored() {
	m.t.Helper()
	m.await(leave)
	if now := m.termios(); now != m.before {
		m.t.Errorf("the terminal is %+v, was %+v", now, m.before)
	}
}

// launch runs the view on the terminal.
func (m *terminal) launch(ctx context.Context, o Options) <-chan error {
	o.Out, o.In = m.inner, m.inner
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	return ended
}

func TestScreen(t *testing.T) {
	linktest.CheckGoroutines(t)
	m := newTerminal(t)
	ended := m.launch(context.Background(), Options{Ask: answers(nil), Interval: 50 * time.Millisecond})
	m.await(enter)
	m.await("\x1b[1mbond0\x1b[0m")
	if now := m.termios(); now.Lflag&(unix.ICANON|unix.ECHO) != 0 {
		t.Errorf("the terminal is not raw: %+v", now)
	}
	for _, line := range strings.Split(m.await("sorted by order"), "\r\n") { // a screen of 60 columns
		for _, code := range []string{home, clearLine, clearRest, "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31;1m"} {
			line = strings.ReplaceAll(line, code, "")
		}
		if n := len([]rune(line)); n > 60 {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
	m.await("failovers 7") // the second answer
	m.user.WriteString("s")
	m.await("sorted by name")
	m.user.WriteString("p")
	m.await("paused, p goes on")
	m.user.WriteString("xq")
	if err := <-ended; err != nil {
		t.Errorf("Run() = %v", err)
	}
	m.restored()
}

// However it ends, the terminal is given back.
func TestScreenIsRestored(t *testing.T) {
	gone := errors.New("gone")
	for name, tt := range map[string]struct {
		options Options
		end     func(m *terminal, cancel func())
		want    error
	}{
		"ctrl-C":       {Options{Ask: answers(nil), NoColor: true}, func(m *terminal, _ func()) { m.user.WriteString("\x03") }, nil},
		"a signal":     {Options{Ask: answers(nil), NoColor: true}, func(_ *terminal, cancel func()) { cancel() }, nil},
		"nobody there": {Options{Ask: answers(gone), NoColor: true}, func(*terminal, func()) {}, gone},
	} {
		t.Run(name, func(t *testing.T) {
			linktest.CheckGoroutines(t)
			m := newTerminal(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			tt.options.Interval = 20 * time.Millisecond
			ended := m.launch(ctx, tt.options)
			m.await(enter)
			if seen := m.await("bond0"); strings.Contains(seen, "m") {
				t.Errorf("there is a colour in %q", seen)
			}
			tt.end(m, cancel)
			if err := <-ended; !errors.Is(err, tt.want) {
				t.Errorf("Run() = %v, want %v", err, tt.want)
			}
			m.restored()
		})
	}
}
