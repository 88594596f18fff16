package lacptest_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"bondstack/bonding/lacp"
	"bondstack/bonding/lacp/lacptest"
)

// bonds is how many are simulated: by LACP_BONDS, or a tenth of the full size.
func bonds(t testing.TB) uint64 {
	n := uint64(100)
	if raceEnabled || testing.Short() {
		n = 20
	}
	if s := os.Getenv("LACP_BONDS"); s != "" {
		v, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			t.Fatalf("LACP_BONDS is %q, a number is allowed", s)
		}
		n = v
	}
	return n
}

// Whole bonds, both ends, ten hours each with random faults. The full size is
// LACP_BONDS=1000. LACP_SEED=N runs one again and logs its faults.
func TestSimulation(t *testing.T) {
	if s := os.Getenv("LACP_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("LACP_SEED is %q, a number is allowed", s)
		}
		r := lacptest.Simulate(seed, lacptest.Simulation{Log: func(at lacp.Instant, what string) { t.Log(at, what) }})
		t.Logf("%+v", r)
		for _, p := range r.Problems {
			t.Error(p)
		}
		return
	}
	var worst, worstFast, slowest time.Duration
	var pdus uint64
	faults := 0
	for seed := range bonds(t) {
		r := lacptest.Simulate(seed, lacptest.Simulation{})
		for _, p := range r.Problems {
			t.Errorf("seed %d (%d ports, fast %v): %s", seed, r.Ports, r.Fast, p)
		}
		if r.Fast {
			worstFast = max(worstFast, r.Worst)
		} else {
			worst = max(worst, r.Worst)
		}
		slowest = max(slowest, r.Converged)
		pdus += r.PDUs
		faults += r.Faults
	}
	t.Logf("%d bonds, %d faults, %d PDUs; converged within %v; ends disagreed for %v at most, %v where fast",
		bonds(t), faults, pdus, slowest, worst, worstFast)
}

// A seed replays exactly.
func TestSeedsReplay(t *testing.T) {
	run := func() (lacptest.Result, []string) {
		var log []string
		r := lacptest.Simulate(3, lacptest.Simulation{Faults: time.Hour, Every: time.Minute,
			Log: func(at lacp.Instant, what string) { log = append(log, at.String()+" "+what) }})
		return r, log
	}
	r1, log1 := run()
	r2, log2 := run()
	if r1.PDUs != r2.PDUs || r1.Worst != r2.Worst || r1.Converged != r2.Converged || len(log1) != len(log2) || r1.Faults == 0 {
		t.Fatalf("%+v, then %+v", r1, r2)
	}
	for i := range log1 {
		if log1[i] != log2[i] {
			t.Fatalf("%q, then %q", log1[i], log2[i])
		}
	}
}

// Faults all the time, on top of each other.
func TestStorm(t *testing.T) {
	n := uint64(60)
	if raceEnabled {
		n = 10
	}
	var worst, slowest time.Duration
	for seed := range n {
		r := lacptest.Simulate(1000+seed, lacptest.Simulation{Faults: time.Hour, Every: 20 * time.Second})
		worst, slowest = max(worst, r.Worst), max(slowest, r.Converged)
		for _, p := range r.Problems {
			t.Errorf("seed %d: %s", 1000+seed, p)
		}
	}
	t.Logf("converged within %v, ends disagreed for %v at most", slowest, worst)
}

func BenchmarkSimulate(b *testing.B) {
	b.ReportAllocs()
	var pdus uint64
	seed := uint64(0)
	for b.Loop() {
		pdus += lacptest.Simulate(seed, lacptest.Simulation{}).PDUs
		seed++
	}
	b.ReportMetric(float64(pdus)/b.Elapsed().Seconds(), "PDUs/s")
}
