// Package benchhtml writes the results of a benchmark as one self-contained page:
// a table of ratios, and throughput over time by slave with marks where a failover
// was. All plots are in the page as SVG; a script of some lines adds what is shown
// at the pointer. Nothing is loaded from elsewhere, and the page follows the
// reader's preference for light or dark.
//
//	err := benchhtml.Write(w, &benchhtml.Page{Title: "bench", Timelines: timelines})
//
// Limits: a timeline has as many points as its data, and colours are eight: the
// ninth slave has that of the first.
package benchhtml

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
)

// Page is what a page shows.
type Page struct {
	Title string
	Lead  string // a sentence below the title
	// Facts are what the figures depend on.
	Facts     []Fact
	Ratios    *Ratios // nil: no table
	Timelines []Timeline
}

// Fact is a setting or the like, with its value.
type Fact struct{ Name, Value string }

// Ratios is a table that compares two things.
type Ratios struct {
	First, Second string // what is compared, such as "bare" and "bond"
	Remark        string // the head of the rows' notes
	Rows          []Ratio
}

// Ratio is a row of the table.
type Ratio struct {
	Name          string
	First, Second float64 // bit/s, the median of the rounds
	Ratio, PerCPU *Spread // Second / First; nil is unknown
	Shares        []Share // of slaves
	Note          string
}

// Spread is the least, the middle and the greatest of some figures.
type Spread struct{ Min, Median, Max float64 }

// Share is the part of a slave, from 0 to 1.
type Share struct {
	Name  string
	Share float64
}

// Timeline is throughput over time.
type Timeline struct {
	Title, Text string
	Slaves      []string
	Segments    []Segment
	Marks       []Mark
	Down        []Down
}

// Segment is a part of a timeline in which the same was measured.
type Segment struct {
	Kind  string    // what was measured, such as Bare or "bond"
	Start float64   // seconds on the timeline
	Times []float64 // the ends of the samples, in seconds since Start
	// Bits are in bit/s: for each sample one for each slave, or with Bare a single
	// one.
	Bits [][]float64
}

// Mark is a moment, such as a failover.
type Mark struct {
	At   float64 // seconds on the timeline
	What string
	// Facts are shown in columns below the timeline; all marks have the same.
	Facts []Fact
}

// Down is a time in which a slave's link was down on purpose.
type Down struct {
	Slave    int // in Timeline.Slaves
	From, To float64
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"bits": bitsText, "colour": colour, "plot": plot, "spread": spreadPlot, "percent": percentText, "seconds": secondsText, "inc": func(i int) int { return i + 1 },
}).Parse(pageText))

// Write writes the page.
func Write(w io.Writer, p *Page) error { return page.Execute(w, p) }

// Colours are the numbers of the slaves' colours, for the template.
func (p *Page) Colours() []int {
	list := make([]int, colours)
	for i := range list {
		list[i] = i
	}
	return list
}

// Data is what the script needs, for the template, which writes it as JSON.
func (p *Page) Data() []plotData {
	list := []plotData{}
	for i := range p.Timelines {
		list = append(list, p.Timelines[i].data())
	}
	return list
}

// HasPlain reports whether a part of the timeline is of no slave, for the template.
func (t Timeline) HasPlain() bool {
	return slices.ContainsFunc(t.Segments, func(s Segment) bool { return s.Kind == Bare })
}

// HasShares reports whether the slaves have shares, for the template.
func (r *Ratios) HasShares() bool {
	return slices.ContainsFunc(r.Rows, func(row Ratio) bool { return row.Shares != nil })
}

// Bare is the kind of a segment whose single figure is of no slave.
const Bare = "bare"
