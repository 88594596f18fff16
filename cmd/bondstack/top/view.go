package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// order is what slaves are sorted by.
type order int

const (
	byOrder order = iota // that of the bond
	byName
	bySent
	byReceived
	numOrders
)

var orderNames = [numOrders]string{"order", "name", "sent", "received"}

// view returns a report as lines.
// The table leaves columns out that a width has no room for; 0 is any width.
func view(r *Report, by order, width int) []line {
	lines := head(r)
	lines = append(lines, line{})
	return append(lines, slaves(r, by, width)...)
}

// head is all above the table.
func head(r *Report) []line {
	first := line{{r.Bond, bold}, {"  " + r.Mode + "  carrier ", plain}, {"on", good}}
	if !r.Carrier {
		first[2] = span{"off", bad}
	}
	first = append(first, span{"  " + speed(r.Speed), plain})
	if r.Active != "" {
		first = append(first, span{"  active slave ", plain}, span{r.Active, bold})
	}
	first = append(first, span{"  " + r.Time.Format(time.TimeOnly), dim})
	lines := []line{first, {
		{"sending ", plain}, {bits(r.TxBits), bold}, {", " + number(r.TxPackets) + " packets/s; receiving ", plain},
		{bits(r.RxBits), bold}, {", " + number(r.RxPackets) + " packets/s; lost ", plain}, {strconv.FormatUint(r.Lost, 10), ifAny(r.LostRate, bad)},
	}}
	if f := r.LastFailover; f != nil {
		outage := ""
		if f.OutageUs != nil {
			outage = ", outage " + (time.Duration(*f.OutageUs) * time.Microsecond).String()
		}
		lines = append(lines, line{{fmt.Sprintf("failovers %d, the last %v ago: %s, %s to %s%s", r.Failovers,
			max(r.Time.Sub(f.Time), 0).Truncate(time.Second), f.Cause, orNone(f.From), orNone(f.To), outage), plain}})
	} else {
		lines = append(lines, line{{"failovers 0", plain}})
	}
	if o := r.Reorder; o != nil {
		lines = append(lines, line{{fmt.Sprintf("order of streams: %d wait, %d held, %d lost, %d expired, %d late, %d overflowed",
			o.Frames, o.Held, o.Lost, o.Expired, o.Late, o.Overflow), plain}})
	}
	if l := r.LACP; l != nil && l.Aggregator != 0 {
		lines = append(lines, line{{fmt.Sprintf("LACP: aggregator %d, %d ports, partner %s", l.Aggregator, l.Ports, l.Partner), plain}})
	} else if l != nil {
		lines = append(lines, line{{"LACP: no active aggregator", bad}})
	}
	for _, w := range r.Warnings {
		lines = append(lines, line{{"warning: " + w, warn}})
	}
	return lines
}

// column is one of the table of slaves.
type column struct {
	title string
	right bool
	// spare is how soon it is left out for want of room: the greatest first, and
	// those of 0 never.
	spare int
	cell  func(*Slave) span
}

func columns(lacp bool) []column {
	list := []column{
		{"SLAVE", false, 0, func(s *Slave) span { return span{s.Name, bold} }},
		{"STATE", false, 0, func(s *Slave) span {
			if s.Draining {
				return span{"draining", warn}
			}
			return span{s.State, plain}
		}},
		{"LINK", false, 0, func(s *Slave) span { return span{s.Link, linkStyle(s.Link)} }},
		{"SPEED", true, 1, func(s *Slave) span { return span{speed(s.Speed), plain} }},
		{"SENDING", true, 0, func(s *Slave) span { return span{bits(s.TxBits), plain} }},
		{"PACKETS/S", true, 8, func(s *Slave) span { return span{number(s.TxPackets), plain} }},
		{"SHARE", true, 5, func(s *Slave) span { return span{percent(s.TxShare), plain} }},
		{"RECEIVING", true, 0, func(s *Slave) span { return span{bits(s.RxBits), plain} }},
		{"PACKETS/S", true, 9, func(s *Slave) span { return span{number(s.RxPackets), plain} }},
		{"SHARE", true, 7, func(s *Slave) span { return span{percent(s.RxShare), plain} }},
		{"LOST/S", true, 6, func(s *Slave) span { return span{number(s.LostRate), ifAny(s.LostRate, bad)} }},
		{"LOST", true, 0, func(s *Slave) span { return span{strconv.FormatUint(s.Lost, 10), plain} }},
		{"FAILURES", true, 3, func(s *Slave) span { return span{strconv.FormatUint(uint64(s.Failures), 10), plain} }},
	}
	if !lacp {
		return list
	}
	port := func(f func(*Port) span) func(*Slave) span {
		return func(s *Slave) span {
			if s.Port == nil {
				return span{"-", dim}
			}
			return f(s.Port)
		}
	}
	return append(list,
		column{"AGG", true, 4, port(func(p *Port) span { return span{strconv.Itoa(int(p.Aggregator)), plain} })},
		column{"ACTOR", false, 0, port(func(p *Port) span { return span{flags(p.Actor), plain} })},
		column{"PARTNER", false, 0, port(func(p *Port) span { return span{flags(p.Partner), plain} })},
		column{"MUX", false, 2, port(func(p *Port) span {
			if p.Churned {
				return span{p.Mux + " (churned)", bad}
			}
			return span{p.Mux, plain}
		})})
}

