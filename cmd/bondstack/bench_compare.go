package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"bondstack/bonding"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// comparison is `bench --compare lock`: the bond as it is, and the same bond with
// its snapshot behind a read-write mutex.
type comparison struct {
	Settings *benchSettings `json:"settings"`
	Compare  string         `json:"compare"`
	Results  []lockResult   `json:"results"`
	Calls    []callResult   `json:"calls"`
}

// lockResult is what both carried in one mode.
type lockResult struct {
	Mode         bonding.Mode `json:"mode"`
	Streams      int          `json:"streams"`
	Storm        bool         `json:"storm"` // a slave comes and goes all the while
	LockGbps     []float64    `json:"rwmutex_gbps"`
	SnapshotGbps []float64    `json:"snapshot_gbps"`
	Ratio        *spreadOf    `json:"ratio"` // snapshot / rwmutex
	PerCPU       *spreadOf    `json:"ratio_per_cpu"`
	// CPU is the share of CPU samples in the bond's functions, and in the
	// functions for locks and counters that these call.
	LockCPU     *float64 `json:"rwmutex_cpu_percent"`
	SnapshotCPU *float64 `json:"snapshot_cpu_percent"`
}

// compareStreams are the numbers of streams that are compared.
var compareStreams = []int{1, 4, 16}

// newLocked makes the other bond.
func newLocked(o bonding.Options) (*bonding.Bond, netstack.LinkEndpoint, error) {
	l, err := bonding.NewLocked(o)
	if err != nil {
		return nil, nil, err
	}
	return l.Bond, l, nil
}

// compareLock measures every mode: calm and in a storm, with few and with many
// streams; then what a call costs.
func (s *benchSettings) compareLock(d time.Duration, p *progress) (*comparison, error) {
	c := &comparison{Settings: s, Compare: "lock"}
	for _, m := range s.modes {
		if err := s.compareMode(c, m, d, p); err != nil {
			return nil, fmt.Errorf("mode %s: %w", m, err)
		}
	}
	calls, err := s.compareCalls(s.modes, min(d, maxCallTime), p)
	c.Calls = calls
	return c, err
}

func (s *benchSettings) compareMode(c *comparison, mode bonding.Mode, d time.Duration, p *progress) error {
	locked, err := s.newRigOf(&mode, newLocked)
	if err != nil {
		return err
	}
	defer locked.close()
	plain, err := s.newRig(&mode)
	if err != nil {
		return err
	}
	defer plain.close()
	s.InForce = inForceOf(plain)
	for _, streams := range compareStreams {
		for _, storm := range []bool{false, true} {
			res, err := s.compareRigs(locked, plain, streams, storm, d, p)
			if err != nil {
				return err
			}
			res.Mode = mode
			c.Results = append(c.Results, res)
		}
	}
	return nil
}

func (s *benchSettings) compareRigs(locked, plain *rig, streams int, storm bool, d time.Duration, p *progress) (res lockResult, err error) {
	res = lockResult{Streams: streams, Storm: storm}
	var lockProf, plainProf profiler
	round := func(r *rig, prof *profiler) func() (pace, error) {
		return func() (pace, error) {
			var bits float64
			var err error
			if storm {
				bits, _, err = r.roundInStorm(streams, d, prof.measured)
			} else {
				bits, err = r.round(streams, d, prof.measured)
			}
			return pace{bits, r.perCPU}, err
		}
	}
	what := fmt.Sprintf("%d streams, %s", streams, stormWord(storm))
	t, err := s.inTurn(p, what, round(locked, &lockProf), round(plain, &plainProf))
	res.LockGbps, res.SnapshotGbps, res.Ratio, res.PerCPU = t.first, t.second, t.ratio, t.perCPU
	for _, prof := range []*profiler{&lockProf, &plainProf} {
		if err == nil {
			err = prof.err
		}
	}
	res.LockCPU, res.SnapshotCPU = lockProf.percentOf(lockProf.charged), plainProf.percentOf(plainProf.charged)
	return res, err
}

func stormWord(storm bool) string {
	if storm {
		return "storm"
	}
	return "calm"
}

// print writes the comparison for people or for programs.
func (c *comparison) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, c)
	}
	var b strings.Builder
	c.Settings.printHead(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "mode\tstreams\t\trwmutex Gbit/s\tsnapshot Gbit/s\tsnapshot/rwmutex (min..max)\tper CPU\tCPU rwmutex\tCPU snapshot")
	for _, r := range c.Results {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Mode, r.Streams, stormWord(r.Storm), median(r.LockGbps), median(r.SnapshotGbps),
			r.Ratio, r.PerCPU, percentText(r.LockCPU), percentText(r.SnapshotCPU))
	}
	fmt.Fprintln(t, "\nmode\tgoroutines\t\trwmutex ns/call\tsnapshot ns/call\trwmutex/snapshot (min..max)")
	for _, r := range c.Calls {
		fmt.Fprintf(t, "%s\t%d\t\t%s\t%s\t%s\n", r.Mode, r.Goroutines, median(r.LockNs), median(r.SnapshotNs), r.Ratio)
	}
	t.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

func percentText(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", *v)
}
