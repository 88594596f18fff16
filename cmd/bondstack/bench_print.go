package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printBench writes the results for people.
func printBench(w io.Writer, s *benchSettings, results []benchResult) error {
	var b strings.Builder
	s.printHead(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "mode\tbare Gbit/s\tbond Gbit/s\tratio (min..max)\tper CPU\tretransmits bare/bond\tbonding CPU\tns a frame\tshare")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\t%s\n", r.Mode, median(r.BareGbps), median(r.BondGbps),
			r.Ratio, r.PerCPU, r.BareRetransmits, r.BondRetransmits, r.cpu(), r.nsText(), r.shareText())
	}
	t.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

// printHead writes what the figures depend on.
func (s *benchSettings) printHead(b *strings.Builder) {
	f := s.InForce.(inForce)
	fmt.Fprintf(b, "%d links, %d streams, %d rounds of %gs", s.Links, s.Streams, s.Rounds, s.Duration)
	if s.Rate > 0 {
		fmt.Fprintf(b, ", %g Mbit/s a link", float64(s.Rate)/1e6)
	}
	b.WriteString(s.Shape.String())
	fmt.Fprintf(b, "\nin force: %s, %d CPUs, %s on %s/%s\n\n", f.Stack, f.GOMAXPROCS, f.Go, f.OS, f.Arch)
}

func median(v []float64) string { return medianOf(v, "%.1f") }

func medianOf(v []float64, format string) string {
	if s := spread(v); s != nil {
		return fmt.Sprintf(format, s.Median)
	}
	return "-"
}

// String shows the median and the range.
func (s *spreadOf) String() string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f..%.2f)", s.Median, s.Min, s.Max)
}

func (r *benchResult) cpu() string {
	if r.BondingCPU == nil {
		return fmt.Sprintf("- (%d samples)", r.CPUSamples)
	}
	return fmt.Sprintf("%.2f %%", *r.BondingCPU)
}

func (r *benchResult) nsText() string {
	if r.BondingNs == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *r.BondingNs)
}

func (r *benchResult) shareText() string {
	parts := make([]string, len(r.Slaves))
	for i, s := range r.Slaves {
		parts[i] = s.Name + " -"
		if s.Share != nil {
			parts[i] = fmt.Sprintf("%s %.0f %%", s.Name, 100**s.Share)
		}
	}
	return strings.Join(parts, ", ")
}
