package benchhtml

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// The measures of a timeline's drawing; the page scales it.
const (
	width, height = 1000.0, 300.0
	left, right   = 64.0, 12.0
	top, bottom   = 34.0, 34.0
	lane          = 13.0 // a slave's strip of its link's state
)

// colours is how many the page has, as --s0 and so on.
const colours = 8

func colour(i int) string { return fmt.Sprintf("s%d", i%colours) }

// axes turns seconds and bit/s into places.
type axes struct{ end, most, bottom float64 }

func (t *Timeline) axes() axes {
	a := axes{end: 1e-9, bottom: height - bottom}
	for _, s := range t.Segments {
		if n := len(s.Times); n > 0 {
			a.end = max(a.end, s.Start+s.Times[n-1])
		}
		for _, bits := range s.Bits {
			a.most = max(a.most, total(bits))
		}
	}
	a.most = max(a.most*1.08, 1)
	return a
}

func (a axes) x(seconds float64) float64 { return left + seconds/a.end*(width-left-right) }
func (a axes) y(bits float64) float64    { return a.bottom - bits/a.most*(a.bottom-top) }

func total(v []float64) (sum float64) {
	for _, n := range v {
		sum += n
	}
	return sum
}

// step is a distance of ticks that gives up to so many, of 1, 2 or 5 times a power
// of ten.
func step(most float64, n int) float64 {
	raw := most / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, f := range []float64{1, 2, 5} {
		if f*unit >= raw {
			return f * unit
		}
	}
	return 10 * unit
}

// plot draws a timeline.
func plot(t Timeline) template.HTML {
	var b strings.Builder
	a := t.axes()
	h := height
	if len(t.Down) > 0 {
		h += lane * float64(len(t.Slaves))
	}
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, h, template.HTMLEscapeString(t.Title))
	t.drawGrid(&b, a)
	for i := range t.Segments {
		t.drawSegment(&b, a, i)
	}
	t.drawDown(&b, a)
	for i, m := range t.Marks {
		x := a.x(m.At)
		fmt.Fprintf(&b, `<g class="mark" transform="translate(%.1f)"><line y1="%g" y2="%g"/><circle cy="%g" r="9"/><text y="%g">%d</text></g>`,
			x, top-10, a.bottom, top-20, top-16, i+1)
	}
	fmt.Fprintf(&b, `<line class="cursor" y1="%g" y2="%g" hidden/></svg>`, top, a.bottom)
	return template.HTML(b.String())
}

// drawGrid draws the axes' ticks.
func (t *Timeline) drawGrid(b *strings.Builder, a axes) {
	every := step(a.most, 5)
	unit, name := unitOf(a.most)
	for n := 0; float64(n)*every <= a.most; n++ {
		v := float64(n) * every
		fmt.Fprintf(b, `<path class="grid" d="M%g %.1fH%g"/><text class="tick end" x="%g" y="%.1f">%g</text>`,
			left, a.y(v), width-right, left-8, a.y(v)+4, round(v/unit))
	}
	fmt.Fprintf(b, `<text class="tick" x="4" y="%g">%s</text>`, top-16, name)
	for n, every := 0, step(a.end, 10); float64(n)*every <= a.end*1.001; n++ {
		v := float64(n) * every
		fmt.Fprintf(b, `<text class="tick mid" x="%.1f" y="%g">%g s</text>`, a.x(v), a.bottom+18, round(v))
	}
}

func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// labelled is the least width of a segment that has its kind written.
const labelled = 34.0

// drawSegment draws the stacked areas of a segment: a sample is as wide as its time.
func (t *Timeline) drawSegment(b *strings.Builder, a axes, i int) {
	s := &t.Segments[i]
	if len(s.Times) == 0 {
		return
	}
	x0, x1 := a.x(s.Start), a.x(s.Start+s.Times[len(s.Times)-1])
	if len(t.Segments) > 1 {
		fmt.Fprintf(b, `<rect class="part k%d" x="%.1f" y="%g" width="%.1f" height="%.1f"/>`, t.kind(s.Kind), x0, top, x1-x0, a.bottom-top)
		if x1-x0 >= labelled {
			fmt.Fprintf(b, `<text class="tick mid" x="%.1f" y="%g">%s</text>`, (x0+x1)/2, top-6, template.HTMLEscapeString(s.Kind))
		}
	}
	base := make([]float64, len(s.Times))
	for k := range s.Bits[0] {
		class := colour(k)
		if s.Kind == Bare {
			class = "plain"
		}
		var path strings.Builder
		var back []string
		from := s.Start
		for n, end := range s.Times {
			lower, upper := a.y(base[n]), a.y(base[n]+s.Bits[n][k])
			x, to := a.x(from), a.x(s.Start+end)
			op := "L"
			if n == 0 {
				op = "M"
			}
			fmt.Fprintf(&path, "%s%.2f %.2fH%.2f", op, x, upper, to)
			back = append(back, fmt.Sprintf("L%.2f %.2fH%.2f", to, lower, x))
			base[n] += s.Bits[n][k]
			from = s.Start + end
		}
		slices.Reverse(back)
		fmt.Fprintf(b, `<path class="area %s" d="%s%sZ"/>`, class, path.String(), strings.Join(back, ""))
	}
}

// kind numbers the kinds of segments in the order in which they come.
func (t *Timeline) kind(name string) int {
	var kinds []string
	for _, s := range t.Segments {
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	return slices.Index(kinds, name)
}

// drawDown draws a strip for each slave, broken where its link was down.
func (t *Timeline) drawDown(b *strings.Builder, a axes) {
	if len(t.Down) == 0 {
		return
	}
	for i, name := range t.Slaves {
		y := a.bottom + 28 + lane*float64(i)
		fmt.Fprintf(b, `<text class="tick end" x="%g" y="%.1f">%s</text>`, left-8, y+8, template.HTMLEscapeString(name))
		fmt.Fprintf(b, `<rect class="link %s" x="%g" y="%.1f" width="%g" height="7" rx="2"/>`, colour(i), left, y, width-left-right)
		for _, d := range t.Down {
			if d.Slave == i {
				x := a.x(d.From)
				fmt.Fprintf(b, `<rect class="down" x="%.1f" y="%.1f" width="%.1f" height="9"><title>%s was down</title></rect>`,
					x, y-1, a.x(min(d.To, a.end))-x, template.HTMLEscapeString(name))
			}
		}
	}
}

// spreadPlot draws a ratio's range and its middle beside 1.
func spreadPlot(s *Spread, most float64) template.HTML {
	if s == nil {
		return ""
	}
	const w = 160.0
	x := func(v float64) float64 { return 4 + v/most*(w-8) }
	return template.HTML(fmt.Sprintf(`<svg class="spread" viewBox="0 0 %g 22" aria-hidden="true"><path class="grid" d="M4 11H%g"/>`+
		`<path class="one" d="M%.1f 1V21"/><path class="range" d="M%.1f 11H%.1f"/><circle class="middle" cx="%.1f" cy="11" r="5"/></svg>`,
		w, w-4, x(1), x(s.Min), x(s.Max), x(s.Median)))
}

// Most is the end of the ratios' axis.
func (r *Ratios) Most() float64 {
	most := 1.2
	for _, row := range r.Rows {
		for _, s := range []*Spread{row.Ratio, row.PerCPU} {
			if s != nil {
				most = max(most, s.Max*1.05)
			}
		}
	}
	return most
}
