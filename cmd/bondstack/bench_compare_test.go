package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"github.com/google/pprof/profile"
)

// Every mode is measured calm and in a storm in which slaves do come and go.
func TestBenchStorm(t *testing.T) {
	linktest.CheckGoroutines(t)
	r := runWith("", "bench", "--storm", "--mode", "all", "--rounds", "2", "--duration", "40ms", "--streams", "2", "--json")
	r.check(t, "bench --storm", exitOK, `"storm_gbps"`, "round 2 of 2")
	var got struct {
		Settings map[string]any
		Results  []stormResult
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != len(bonding.AvailableModes()) {
		t.Fatalf("%d modes", len(got.Results))
	}
	for _, res := range got.Results {
		if len(res.CalmGbps) != 2 || len(res.StormGbps) != 2 || len(res.ChangesPer) != 2 || res.ChangesPer[0]+res.ChangesPer[1] <= 0 || res.Links != 3 {
			t.Errorf("%+v", res)
		}
	}
	var text strings.Builder
	if err := (&benchSettings{InForce: inForce{}}).printStorm(&text, got.Results, false); err != nil || !strings.Contains(text.String(), "storm/calm") {
		t.Errorf("the text is %v\n%s", err, &text)
	}
}

func TestBenchCompare(t *testing.T) {
	linktest.CheckGoroutines(t)
	r := runWith("", "bench", "--compare", "lock", "--mode", "balance-xor", "--rounds", "1", "--duration", "10ms", "--json")
	r.check(t, "bench --compare", exitOK, `"compare": "lock"`, "16 streams, storm")
	var got comparison
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, res := range got.Results {
		seen = append(seen, fmt.Sprint(res.Streams, res.Storm))
		if len(res.LockGbps) != 1 || len(res.SnapshotGbps) != 1 {
			t.Errorf("%+v", res)
		}
	}
	if s := fmt.Sprint(seen); s != "[1 false 1 true 4 false 4 true 16 false 16 true]" {
		t.Errorf("compared %s", s)
	}
	if len(got.Calls) != len(callers) {
		t.Fatalf("%d numbers of goroutines", len(got.Calls))
	}
	for i, c := range got.Calls {
		if c.Goroutines != callers[i] || c.Ratio == nil || c.LockNs[0] <= 0 || c.SnapshotNs[0] <= 0 {
			t.Errorf("%+v", c)
		}
	}
	var text strings.Builder
	got.Settings = &benchSettings{InForce: inForce{}}
	if err := got.print(&text, false); err != nil || !strings.Contains(text.String(), "snapshot/rwmutex") || !strings.Contains(text.String(), "rwmutex ns/call") {
		t.Errorf("the text is %v\n%s", err, &text)
	}
}

// The bond's first link has no GSO, so it is the bond that cuts.
func TestBenchCompareGSO(t *testing.T) {
	linktest.CheckGoroutines(t)
	// Long enough that a busy machine carries something.
	r := runWith("", "bench", "--compare", "gso", "--rounds", "1", "--duration", "400ms", "--json")
	r.check(t, "bench --compare gso", exitOK, `"compare": "gso"`, "round 1 of 1")
	var got gsoComparison
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != 1 || len(got.Results[0].BondGbps) != 1 || len(got.Results[0].GVisorGbps) != 1 || got.Results[0].BondGbps[0] <= 0 {
		t.Errorf("%+v", got.Results)
	}
	var text strings.Builder
	got.Settings = &benchSettings{InForce: inForce{}}
	if err := got.print(&text, false); err != nil || !strings.Contains(text.String(), "bond/gVisor") {
		t.Errorf("the text is %v\n%s", err, &text)
	}
}

// A sample counts for who called the lock, and as the bond's own only where the
// bond's function is the innermost.
func TestCallerOfLocks(t *testing.T) {
	stack := func(names ...string) *profile.Sample {
		s := &profile.Sample{}
		for _, n := range names {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: n}}}})
		}
		return s
	}
	for _, tt := range []struct {
		stack []string
		want  string
	}{
		{[]string{"bondstack/bonding.(*Bond).WritePackets", "x"}, "bondstack/bonding.(*Bond).WritePackets"},
		{[]string{"sync/atomic.(*Int64).Add", "bondstack/bonding/rcu.(*Domain).Enter"}, "bondstack/bonding/rcu.(*Domain).Enter"},
		{[]string{"runtime.semacquire1", "sync.(*RWMutex).RLock", "bondstack/bonding.(*LockedBond).look"}, "bondstack/bonding.(*LockedBond).look"},
		{[]string{"sync.(*Mutex).Lock", "other.F", "bondstack/bonding.G"}, "other.F"},
		{[]string{"runtime.mcall"}, ""},
	} {
		if got := callerOfLocks(stack(tt.stack...)); got != tt.want {
			t.Errorf("%v counts for %q, want %q", tt.stack, got, tt.want)
		}
	}
}

func TestNsOf(t *testing.T) {
	p := profiler{samples: minSamples, bonding: 20, cpu: 2 * time.Second}
	if got := p.nsOf(p.bonding, 1_000_000); got == nil || *got != 20 {
		t.Errorf("1 %% of 2 s for 1,000,000 frames: %v ns, want 20", got)
	}
	for _, p := range []profiler{{samples: minSamples - 1, cpu: 1}, {samples: minSamples}} {
		if p.nsOf(1, 1) != nil {
			t.Errorf("%+v has a time", p.samples)
		}
	}
	if p.nsOf(1, 0) != nil {
		t.Error("no frames, and a time for each")
	}
}
