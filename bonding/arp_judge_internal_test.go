package bonding

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func atMS(n int) instant { return instant(time.Duration(n) * time.Millisecond) }

// "Within k intervals" has half an interval of slack, and reaches an interval
// into what is to come.
func TestFresh(t *testing.T) {
	timing := arpTiming{now: atMS(1000), interval: 100 * time.Millisecond}
	for _, tt := range []struct {
		at   instant
		k    uint32
		want bool
	}{
		{atMS(1000), 1, true}, {atMS(850), 1, true}, {atMS(850) - 1, 1, false},
		{atMS(750), 2, true}, {atMS(750) - 1, 2, false},
		{atMS(1100), 1, true}, {atMS(1100) + 1, 1, false},
		{never, 1, false}, {never, 256, false}, {atMS(-24550), 255, true}, {atMS(-24550) - 1, 255, false},
	} {
		if got := timing.fresh(tt.at, tt.k); got != tt.want {
			t.Errorf("fresh(%v, %d) = %t", time.Duration(tt.at), tt.k, got)
		}
	}
	// The longest intervals are more than a Duration holds together.
	timing.interval = math.MaxInt32 * time.Millisecond
	for k := uint32(1); k <= 256; k++ {
		if !timing.fresh(0, k) || timing.fresh(never, k) {
			t.Errorf("with the longest interval, %d of them: now %t, never %t", k, timing.fresh(0, k), timing.fresh(never, k))
		}
	}
}

// The tables of both variants: links in every state, with evidence of every age.
func TestJudge(t *testing.T) {
	const d = 100
	timing := arpTiming{now: atMS(10000), interval: d * time.Millisecond, missedMax: 2}
	for _, link := range []linkState{linkUp, linkFail, linkDown, linkBack} {
		for _, rx := range []int{0, 1, 2, 3, 4, 5} { // intervals since the last evidence
			for _, tx := range []int{0, 3} {
				for _, grace := range []int{2, 3} { // since it is in use
					for flags := range 8 {
						backup, barred, searching := flags&1 != 0, flags&2 != 0, flags&4 != 0
						s := arpSight{link: link, backup: backup, barred: barred,
							lastRx: timing.now - atMS(rx*d), lastTx: timing.now - atMS(tx*d), lastLinkUp: timing.now - atMS(grace*d)}
						about := fmt.Sprintf("%v, heard %d, asked %d, up %d intervals ago, backup %t, barred %t, searching %t", link, rx, tx, grace, backup, barred, searching)

						want := link
						switch {
						case link != linkUp && rx <= 1 && !barred:
							want = linkUp
						case link == linkBack:
							want = linkFail
						case link != linkUp || grace <= 2:
						case backup && !searching && rx > 3, !backup && (rx > 2 || tx > 2):
							want = linkDown
						}
						if got := timing.judgeBackup(s, searching); got != want {
							t.Errorf("active-backup: %s: %v, want %v", about, got, want)
						}

						want = link
						switch {
						case link == linkUp && (rx > 2 || tx > 2):
							want = linkDown
						case link != linkUp && rx <= 1 && tx <= 1 && !barred:
							want = linkUp
						}
						if got := timing.judgeBalanced(s); got != want {
							t.Errorf("balanced: %s: %v, want %v", about, got, want)
						}
					}
				}
			}
		}
	}
}

// The search goes round, from the second slave on, and skips who is not usable.
func TestNextCandidate(t *testing.T) {
	for _, tt := range []struct {
		n, last int
		usable  []int
		want    int
	}{
		{3, -1, []int{0, 1, 2}, 1}, {3, 0, []int{0, 1, 2}, 1}, {3, 2, []int{0, 1, 2}, 0}, {3, 1, []int{0, 1}, 0},
		{3, 1, []int{1}, 1}, {1, -1, []int{0}, 0}, {3, -1, []int{0}, 0}, {3, 0, nil, -1}, {0, -1, nil, -1},
	} {
		got := nextCandidate(tt.n, tt.last, func(i int) bool {
			for _, u := range tt.usable {
				if u == i {
					return true
				}
			}
			return false
		})
		if got != tt.want {
			t.Errorf("of %d, after %d, with usable %v: %d, want %d", tt.n, tt.last, tt.usable, got, tt.want)
		}
	}
}

// any takes the least useful verdict, all the most useful; who has no opinion or
// is off does not count.
func TestCombine(t *testing.T) {
	both := monitorSet(1<<monitorMII | 1<<monitorARP)
	order := []linkState{linkDown, linkBack, linkFail, linkUp}
	for i, a := range order {
		for j, b := range order {
			v := verdicts{monitorMII: a, monitorARP: b}
			for rule, want := range map[MonitorRule]linkState{MonitorAny: order[min(i, j)], MonitorAll: order[max(i, j)], MonitorExclusive: order[min(i, j)]} {
				if got, ok := v.combine(both, rule); got != want || !ok {
					t.Errorf("%v and %v by %v: %v, %t, want %v", a, b, rule, got, ok, want)
				}
			}
			if got, ok := v.combine(1<<monitorARP, MonitorAny); got != b || !ok {
				t.Errorf("%v and %v, of which the second is on: %v", a, b, got)
			}
		}
		for _, rule := range []MonitorRule{MonitorAny, MonitorAll} {
			v := verdicts{monitorMII: noOpinion, monitorARP: a}
			if got, ok := v.combine(both, rule); got != a || !ok {
				t.Errorf("%v alone by %v: %v, %t", a, rule, got, ok)
			}
		}
	}
	v := verdicts{monitorMII: noOpinion, monitorARP: noOpinion}
	if _, ok := v.combine(both, MonitorAny); ok {
		t.Error("nobody has an opinion, and there is a verdict")
	}
	if _, ok := v.combine(0, MonitorAny); ok {
		t.Error("no monitor is on, and there is a verdict")
	}
}
