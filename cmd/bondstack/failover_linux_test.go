package main

import (
	"testing"

	"bondstack/link/linktest"
)

// The kernel's curl downloads 100 MB that the bonded stack serves, while the
// active link is cut and restored 10 times, and the kernel's ping runs beside
// it. A cut is at the far side, so the near interface loses its carrier.
func TestDownloadWhileLinksAreCut(t *testing.T) {
	const (
		size = 100 << 20
		cuts = 10
		part = size / (cuts + 1)
	)
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	dir, sum := writeRandom(t, size)
	i := l.run("--slave", "s0", "--slave", "s1", "--mode", "active-backup", "--serve", "http:80="+dir)
	i.await("both slaves up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	p := l.ping("10.9.0.2")
	d := l.curl("http://10.9.0.2/file")
	d.take(part / 2)

	var at []int // the last reply before each cut
	for range cuts {
		active := i.status().ActiveSlave
		at = append(at, p.at())
		l.far.Down(peer(active))
		d.take(part) // flows again by the other link
		i.await("the other slave is active", func(st instanceStatus) bool { return st.ActiveSlave != active })
		p.awaitReplies(5)
		l.far.Up(peer(active))
		i.await("both slaves up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	}
	d.finish(sum)
	lost, duplicates := p.stop()

	perCut := make([]int, cuts)
	for _, n := range lost {
		k := 0
		for k+1 < cuts && n >= at[k+1] {
			k++
		}
		perCut[k]++
	}
	t.Logf("replies lost in each cut: %v of %d; duplicates: %d", perCut, p.last, duplicates)
	for k, n := range perCut {
		if n > 1 {
			t.Errorf("cut %d lost %d replies, want at most 1", k+1, n)
		}
	}
	if duplicates != 0 {
		t.Errorf("%d duplicate replies", duplicates)
	}
	st := i.status()
	var failures uint32
	for _, s := range st.Slaves {
		failures += s.LinkFailureCount
	}
	if failures != cuts {
		t.Errorf("the slaves count %d failures, want %d", failures, cuts)
	}
	t.Logf("drops: %v", st.Counters.Drops)
}
