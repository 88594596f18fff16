package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/benchhtml"
)

// The page has the rounds of both, by slave, and the failovers of the links that were
// cut.
func TestBenchPage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.html")
	r := runWith("", "bench", "--rounds", "1", "--duration", "50ms", "--html", file)
	r.check(t, "bench --html", exitOK, "active-backup", "links are cut")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"active-backup: rounds", "active-backup: failover", "eth0 → eth1 (carrier)", "eth1 → eth0 (carrier)", "bond / bare", `class="down"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// A storm has its rounds on the page.
func TestBenchPageOfAStorm(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.html")
	r := runWith("", "bench", "--storm", "--rounds", "1", "--duration", "50ms", "--html", file)
	r.check(t, "bench --storm --html", exitOK, "storm/calm", "round 1 of 1")
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "active-backup: storm") || !strings.Contains(string(text), "storm / calm") {
		t.Errorf("the page: %v, %d bytes", err, len(text))
	}
}

func TestBenchPageFaults(t *testing.T) {
	t.Parallel()
	runWith("", "bench", "--html", "/no/such/folder/page.html").check(t, "no folder", exitUsage, "", "--html: open /no/such/folder/page.html")
	runWith("", "bench", "--compare", "lock", "--html", "x").check(t, "compare", exitUsage, "", "--html is not with --compare")
}

// What was carried is what the timeline shows: rates times times are the bytes that
// the slaves count.
func TestRecorder(t *testing.T) {
	t.Parallel()
	mode := bonding.BalanceRR
	s := benchSettings{Links: 2, Streams: 1, GSO: true, page: &benchhtml.Page{}}
	r, err := s.newRig(&mode)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	rec := s.record("title", "text", 10*time.Millisecond, r.bond)
	var before, after []uint64
	_, err = r.round(1, 400*time.Millisecond, rec.during("bond", r, func(on bool) {
		if on {
			before = rec.read(r)
		} else {
			after = rec.read(r)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	seg := rec.timeline.Segments[0]
	if len(rec.timeline.Segments) != 1 || len(seg.Times) < 2 || len(seg.Bits) != len(seg.Times) {
		t.Fatalf("segments: %+v", rec.timeline.Segments)
	}
	for i := range before {
		sum, at := 0.0, 0.0
		for n, end := range seg.Times {
			sum += seg.Bits[n][i] * (end - at) / 8
			at = end
		}
		// Counters go on between the readings of the test and the recorder's.
		if most := float64(after[i]); sum > most || sum == 0 {
			t.Errorf("slave %d: the timeline has %.0f bytes, the slave sent %d to %d", i, sum, before[i], after[i])
		}
	}
	if rec.offset != seg.Times[len(seg.Times)-1] {
		t.Errorf("the next segment begins at %v s, want %v", rec.offset, seg.Times[len(seg.Times)-1])
	}
}

func TestGrown(t *testing.T) {
	if grown(7, 5) != 2 || grown(3, 5) != 3 || grown(5, 5) != 0 {
		t.Error("a counter that has begun again is not counted from 0")
	}
}
