package bonding

import (
	"testing"
	"time"

	"bondstack/link"
)

// sketch is a slave as choose sees it.
type sketch struct {
	link   linkState
	prio   int32
	speed  uint32
	duplex link.Duplex
	until  int  // milliseconds, for linkBack
	fresh  bool // no pass has seen it in linkBack
	lost   bool // not usable any more
}

func (k sketch) slave() *slave {
	return &slave{
		linkMachine: linkMachine{link: k.link, until: instant(1).add(time.Duration(k.until) * time.Millisecond), waited: !k.fresh},
		prio:        k.prio,
		state:       link.State{Up: true, Carrier: !k.lost, Speed: k.speed, Duplex: k.duplex},
	}
}

const none = -1

// The rules of choosing the active slave, one by one. Slaves are indexes; none
// is no slave.
func TestChoose(t *testing.T) {
	up, down := sketch{link: linkUp}, sketch{link: linkDown}
	prio := func(n int32) sketch { return sketch{link: linkUp, prio: n} }
	speed := func(n uint32, d link.Duplex) sketch { return sketch{link: linkUp, speed: n, duplex: d} }
	for _, tt := range []struct {
		about           string
		slaves          []sketch
		active, primary int
		reselect        PrimaryReselect
		takeOver        bool
		want            int
		used            bool
	}{
		{"nobody", nil, none, none, 0, false, none, false},
		{"all down", []sketch{down, down}, none, none, 0, false, none, false},
		{"all down, primary too", []sketch{down, down}, 0, 1, 0, true, none, false},
		{"first of equals", []sketch{up, up}, none, none, 0, false, 0, false},
		{"first that is up", []sketch{down, up, up}, none, none, 0, false, 1, false},
		{"in downdelay is not up", []sketch{{link: linkFail}, up}, 0, none, 0, false, 1, false},

		{"the first stands in for a primary", []sketch{up, up}, 1, none, ReselectAlways, false, 0, false},
		{"but not with better, of equal speed", []sketch{up, up}, 1, none, ReselectBetter, false, 1, false},
		{"nor with failure", []sketch{up, up}, 1, none, ReselectFailure, false, 1, false},
		{"nor where it is active", []sketch{up, up}, 0, none, ReselectAlways, false, 0, false},

		{"greatest priority", []sketch{prio(1), prio(3), prio(2)}, none, none, 0, false, 1, false},
		{"greatest priority, first of equals", []sketch{prio(1), prio(3), prio(3)}, none, none, 0, false, 1, false},
		{"negative priorities", []sketch{prio(-5), prio(-50)}, none, none, 0, false, 0, false},
		{"greatest priority preempts", []sketch{prio(1), prio(3)}, 0, none, ReselectAlways, false, 1, false},
		{"greatest priority does not preempt", []sketch{prio(1), prio(3)}, 0, none, ReselectFailure, false, 0, false},
		{"greatest priority after a failure", []sketch{{link: linkDown, prio: 9}, prio(1), prio(3)}, 0, none, ReselectFailure, false, 2, false},

		{"primary", []sketch{up, up}, none, 1, 0, false, 1, false},
		{"primary before priority", []sketch{prio(9), up}, 0, 1, 0, false, 1, false},
		{"primary is down", []sketch{up, down, prio(1)}, none, 1, 0, false, 2, false},
		{"primary is in updelay", []sketch{up, {link: linkBack}}, 0, 1, 0, false, 0, false},
		{"primary, failure", []sketch{up, up}, 0, 1, ReselectFailure, false, 0, false},
		{"primary, failure, active is down", []sketch{down, up, prio(5)}, 0, 1, ReselectFailure, false, 1, false},
		{"primary, failure, set anew", []sketch{up, up}, 0, 1, ReselectFailure, true, 1, true},
		{"primary, better, set anew", []sketch{speed(100, 1), speed(10, 0)}, 0, 1, ReselectBetter, true, 1, true},
		{"primary set anew, but down", []sketch{up, down}, 0, 1, ReselectFailure, true, 0, false},

		{"better: faster", []sketch{speed(100, 1), speed(1000, 1)}, 0, 1, ReselectBetter, false, 1, false},
		{"better: slower", []sketch{speed(1000, 1), speed(100, 1)}, 0, 1, ReselectBetter, false, 0, false},
		{"better: slower, more duplex", []sketch{speed(1000, 0), speed(100, 1)}, 0, 1, ReselectBetter, false, 0, false},
		{"better: equal", []sketch{speed(100, 1), speed(100, 1)}, 0, 1, ReselectBetter, false, 0, false},
		{"better: full beats half", []sketch{speed(100, 0), speed(100, 1)}, 0, 1, ReselectBetter, false, 1, false},
		{"better: half does not beat full", []sketch{speed(100, 1), speed(100, 0)}, 0, 1, ReselectBetter, false, 0, false},
		{"better: unknown duplex beats full", []sketch{speed(100, 1), speed(100, 255)}, 0, 1, ReselectBetter, false, 1, false},
		{"better: unknown speed beats all", []sketch{speed(400000, 1), speed(link.SpeedUnknown, 0)}, 0, 1, ReselectBetter, false, 1, false},
		{"better: active of unknown speed", []sketch{speed(link.SpeedUnknown, 255), speed(400000, 1)}, 0, 1, ReselectBetter, false, 0, false},
		{"better: active is down", []sketch{down, speed(10, 0)}, 0, 1, ReselectBetter, false, 1, false},

		{"nobody up, one on its way", []sketch{down, {link: linkBack, until: 9}}, 0, none, 0, false, 1, false},
		{"nobody up, the one that waited longest", []sketch{{link: linkBack, until: 9}, {link: linkBack, until: 5}}, none, none, 0, false, 1, false},
		{"nobody up, the first of equals", []sketch{down, {link: linkBack, until: 5}, {link: linkBack, until: 5}}, none, none, 0, false, 1, false},
		{"nobody up, one just enslaved", []sketch{down, {link: linkBack, until: 5, fresh: true}}, none, none, 0, false, none, false},
		{"nobody up, one on its way and lost", []sketch{down, {link: linkBack, until: 5, lost: true}}, none, none, 0, false, none, false},
		{"one up comes before one on its way", []sketch{{link: linkBack, until: 1}, up}, none, none, 0, false, 1, false},
	} {
		slaves := make([]*slave, len(tt.slaves))
		for i, k := range tt.slaves {
			slaves[i] = k.slave()
		}
		at := func(i int) *slave {
			if i == none {
				return nil
			}
			return slaves[i]
		}
		got, used := choose(slaves, at(tt.active), at(tt.primary), tt.reselect, tt.takeOver)
		if got != at(tt.want) || used != tt.used {
			t.Errorf("%s: choose() = %s, %t, want %d, %t", tt.about, indexOf(slaves, got), used, tt.want, tt.used)
		}
	}
}

func indexOf(slaves []*slave, s *slave) string {
	for i, other := range slaves {
		if other == s {
			return string(rune('0' + i))
		}
	}
	return "none"
}
