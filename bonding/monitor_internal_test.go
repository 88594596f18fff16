package bonding

import (
	"math/rand/v2"
	"testing"
	"time"
)

// ticks is the MII monitor as Linux has it, with counters that passes count
// down: the slow and obvious version of linkMachine.
type ticks struct {
	link  linkState
	delay int
}

func (m *ticks) pass(usable bool, updelay, downdelay int, ignore *bool) {
	if m.link == linkUp && !usable {
		m.link, m.delay = linkFail, downdelay
	}
	if m.link == linkDown && usable {
		m.link, m.delay = linkBack, updelay
	}
	switch {
	case m.link == linkFail && usable:
		m.link = linkUp
	case m.link == linkFail && m.delay <= 0:
		m.link = linkDown
	case m.link == linkFail:
		m.delay--
	case m.link == linkBack && !usable:
		m.link = linkDown
	case m.link == linkBack && (*ignore || m.delay <= 0):
		if *ignore {
			*ignore = false
		}
		m.link = linkUp
	case m.link == linkBack:
		m.delay--
	}
}

// Where passes alone find changes, delays that end at a moment are Linux's
// counts of passes.
func TestInspectAgainstTicks(t *testing.T) {
	const miimon = 10 * time.Millisecond
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		updelay, downdelay := rnd.IntN(5), rnd.IntN(5)
		stay := rnd.Float64()
		var want ticks
		var got linkMachine
		usable := true
		for pass := range 500 {
			if rnd.Float64() > stay {
				usable = !usable
			}
			ignore := rnd.IntN(4) == 0
			in := passInput{
				now:         instant(1).add(time.Duration(pass) * miimon),
				updelay:     time.Duration(updelay) * miimon,
				downdelay:   time.Duration(downdelay) * miimon,
				ignoreDelay: ignore,
			}
			next, bypassed := got.inspect(usable, in)
			got.link = next
			left := ignore
			want.pass(usable, updelay, downdelay, &left)
			if got.link != want.link || bypassed != (ignore && !left) {
				t.Fatalf("seed %d, pass %d, updelay %d, downdelay %d, usable %t, ignore %t: link %s, bypassed %t, Linux has %s, %t",
					seed, pass, updelay, downdelay, usable, ignore, got.link, bypassed, want.link, ignore && !left)
			}
		}
	}
}

// Each arc of the machine between passes, where events find the change.
func TestInspect(t *testing.T) {
	const up, down = 30 * time.Millisecond, 20 * time.Millisecond
	at := func(ms int) instant { return instant(1).add(time.Duration(ms) * time.Millisecond) }
	for _, tt := range []struct {
		about  string
		is     linkMachine
		now    int
		usable bool
		ignore bool
		want   linkState
		until  instant
	}{
		{"up stays", linkMachine{link: linkUp}, 5, true, false, linkUp, 0},
		{"up is lost", linkMachine{link: linkUp}, 5, false, false, linkFail, at(25)},
		{"lost, not yet down", linkMachine{link: linkFail, until: at(25)}, 24, false, false, linkFail, at(25)},
		{"lost and down", linkMachine{link: linkFail, until: at(25)}, 25, false, false, linkDown, at(25)},
		{"a glitch", linkMachine{link: linkFail, until: at(25)}, 24, true, false, linkUp, at(25)},
		{"a glitch that ends with the delay", linkMachine{link: linkFail, until: at(25)}, 25, true, false, linkUp, at(25)},
		{"down stays", linkMachine{link: linkDown}, 5, false, true, linkDown, 0},
		{"down comes back", linkMachine{link: linkDown}, 5, true, false, linkBack, at(35)},
		{"down comes back at once", linkMachine{link: linkDown}, 5, true, true, linkUp, at(35)},
		{"back, not yet up", linkMachine{link: linkBack, until: at(35)}, 34, true, false, linkBack, at(35)},
		{"back and up", linkMachine{link: linkBack, until: at(35)}, 35, true, false, linkUp, at(35)},
		{"back is lost", linkMachine{link: linkBack, until: at(35)}, 34, false, false, linkDown, at(35)},
		{"back is lost, bypass or not", linkMachine{link: linkBack, until: at(35)}, 34, false, true, linkDown, at(35)},
		{"back is hurried", linkMachine{link: linkBack, until: at(35)}, 6, true, true, linkUp, at(35)},
	} {
		m := tt.is
		next, bypassed := m.inspect(tt.usable, passInput{now: at(tt.now), updelay: up, downdelay: down, ignoreDelay: tt.ignore})
		if next != tt.want || m.until != tt.until || bypassed != (tt.ignore && next == linkUp) {
			t.Errorf("%s: %s until %d, bypassed %t, want %s until %d", tt.about, next, m.until, bypassed, tt.want, tt.until)
		}
	}
}
