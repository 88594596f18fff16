package sandbox

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// A signal is handed on where the first process alone got it: not where this one
// tells of it as well, before or after, within the time.
func TestPairs(t *testing.T) {
	const ms = time.Millisecond
	type event struct {
		at     time.Duration
		told   bool
		signal syscall.Signal
	}
	const i, h = syscall.SIGINT, syscall.SIGHUP
	for _, c := range []struct {
		what   string
		events []event
		want   map[time.Duration][]syscall.Signal // by when they are handed on
	}{
		{"alone", []event{{0, true, i}}, map[time.Duration][]syscall.Signal{200 * ms: {i}}},
		{"alone twice", []event{{0, true, i}, {50 * ms, true, i}}, map[time.Duration][]syscall.Signal{200 * ms: {i}, 250 * ms: {i}}},
		{"this one alone", []event{{0, false, i}}, nil},
		{"both, told last", []event{{0, false, i}, {2900 * ms, true, i}}, nil},
		{"both, told first", []event{{0, true, i}, {190 * ms, false, i}}, nil},
		{"two at once", []event{{0, false, i}, {0, false, i}, {1 * ms, true, i}, {2 * ms, true, i}}, nil},
		{"different ones", []event{{0, false, i}, {1 * ms, true, h}}, map[time.Duration][]syscall.Signal{201 * ms: {h}}},
		{"group, then alone", []event{{0, false, i}, {1 * ms, true, i}, {2 * ms, true, i}}, map[time.Duration][]syscall.Signal{202 * ms: {i}}},
		{"long before", []event{{0, false, i}, {3100 * ms, true, i}}, map[time.Duration][]syscall.Signal{3300 * ms: {i}}},
	} {
		var p pairs
		start := time.Unix(1000, 0)
		handed := map[time.Duration][]syscall.Signal{}
		for at := time.Duration(0); at <= 4*time.Second; at += ms {
			now := start.Add(at)
			for _, e := range c.events {
				switch {
				case e.at != at:
				case e.told:
					p.told(e.signal, now)
				default:
					p.got(e.signal, now)
				}
			}
			alone, next := p.due(now)
			if len(alone) > 0 {
				handed[at] = alone
			}
			if next <= 0 {
				t.Fatalf("%s: at %v the next is due in %v", c.what, at, next)
			}
		}
		for at, want := range c.want {
			if !slices.Equal(handed[at], want) {
				t.Errorf("%s: at %v %v was handed on, want %v", c.what, at, handed[at], want)
			}
		}
		if len(handed) != len(c.want) {
			t.Errorf("%s: handed on %v, want %v", c.what, handed, c.want)
		}
	}
}
