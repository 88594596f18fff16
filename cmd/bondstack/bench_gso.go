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

// gsoComparison is `bench --compare gso`: one link without GSO, for which netstack
// cuts packets (gVisor GSO), and a bond of which every second link has none, for
// which the bond cuts them.
type gsoComparison struct {
	Settings *benchSettings `json:"settings"`
	Compare  string         `json:"compare"`
	Results  []gsoResult    `json:"results"`
}

type gsoResult struct {
	Mode       bonding.Mode `json:"mode"`
	GVisorGbps []float64    `json:"gvisor_gbps"`
	BondGbps   []float64    `json:"bond_gbps"`
	Ratio      *spreadOf    `json:"ratio"` // bond / gVisor
	PerCPU     *spreadOf    `json:"ratio_per_cpu"`
}

// gvisorGSO is a link that has netstack cut packets.
type gvisorGSO struct{ netstack.LinkEndpoint }

// GSOMaxSize implements stack.GSOEndpoint.
func (gvisorGSO) GSOMaxSize() uint32 { return netstack.GVisorGSOMaxSize }

// SupportedGSO implements stack.GSOEndpoint.
func (gvisorGSO) SupportedGSO() netstack.SupportedGSO { return netstack.GVisorGSOSupported }

func (s *benchSettings) compareGSO(d time.Duration, p *progress) (*gsoComparison, error) {
	c := &gsoComparison{Settings: s, Compare: "gso"}
	s.mixed = true
	for _, m := range s.modes {
		res, err := s.compareGSOIn(m, d, p)
		if err != nil {
			return nil, fmt.Errorf("mode %s: %w", m, err)
		}
		c.Results = append(c.Results, res)
	}
	return c, nil
}

func (s *benchSettings) compareGSOIn(mode bonding.Mode, d time.Duration, p *progress) (gsoResult, error) {
	res := gsoResult{Mode: mode}
	bare, err := s.newRig(nil)
	if err != nil {
		return res, err
	}
	defer bare.close()
	bond, err := s.newRig(&mode)
	if err != nil {
		return res, err
	}
	defer bond.close()
	s.InForce = inForceOf(bond)
	round := func(r *rig) func() (pace, error) {
		return func() (pace, error) {
			bits, err := r.round(s.Streams, d, func(bool) {})
			return pace{bits, r.perCPU}, err
		}
	}
	t, err := s.inTurn(p, mode.String(), round(bare), round(bond))
	res.GVisorGbps, res.BondGbps, res.Ratio, res.PerCPU = t.first, t.second, t.ratio, t.perCPU
	return res, err
}

// print writes the comparison for people or for programs.
func (c *gsoComparison) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, c)
	}
	var b strings.Builder
	c.Settings.printHead(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "mode\tgVisor GSO Gbit/s\tbond Gbit/s\tbond/gVisor (min..max)\tper CPU")
	for _, r := range c.Results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Mode, median(r.GVisorGbps), median(r.BondGbps), r.Ratio, r.PerCPU)
	}
	t.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}
