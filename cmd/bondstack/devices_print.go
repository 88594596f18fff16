package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// print writes the runs of each table, and the time of one operation.
func (r *devicesResult) print(w io.Writer, procs int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d devices, %d runs, %d readers, %d processors\n", r.Count, r.Runs, r.Readers, procs)
	for i := range r.Tables {
		r.Tables[i].print(&b, r.Count)
	}
	if rep := r.readers; r.Readers > 0 {
		fmt.Fprintf(&b, "\n%d look-ups in bondstack's tables, %d violations; the longest took %v,\nthe longest of as many pauses in which a reader did nothing %v\n",
			rep.looks, rep.violations, rep.longest.Round(time.Microsecond), rep.idle.Round(time.Microsecond))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *tableResult) print(b *strings.Builder, count int) {
	fmt.Fprintf(b, "\n%s\n", t.Name)
	tw := tabwriter.NewWriter(b, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "run\tadd ms\trename ms\tdelete ms\t")
	for i := range t.AddMs {
		fmt.Fprintf(tw, "%d\t%.3f\t%.3f\t%.3f\t\n", i+1, t.AddMs[i], t.RenameMs[i], t.DeleteMs[i])
	}
	fmt.Fprintf(tw, "median\t%.3f\t%.3f\t%.3f\t\n", middle(t.AddMs), middle(t.RenameMs), middle(t.DeleteMs))
	each := func(ms []float64) float64 { return middle(ms) * 1e6 / float64(count) }
	fmt.Fprintf(tw, "ns/op\t%.0f\t%.0f\t%.0f\t\n", each(t.AddMs), each(t.RenameMs), each(t.DeleteMs))
	tw.Flush()
}

// middle returns the median.
func middle(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[n/2] + sorted[(n-1)/2]) / 2
}
