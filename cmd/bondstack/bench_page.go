package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"bondstack/cmd/bondstack/benchhtml"
)

// checkPage wants a page only where there is one, and a file that can be written: a
// benchmark is long.
func (s *benchSettings) checkPage(file, compare string) error {
	if file == "" {
		return nil
	}
	if compare != "" {
		return errors.New("--html is not with --compare: it shows rounds, storms and failovers")
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	s.page = &benchhtml.Page{Title: "bondstack bench"}
	return f.Close()
}

// writePage writes the page, where one is wanted.
func (s *benchSettings) writePage(file string) error {
	if s.page == nil {
		return nil
	}
	var b strings.Builder
	if err := benchhtml.Write(&b, s.page); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// show puts the results of the rounds on the page.
func (s *benchSettings) show(results []benchResult) {
	if s.page == nil || s.InForce == nil {
		return
	}
	s.showFacts("TCP between two whole stacks in memory, on one bare link and on a bond.")
	table := &benchhtml.Ratios{First: "bare", Second: "bond", Remark: "retransmits"}
	for _, r := range results {
		row := benchhtml.Ratio{Name: r.Mode.String(), First: medianBits(r.BareGbps), Second: medianBits(r.BondGbps),
			Ratio: pageSpread(r.Ratio), PerCPU: pageSpread(r.PerCPU)}
		for _, slave := range r.Slaves {
			if slave.Share != nil {
				row.Shares = append(row.Shares, benchhtml.Share{Name: slave.Name, Share: *slave.Share})
			}
		}
		row.Note = fmt.Sprintf("%d / %d", r.BareRetransmits, r.BondRetransmits)
		table.Rows = append(table.Rows, row)
	}
	s.page.Ratios = table
}

// showStorm is show for rounds with and without a storm.
func (s *benchSettings) showStorm(results []stormResult) {
	if s.page == nil || s.InForce == nil {
		return
	}
	s.showFacts("TCP between two whole stacks in memory, on a bond whose last slave comes and goes.")
	table := &benchhtml.Ratios{First: "calm", Second: "storm", Remark: "changes a second"}
	for _, r := range results {
		table.Rows = append(table.Rows, benchhtml.Ratio{Name: r.Mode.String(), First: medianBits(r.CalmGbps), Second: medianBits(r.StormGbps),
			Ratio: pageSpread(r.Ratio), PerCPU: pageSpread(r.PerCPU), Note: medianOf(r.ChangesPer, "%.0f")})
	}
	s.page.Ratios = table
}

// showFacts says what the figures depend on.
func (s *benchSettings) showFacts(lead string) {
	f := s.InForce.(inForce)
	rate := "no limit"
	if s.Rate > 0 {
		rate = fmt.Sprintf("%g Mbit/s", float64(s.Rate)/1e6)
	}
	var options []string
	for name, value := range s.Options {
		options = append(options, name+"="+value)
	}
	s.page.Lead = lead
	s.page.Facts = []benchhtml.Fact{
		{Name: "links", Value: fmt.Sprint(s.Links)}, {Name: "streams", Value: fmt.Sprint(s.Streams)},
		{Name: "rounds", Value: fmt.Sprintf("%d of %g s", s.Rounds, s.Duration)},
		{Name: "a link", Value: rate + s.Shape.String()}, {Name: "xmit_hash_policy", Value: s.Hash},
		{Name: "machine", Value: fmt.Sprintf("%d CPUs, %s/%s, %s", f.GOMAXPROCS, f.OS, f.Arch, f.Go)},
	}
	if len(options) > 0 {
		s.page.Facts = append(s.page.Facts, benchhtml.Fact{Name: "options", Value: strings.Join(options, " ")})
	}
	s.page.Facts = append(s.page.Facts, benchhtml.Fact{Name: "stack", Value: f.Stack.String()})
}

func medianBits(gbps []float64) float64 {
	if s := spread(gbps); s != nil {
		return s.Median * 1e9
	}
	return 0
}

func pageSpread(s *spreadOf) *benchhtml.Spread {
	if s == nil {
		return nil
	}
	return &benchhtml.Spread{Min: s.Min, Median: s.Median, Max: s.Max}
}
