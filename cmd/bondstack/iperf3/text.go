package iperf3

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// printer writes the output: lines as they come, in iperf3's columns, or the
// report at the end.
type printer struct {
	w    io.Writer // nil: none
	json bool
	step time.Duration
}

func newPrinter(o *Options) *printer { return &printer{o.Out, o.JSON, o.Interval} }

// every is the time between two reports, 0 for none.
func (p *printer) every() time.Duration { return p.step }

// line writes a line for people.
func (p *printer) line(format string, args ...any) {
	if p.w != nil && !p.json {
		fmt.Fprintf(p.w, format+"\n", args...)
	}
}

const ruler = "- - - - - - - - - - - - - - - - - - - - - - - - -"

// streams writes who is connected.
func (p *printer) streams(t *test) {
	if t.set.reverse && t.client {
		p.line("Reverse mode, remote host %s is sending", t.report.Start.To.Host)
	}
	for _, c := range t.report.Start.Connected {
		p.line("[%3d] local %s port %d connected to %s port %d", c.Socket, c.LocalHost, c.LocalPort, c.RemoteHost, c.RemotePort)
	}
}

// role is a column that tells directions apart where there are both.
func (t *test) role(r *Row) string {
	if !t.set.bidir {
		return ""
	}
	way, end := "RX", "S"
	if r.Sender {
		way = "TX"
	}
	if t.client {
		end = "C"
	}
	return "[" + way + "-" + end + "]"
}

// columns writes the head of the table of intervals.
func (p *printer) columns(t *test) {
	text := "[ ID] Interval           Transfer     Bitrate"
	if t.set.bidir {
		text = "[ ID][Role] Interval           Transfer     Bitrate"
	}
	sends := t.set.bidir || t.set.reverse != t.client
	switch {
	case t.set.udp && sends && !t.set.bidir:
		text += "         Total Datagrams"
	case t.set.udp:
		text += "         Jitter    Lost/Total Datagrams"
	case sends:
		text += "         Retr  Cwnd"
	}
	p.line("%s", text)
}

// interval writes the rows of an interval.
func (p *printer) interval(t *test, i *Interval) {
	if p.w == nil || p.json {
		return
	}
	n := t.set.parallel
	p.rows(t, i.Streams[:n], &i.Sum)
	if i.Reverse != nil {
		p.rows(t, i.Streams[n:], i.Reverse)
	}
	if len(i.Streams) > 1 {
		p.line(ruler)
	}
}

// rows writes rows and their sum.
func (p *printer) rows(t *test, rows []Row, sum *Row) {
	for i := range rows {
		p.row(t, fmt.Sprintf("[%3d]", rows[i].Socket), &rows[i], "")
	}
	if len(rows) > 1 {
		p.row(t, "[SUM]", sum, "")
	}
}

// row writes a row.
func (p *printer) row(t *test, name string, r *Row, note string) {
	if r.Omitted != nil && *r.Omitted {
		note = "(omitted)"
	}
	extra := ""
	switch {
	case r.Jitter != nil:
		extra = fmt.Sprintf("%5.3f ms  %d/%d (%.2g%%)", *r.Jitter, *r.Lost, *r.Packets, *r.LostPercent)
	case r.Packets != nil:
		extra = fmt.Sprintf("%d", *r.Packets)
	case r.Retransmits != nil:
		extra = fmt.Sprintf("%3d", *r.Retransmits)
		if r.Cwnd != nil {
			extra += fmt.Sprintf("   %s", amount(float64(*r.Cwnd), 1024, "Bytes"))
		}
	}
	text := fmt.Sprintf("%s%s %6.2f-%-6.2f sec  %s  %s  %-16s  %s", name, t.role(r), r.Start, r.End,
		amount(float64(r.Bytes), 1024, "Bytes"), amount(r.Bits, 1000, "bits/sec"), extra, note)
	p.line("%s", strings.TrimRight(text, " "))
}

// amount writes a figure with three digits and the prefix of its unit.
func amount(v float64, step float64, unit string) string {
	prefixes := []string{"", "K", "M", "G", "T"}
	i := 0
	for ; v >= step && i < len(prefixes)-1; i++ {
		v /= step
	}
	digits := 0
	switch {
	case v < 9.995:
		digits = 2
	case v < 99.95:
		digits = 1
	}
	return fmt.Sprintf("%4.*f %s%s", digits, v, prefixes[i], unit)
}

// end writes the results of the test, or that it failed.
func (p *printer) end(t *test, err error) {
	switch {
	case p.w == nil:
	case p.json:
		enc := json.NewEncoder(p.w)
		enc.SetIndent("", "\t")
		_ = enc.Encode(t.report) // what cannot be written has nobody who reads it
	default:
		if err == nil {
			p.totals(t)
		}
		p.slaves(t.report.Bond)
		if err == nil && t.client {
			p.line("\niperf Done.")
		}
	}
}

// totals writes the rows of the whole test.
func (p *printer) totals(t *test) {
	if len(t.streams) == 1 {
		p.line(ruler)
	}
	p.columns(t)
	e := &t.report.End
	for k, sums := range [][2]*Row{{e.SumSent, e.SumReceived}, {e.ReverseSent, e.ReverseReceived}} {
		if sums[0] == nil {
			continue
		}
		streams := t.streams[k*t.set.parallel:][:t.set.parallel]
		for _, s := range streams {
			from, to := s.own, s.peer
			if !s.sender {
				from, to = to, from
			}
			x, y := s.row(0, from.seconds, from, true), s.row(0, to.seconds, to, false)
			x.lossless()
			p.row(t, fmt.Sprintf("[%3d]", s.socket), &x, "sender")
			p.row(t, fmt.Sprintf("[%3d]", s.socket), &y, "receiver")
		}
		if len(streams) > 1 {
			p.row(t, "[SUM]", sums[0], "sender")
			p.row(t, "[SUM]", sums[1], "receiver")
		}
	}
}

// slaves writes what each slave carried.
func (p *printer) slaves(b *Bond) {
	if b == nil {
		return
	}
	if len(b.Slaves) > 0 {
		p.line("\n%-15s  %-24s  %s", "Slave", "Sent", "Received")
	}
	for _, s := range b.Slaves {
		p.line("%-15s  %-24s  %s", s.Name, sharePart(s.TxBytes, s.TxShare), sharePart(s.RxBytes, s.RxShare))
	}
	if b.NotSent > 0 {
		p.line("%d datagrams were not sent: the bond did not take them", b.NotSent)
	}
}

func sharePart(bytes uint64, share *float64) string {
	text := amount(float64(bytes), 1024, "Bytes")
	if share != nil {
		text += fmt.Sprintf("  %5.1f %%", 100**share)
	}
	return text
}
