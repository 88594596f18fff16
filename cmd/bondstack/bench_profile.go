package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// profiler counts CPU samples of the bond's rounds: all, and those whose
// innermost function is the bond's own. So was the share of Linux's bonding
// counted: by the function that a sample hits, not by what it calls.
type profiler struct {
	samples, bonding int64
	// charged are those of bonding, and those in a lock or a counter that the
	// bond's functions called.
	charged int64
	cpu     time.Duration // of the process, while samples were taken
	began   time.Duration
	err     error
	buf     bytes.Buffer
}

// bondingPackage is the prefix of the functions that count as the bond's.
const bondingPackage = "bondstack/bonding"

// measured starts and stops a profile. The first error is kept.
func (p *profiler) measured(on bool) {
	switch {
	case p.err != nil:
	case on:
		p.buf.Reset()
		p.err = startProfile(&p.buf)
		p.began = cpuTime()
	default:
		p.cpu += cpuTime() - p.began
		pprof.StopCPUProfile()
		p.err = p.add()
	}
}

// profileRate is how many samples a second of CPU time are asked for; the kernel
// gives as many as its clock ticks.
const profileRate = 1000

// startProfile starts a CPU profile at profileRate. pprof knows only 100 a
// second, but keeps to a rate that was set before, and has the runtime say so
// on the standard error. Where that cannot be hidden the rate is 100.
func startProfile(w io.Writer) (err error) {
	fast := quietly(func() {
		runtime.SetCPUProfileRate(profileRate)
		err = pprof.StartCPUProfile(w)
	})
	if fast {
		return err
	}
	return pprof.StartCPUProfile(w)
}

func (p *profiler) add() error {
	prof, err := profile.ParseData(p.buf.Bytes())
	if err != nil {
		return fmt.Errorf("reading the CPU profile: %w", err)
	}
	for _, s := range prof.Sample {
		p.samples += s.Value[0]
		if strings.HasPrefix(leaf(s), bondingPackage) {
			p.bonding += s.Value[0]
		}
		if strings.HasPrefix(callerOfLocks(s), bondingPackage) {
			p.charged += s.Value[0]
		}
	}
	return nil
}

// leaf returns the name of a sample's innermost function, inlined ones
// included.
func leaf(s *profile.Sample) string {
	if len(s.Location) == 0 || len(s.Location[0].Line) == 0 || s.Location[0].Line[0].Function == nil {
		return ""
	}
	return s.Location[0].Line[0].Function.Name
}

// callerOfLocks returns the name of a sample's innermost function that is none of
// the packages for locks and atomic operations, nor the scheduler's behind them.
func callerOfLocks(s *profile.Sample) string {
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			if line.Function == nil {
				return ""
			}
			name := line.Function.Name
			if !strings.HasPrefix(name, "sync.") && !strings.HasPrefix(name, "sync/atomic.") &&
				!strings.HasPrefix(name, "internal/sync.") && !strings.HasPrefix(name, "internal/runtime/") && !strings.HasPrefix(name, "runtime.") {
				return name
			}
		}
	}
	return ""
}

// percent is the bond's share, or nil where there are too few samples.
func (p *profiler) percent() *float64 { return p.percentOf(p.bonding) }

func (p *profiler) percentOf(n int64) *float64 {
	if p.samples < minSamples {
		return nil
	}
	v := round3(100 * float64(n) / float64(p.samples))
	return &v
}

// nsOf is what n samples are of the CPU time, for each of some frames; nil where
// there are too few samples, or the time is not known.
func (p *profiler) nsOf(n int64, frames uint64) *float64 {
	if p.samples < minSamples || p.cpu == 0 || frames == 0 {
		return nil
	}
	v := round3(float64(p.cpu.Nanoseconds()) * float64(n) / float64(p.samples) / float64(frames))
	return &v
}
