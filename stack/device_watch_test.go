package stack_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"

	"bondstack/link"
	"bondstack/stack"
)

// events returns the events that are there, as lines.
func events(w *stack.DeviceWatch) (list []string) {
	for {
		e, ok := next(w)
		if !ok {
			return list
		}
		list = append(list, fmt.Sprintf("%d: %s", e.Version, e))
	}
}

// Every kind of event, in order; what changes nothing tells nothing.
func TestDeviceEvents(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{Stack: newNetstack(t)})
	w := d.Watch(100)
	ep := newRecorder()
	index := mustAdd(t, d, stack.NewDevice{Name: "a", Link: ep})
	d.Rename(index, "b")
	d.Rename(index, "b")
	d.AddAltName(index, "alias")
	d.DeleteAltName(index, "alias")
	d.SetUp(index, true)
	d.SetUp(index, false)
	d.SetUp(index, true)
	ep.SetState(link.State{Up: true})
	ep.SetState(link.State{Up: true})
	ep.SetState(link.State{Up: true, Carrier: true})
	if err := d.SetMTU(index, 1400); err != nil {
		t.Error(err)
	}
	d.SetMTU(index, 1400)
	if err := d.SetMTU(index, 1); err == nil || !strings.Contains(err.Error(), "allowed are 68 to 65521") {
		t.Errorf("SetMTU(1) = %v", err)
	}
	if err := d.SetAddress(index, "\x02\x00\x00\x00\x00\x09"); err != nil {
		t.Error(err)
	}
	d.Delete(index)
	ep.SetState(link.State{}) // of no device any more
	want := []string{
		"1: a (index 1) added",
		"2: b (index 1) renamed, was a",
		"3: b (index 1) altnames",
		"4: b (index 1) altnames",
		"5: b (index 1) down",
		"6: b (index 1) up",
		"6: b (index 1) state: carrier off",
		"6: b (index 1) state: carrier on",
		"6: b (index 1) mtu 1400",
		"6: b (index 1) address 02:00:00:00:00:09",
		"7: b (index 1) deleted",
	}
	if got := events(w); !slices.Equal(got, want) {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	mustBe(t, d.SetMTU(index, 1500), stack.ErrNoDevice)
	mustBe(t, d.SetAddress(index, "\x02\x00\x00\x00\x00\x09"), stack.ErrNoDevice)
}

// A watch that is not read loses events, says how many in their place, and
// holds nobody up.
func TestWatchLoses(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{})
	mustAdd(t, d, stack.NewDevice{Name: "before"})
	w := d.Watch(2)
	if w.Table().Version() != 1 {
		t.Errorf("the watch begins at version %d", w.Table().Version())
	}
	for range 5 {
		mustAdd(t, d, stack.NewDevice{Name: "t%d"})
	}
	want := []string{"2: t0 (index 2) added", "3: t1 (index 3) added", "6: 3 events lost"}
	if got := events(w); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	mustAdd(t, d, stack.NewDevice{Name: "t%d"})
	if got := events(w); !slices.Equal(got, []string{"7: t5 (index 7) added"}) {
		t.Errorf("events %q", got)
	}
	w.Close()
	w.Close()
	mustAdd(t, d, stack.NewDevice{Name: "t%d"})
	if _, err := w.Next(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Next on a closed watch = %v", err)
	}
	d.Close()
	d.Close()
	if _, err := d.Watch(1).Next(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Next on a watch of a closed table = %v", err)
	}
}

// Between a loss and its being told nothing is queued: what came after the loss
// would be taken for what came before.
func TestWatchLosesInOrder(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{})
	w := d.Watch(2)
	for range 3 {
		mustAdd(t, d, stack.NewDevice{Name: "t%d"})
	}
	first, _ := next(w)
	mustAdd(t, d, stack.NewDevice{Name: "t%d"}) // there is room for it, but the third is lost
	got := append([]string{first.Device.Name()}, events(w)...)
	if want := []string{"t0", "2: t1 (index 2) added", "4: 2 events lost"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// Who has an event finds it in the table.
func TestEventAfterTable(t *testing.T) {
	d := stack.NewDevices(stack.DevicesOptions{})
	w := d.Watch(10_000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			e, err := w.Next(context.Background())
			if err != nil {
				return
			}
			if v := d.Table().Version(); v < e.Version {
				t.Errorf("event of version %d, the table has %d", e.Version, v)
			}
		}
	}()
	index := mustAdd(t, d, stack.NewDevice{Name: "a"})
	for i := range 3000 {
		if err := d.Rename(index, fmt.Sprint("b", i)); err != nil {
			t.Fatal(err)
		}
	}
	d.Close()
	<-done
}

// A reader that waits is woken by an event, and by the end.
func TestWatchWaits(t *testing.T) {
	d := stack.NewDevices(stack.DevicesOptions{})
	w := d.Watch(1)
	got := make(chan error)
	go func() {
		for range 3 {
			_, err := w.Next(context.Background())
			got <- err
		}
	}()
	mustAdd(t, d, stack.NewDevice{Name: "a"})
	if err := <-got; err != nil {
		t.Error(err)
	}
	d.Close()
	if err := <-got; err != nil { // the deletion
		t.Error(err)
	}
	if err := <-got; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Next at the end = %v", err)
	}
}