// slaves is the table.
func slaves(r *Report, by order, width int) []line {
	list := sorted(r.Slaves, by)
	lines := make([]line, 1+len(list))
	for i, c := range fitting(columns(r.LACP != nil), list, width) {
		gap := "  "
		if i == 0 {
			gap = ""
		}
		wide := c.width(list)
		lines[0] = append(lines[0], span{gap + pad(c.title, wide, c.right), dim})
		for n := range list {
			cell := c.cell(&list[n])
			lines[n+1] = append(lines[n+1], span{gap + pad(cell.text, wide, c.right), cell.style})
		}
	}
	for _, name := range r.Absent {
		lines = append(lines, line{{name, bold}, {"  has not appeared yet", warn}})
	}
	return lines
}

// fitting leaves out columns until the others fit a width, or none can be spared.
func fitting(cols []column, list []Slave, width int) []column {
	for width > 0 {
		sum, least := -2, 0
		for i := range cols {
			sum += 2 + cols[i].width(list)
			if cols[i].spare > cols[least].spare {
				least = i
			}
		}
		if sum <= width || cols[least].spare == 0 {
			break
		}
		cols = slices.Delete(cols, least, least+1)
	}
	return cols
}

// width is that of the title or of the widest cell.
func (c *column) width(list []Slave) int {
	width := len(c.title)
	for i := range list {
		width = max(width, len([]rune(c.cell(&list[i]).text)))
	}
	return width
}

func sorted(list []Slave, by order) []Slave {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Slave) int {
		switch by {
		case byName:
			return cmp.Compare(a.Name, b.Name)
		case bySent:
			return cmp.Compare(b.TxBits, a.TxBits)
		case byReceived:
			return cmp.Compare(b.RxBits, a.RxBits)
		}
		return 0
	})
	return list
}

func pad(text string, width int, right bool) string {
	space := strings.Repeat(" ", max(width-len([]rune(text)), 0))
	if right {
		return space + text
	}
	return text + space
}

// flags are the bits of a port state, the lowest first: activity, timeout,
// aggregation, synchronization, collecting, distributing, defaulted, expired.
func flags(state uint8) string {
	b := []byte("ATGSCDFE")
	for i := range b {
		if state>>i&1 == 0 {
			b[i] = '-'
		}
	}
	return string(b)
}

// bits writes a rate with three digits.
func bits(n float64) string {
	for i, unit := range []string{"", "k", "M", "G", "T"} {
		if n < 999.5 || i == 4 {
			digits := 0
			if i > 0 {
				digits = max(0, 2-int(math.Log10(max(n, 1))))
			}
			return strconv.FormatFloat(n, 'f', digits, 64) + " " + unit + "bit/s"
		}
		n /= 1000
	}
	return ""
}

func speed(mbps *uint32) string {
	if mbps == nil {
		return "unknown"
	}
	if *mbps%1000 == 0 && *mbps > 0 {
		return strconv.Itoa(int(*mbps/1000)) + " Gbit/s"
	}
	return strconv.Itoa(int(*mbps)) + " Mbit/s"
}

func number(n float64) string  { return strconv.FormatFloat(n, 'f', 0, 64) }
func percent(n float64) string { return strconv.FormatFloat(100*n, 'f', 1, 64) + "%" }

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

func linkStyle(word string) style {
	switch word {
	case "up":
		return good
	case "down":
		return bad
	}
	return warn
}

func ifAny(rate float64, s style) style {
	if rate > 0 {
		return s
	}
	return plain
}

// style is how a piece of a line looks where there are colours.
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	good  style = "32"
	warn  style = "33"
	bad   style = "31;1"
)

type span struct {
	text  string
	style style
}

type line []span

// render writes a line, cut to a width unless that is 0. Control characters,
// which a name may have, are replaced: they would reach the terminal.
func (l line) render(width int, color bool) string {
	var b strings.Builder
	left := width
	for _, s := range l {
		text := []rune(strings.Map(printable, s.text))
		if width > 0 {
			text = text[:min(len(text), left)]
			left -= len(text)
		}
		if color && s.style != plain && len(text) > 0 {
			b.WriteString("\x1b[" + string(s.style) + "m" + string(text) + "\x1b[0m")
		} else {
			b.WriteString(string(text))
		}
	}
	if !color {
		return strings.TrimRight(b.String(), " ")
	}
	return b.String()
}

func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return '?'
	}
	return r
}
