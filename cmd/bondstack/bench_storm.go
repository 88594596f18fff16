package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"bondstack/bonding"
)

// stormEvery is the time from one release of the storm's slave to the next.
const stormEvery = time.Millisecond

// stormResult is what one mode carried while its slaves stood still, and while
// the last of them was released and enslaved again all the time.
type stormResult struct {
	Mode       bonding.Mode `json:"mode"`
	Links      int          `json:"links"`
	Streams    int          `json:"streams"`
	CalmGbps   []float64    `json:"calm_gbps"`
	StormGbps  []float64    `json:"storm_gbps"`
	Ratio      *spreadOf    `json:"ratio"`
	PerCPU     *spreadOf    `json:"ratio_per_cpu"`
	ChangesPer []float64    `json:"changes_per_s"` // a release and an enslaving is one
}

// storm is the coming and going of a rig's last slave at the sending end. Its
// wire stays in the bond of the receiving end, so that what was sent arrives.
type storm struct {
	rig     *rig
	stop    chan struct{}
	done    chan error
	began   time.Time
	changes int
}

// startStorm begins a storm.
func startStorm(r *rig) *storm {
	s := &storm{rig: r, stop: make(chan struct{}), done: make(chan error, 1), began: time.Now()}
	go func() { s.done <- s.run() }()
	return s
}

// run makes up for a change that came late: each has its moment.
func (s *storm) run() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next := s.began; ; next = next.Add(stormEvery) {
		if wait := time.Until(next); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-s.stop:
				return nil
			}
		}
		select {
		case <-s.stop:
			return nil
		default:
		}
		if err := s.rig.bond.Release(s.rig.lastName); err != nil {
			return err
		}
		if err := s.rig.bond.Enslave(s.rig.lastName, s.rig.last, bonding.SlaveOptions{}); err != nil {
			return err
		}
		s.changes++
	}
}

// end ends the storm with the slave in place, and returns the changes a second.
func (s *storm) end() (float64, error) {
	close(s.stop)
	err := <-s.done
	return float64(s.changes) / time.Since(s.began).Seconds(), err
}

// roundInStorm is a round in whose timed part the last slave comes and goes.
func (r *rig) roundInStorm(streams int, d time.Duration, measured func(bool)) (bits, changes float64, err error) {
	var s *storm
	var stormErr error
	bits, err = r.round(streams, d, func(on bool) {
		if on {
			s = startStorm(r)
			measured(true)
			return
		}
		measured(false)
		changes, stormErr = s.end()
	})
	if err == nil {
		err = stormErr
	}
	return bits, changes, err
}

// runStorm measures every mode: calm and storm in turn on one rig.
func (s *benchSettings) runStorm(d time.Duration, p *progress) ([]stormResult, error) {
	results := []stormResult{}
	for _, m := range s.modes {
		r, err := s.measureStorm(m, d, p)
		if err != nil {
			return nil, fmt.Errorf("mode %s: %w", m, err)
		}
		results = append(results, r)
	}
	return results, nil
}

func (s *benchSettings) measureStorm(mode bonding.Mode, d time.Duration, p *progress) (stormResult, error) {
	res := stormResult{Mode: mode, Links: s.Links, Streams: s.Streams}
	r, err := s.newRig(&mode)
	if err != nil {
		return res, err
	}
	defer r.close()
	s.InForce = inForceOf(r)
	rec := s.record(mode.String()+": storm", fmt.Sprintf("Rounds in which all slaves stand still, and in which %s is released and enslaved again 1,000 times a second.", r.lastName), recordEvery, r.bond)
	calm := func() (pace, error) {
		bits, err := r.round(s.Streams, d, rec.during("calm", r, func(bool) {}))
		return pace{bits, r.perCPU}, err
	}
	stormy := func() (pace, error) {
		bits, changes, err := r.roundInStorm(s.Streams, d, rec.during("storm", r, func(bool) {}))
		res.ChangesPer = append(res.ChangesPer, round3(changes))
		return pace{bits, r.perCPU}, err
	}
	var t turns
	t, err = s.inTurn(p, mode.String(), calm, stormy)
	s.keep(rec)
	res.CalmGbps, res.StormGbps, res.Ratio, res.PerCPU = t.first, t.second, t.ratio, t.perCPU
	return res, err
}

// pace is what a round carried: bits a second, and bits in each second of CPU
// time.
type pace struct{ bits, perCPU float64 }

// turns are the rounds of two things that are compared: the Gbit/s of each, and
// those of the second in relation to the first's.
type turns struct {
	first, second []float64
	ratio, perCPU *spreadOf
}

// inTurn runs the rounds; who is first changes from one to the next.
func (s *benchSettings) inTurn(p *progress, what string, first, second func() (pace, error)) (t turns, err error) {
	var ratios, perCPU []float64
	run := [2]func() (pace, error){first, second}
	for i := range s.Rounds {
		p.step("%s: round %d of %d", what, i+1, s.Rounds)
		var got [2]pace
		for k := range run {
			k = (k + i) % 2
			if got[k], err = run[k](); err != nil {
				return t, err
			}
		}
		t.first, t.second = append(t.first, round3(got[0].bits/1e9)), append(t.second, round3(got[1].bits/1e9))
		if got[0].bits > 0 {
			ratios = append(ratios, got[1].bits/got[0].bits)
		}
		if got[0].perCPU > 0 {
			perCPU = append(perCPU, got[1].perCPU/got[0].perCPU)
		}
	}
	t.ratio, t.perCPU = spread(ratios), spread(perCPU)
	return t, nil
}

// printStorm writes the results for people or for programs.
func (s *benchSettings) printStorm(w io.Writer, results []stormResult, asJSON bool) error {
	if asJSON {
		return writeJSON(w, struct {
			Settings *benchSettings `json:"settings"`
			Results  []stormResult  `json:"results"`
		}{s, results})
	}
	var b strings.Builder
	s.printHead(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "mode\tcalm Gbit/s\tstorm Gbit/s\tstorm/calm (min..max)\tper CPU\tchanges a second")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Mode, median(r.CalmGbps), median(r.StormGbps), r.Ratio, r.PerCPU, medianOf(r.ChangesPer, "%.0f"))
	}
	t.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