// A guard hears of each change before it is seen, and in reverse when a later
// guard refuses.
func TestGuards(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{})
	w := d.Watch(10)
	var log []string
	first := &scriptedGuard{name: "first", log: &log, d: d}
	second := &scriptedGuard{name: "second", log: &log, d: d}
	d.AddGuard(first)
	remove := d.AddGuard(second)
	index := mustAdd(t, d, stack.NewDevice{Name: "a"})
	second.refuse = "b"
	err := d.Rename(index, "b")
	mustBe(t, err, stack.ErrVetoed)
	mustBe(t, err, errRefused)
	if dev, ok := d.ByName("a"); !ok || dev.Index() != index {
		t.Error("the old name is not restored")
	}
	_, err = d.AddAll([]stack.NewDevice{{Name: "x"}, {Name: "b"}})
	mustBe(t, err, stack.ErrVetoed)
	remove()
	if err := d.Rename(index, "b"); err != nil {
		t.Error(err)
	}
	want := []string{
		"first added a, seen: false", "second added a, seen: false",
		"first renamed b, seen: false", "second renamed b, seen: false", "first undo renamed b",
		"first added x, seen: false", "second added x, seen: false", "first added b, seen: false", "second added b, seen: false",
		"first undo added b", "second undo added x", "first undo added x",
		"first renamed b, seen: false",
	}
	if !slices.Equal(log, want) {
		t.Errorf("guards:\n%s\nwant:\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
	}
	if got := events(w); len(got) != 2 {
		t.Errorf("events %q", got)
	}
}

type scriptedGuard struct {
	name, refuse string
	log          *[]string
	d            *stack.Devices
}

func (g *scriptedGuard) Approve(c stack.DeviceChange) error {
	_, seen := g.d.ByName(c.New.Name())
	*g.log = append(*g.log, fmt.Sprintf("%s %s %s, seen: %v", g.name, c.Kind, c.New.Name(), seen))
	if c.New.Name() == g.refuse {
		return errRefused
	}
	return nil
}

func (g *scriptedGuard) Undo(c stack.DeviceChange) {
	*g.log = append(*g.log, fmt.Sprintf("%s undo %s %s", g.name, c.Kind, c.New.Name()))
}

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, strings.TrimSpace(string(b)))
	return len(b), nil
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	return list
}

func newLogger(l *lines) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// Changes are logged at a limited rate, and none is lost from the count.
func TestDeviceLog(t *testing.T) {
	var out lines
	clock := faketime.NewManualClock()
	d := stack.NewDevices(stack.DevicesOptions{Logger: newLogger(&out), LogRate: 4, Clock: clock})
	index := mustAdd(t, d, stack.NewDevice{Name: "a"})
	d.Rename(index, "a") // nothing
	for i := range 1000 {
		if err := d.Rename(index, fmt.Sprint("b", i)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"level=INFO msg=\"devices added\" count=1 names=[a]",
		"level=INFO msg=\"devices renamed\" count=1 index=1 from=a to=b0",
		"level=INFO msg=\"devices renamed\" count=1 index=1 from=b0 to=b1",
		"level=INFO msg=\"devices renamed\" count=1 index=1 from=b1 to=b2",
	}
	if got := out.take(); !slices.Equal(got, want) {
		t.Errorf("logged:\n%s", strings.Join(got, "\n"))
	}
	clock.Advance(time.Second)
	if got := out.take(); len(got) != 1 || !strings.HasSuffix(got[0], "held_back=997") {
		t.Errorf("logged after a while: %q", got)
	}
	clock.Advance(10 * time.Second)
	d.Rename(index, "c")
	d.AddAltName(index, "alias")
	d.DeleteAll([]tcpip.NICID{index})
	if got := out.take(); len(got) != 3 {
		t.Errorf("logged: %q", got)
	}
	for range 6 {
		mustAdd(t, d, stack.NewDevice{Name: "t%d"})
	}
	out.take()
	d.Close() // says what was held back
	if got := out.take(); len(got) != 1 || !strings.HasSuffix(got[0], "held_back=5") {
		t.Errorf("logged at the end: %q", got)
	}
	clock.Advance(time.Minute)
	if got := out.take(); len(got) != 0 {
		t.Errorf("logged after the end: %q", got)
	}
}

// A handler may use the table: no lock is held.
func TestLogHandlerUsesTable(t *testing.T) {
	var d *stack.Devices
	d = stack.NewDevices(stack.DevicesOptions{LogRate: 1, Logger: slog.New(slog.NewTextHandler(writerFunc(func() {
		d.Add(stack.NewDevice{Name: "t%d"})
	}), nil))})
	defer d.Close()
	mustAdd(t, d, stack.NewDevice{Name: "a"})
	if d.Table().Len() != 2 {
		t.Errorf("%d devices", d.Table().Len())
	}
}

type writerFunc func()

func (f writerFunc) Write(b []byte) (int, error) { f(); return len(b), nil }
