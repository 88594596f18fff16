package drill

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// String returns the line for people.
func (l Line) String() string {
	switch l.Phase {
	case Cutting:
		return fmt.Sprintf("round %d: the slave is cut", l.Round)
	case Restored:
		return fmt.Sprintf("round %d: the slave is given back", l.Round)
	case Back:
		return fmt.Sprintf("round %d: over", l.Round)
	}
	return l.Phase
}

// WriteText writes a result for people.
func (r *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s was cut for %v, by %s\n", r.Bond, r.Mode, r.Slave, time.Duration(r.ForMs)*time.Millisecond, r.How)
	fmt.Fprintf(&b, "%s\n", r.Meaning)
	for i := range r.Rounds {
		if len(r.Rounds) > 1 {
			fmt.Fprintf(&b, "\nround %d, %s\n", i+1, r.Rounds[i].Time.Local().Format(time.TimeOnly))
		} else {
			b.WriteString("\n")
		}
		r.Rounds[i].text(&b, r.Slave)
	}
	switch d, _ := r.Outage(); {
	case len(r.Unreached) > 0:
		fmt.Fprintf(&b, "\nnot reached any more: %s\n", texts(r.Unreached))
	case r.LongestGapUs != nil:
		fmt.Fprintf(&b, "\nlongest gap %v, %d of %d pings lost\n", d, r.Lost, r.Sent)
	default:
		fmt.Fprintf(&b, "\nno peer was asked; outage by the bond's record: %v\n", d)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Round) text(b *strings.Builder, slave string) {
	switch {
	case !r.Served && r.Noticed:
		fmt.Fprintf(b, "  %s carried nothing; the bond found that it was lost\n", slave)
	case !r.Served:
		fmt.Fprintf(b, "  %s carried nothing: nothing had to move\n", slave)
	case !r.Noticed:
		fmt.Fprintf(b, "  the bond did not notice: %s stayed in use\n", slave)
	}
	for _, f := range r.Failovers {
		fmt.Fprintf(b, "  failover: %s\n", f)
	}
	if r.DiscardedTx+r.DiscardedRx > 0 {
		fmt.Fprintf(b, "  discarded on %s: %d frames to be sent, %d received\n", slave, r.DiscardedTx, r.DiscardedRx)
	}
	if r.FramesLost > 0 {
		fmt.Fprintf(b, "  dropped for want of a slave: %d frames\n", r.FramesLost)
	}
	if !r.Back {
		fmt.Fprintf(b, "  %s was not in use again %v after it was given back\n", slave, patience)
	}
	if len(r.Peers) == 0 {
		return
	}
	fmt.Fprintf(b, "  %-24s %10s %12s %14s %12s %12s\n", "PEER", "RTT", "LOST", "REACHED AGAIN", "GAP", "ON RETURN")
	for _, p := range r.Peers {
		fmt.Fprintf(b, "  %-24s %10v %12s %14s %12s %12s\n", p.Peer, time.Duration(p.RTTUs)*time.Microsecond,
			fmt.Sprintf("%d of %d", p.Lost, p.Sent), orNever(p.ReachedAgainUs), orNever(p.GapUs), orNever(p.ReturnGapUs))
	}
}

// orNever is a time, or that it has not come.
func orNever(us *int64) string {
	if us == nil {
		return "never"
	}
	return (time.Duration(*us) * time.Microsecond).Round(100 * time.Microsecond).String()
}
