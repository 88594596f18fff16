package main

import (
	"fmt"
	"strings"
	"time"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/benchhtml"
	"bondstack/link/wire"
)

// A run with cuts has a part before the first, and for each link one in which it is
// cut and one in which it has come back; LACP needs longer to come back.
const (
	cutPart     = 600 * time.Millisecond // less for short rounds
	cutPartLACP = 2500 * time.Millisecond
	maxCuts     = 4 // links
)

// cutsText says what the page shows of a run with cuts.
const cutsText = "Links lose their carrier one after the other while TCP runs: what each slave of the sending end sent, and below its link's state and " +
	"the bond's own record of each failover. The bond's outage ends with the first frame on another link; a TCP stream whose segments were lost on the cut one " +
	"goes on when they are sent again, which by time-out is 200 ms later."

// measureCuts lets TCP run on a bond whose links are cut in turn, for the page.
func (s *benchSettings) measureCuts(mode bonding.Mode, d time.Duration, p *progress) error {
	if s.page == nil || s.Links < 2 {
		return nil
	}
	p.step("%s: links are cut in turn", mode)
	r, err := s.newRig(&mode)
	if err != nil {
		return err
	}
	defer r.close()
	rec := s.record(mode.String()+": failover", cutsText, recordCutEvery, r.bond)
	links, part := min(s.Links, maxCuts), min(cutPart, max(d, cutPart/6))
	if mode == bonding.IEEE8023AD {
		part = cutPartLACP
	}
	down := make(chan []benchhtml.Down, 1)
	_, err = r.round(s.Streams, part*time.Duration(2*links+1), rec.during("cuts", r, func(on bool) {
		if on {
			go func() { down <- cutInTurn(r.wires[:links], rec.began, part) }()
		} else {
			rec.timeline.Down = <-down
		}
	}))
	if err != nil {
		return err
	}
	for _, f := range r.bond.Status().Failovers {
		if at := f.Time.Sub(rec.began).Seconds(); at > 0 {
			rec.timeline.Marks = append(rec.timeline.Marks, failoverMark(f, at))
		}
	}
	s.keep(rec)
	return nil
}

// cutInTurn cuts and mends each cable, and returns when each was cut.
func cutInTurn(cables []*wire.Endpoint, began time.Time, part time.Duration) (list []benchhtml.Down) {
	at := began
	since := func() float64 { return time.Since(began).Seconds() }
	next := func() {
		at = at.Add(part)
		time.Sleep(time.Until(at))
	}
	for i, c := range cables {
		next()
		down := benchhtml.Down{Slave: i, From: since()}
		c.SetCarrier(false)
		next()
		c.SetCarrier(true)
		down.To = since()
		list = append(list, down)
	}
	return list
}

// failoverMark is the bond's record of a failover as a mark.
func failoverMark(f bonding.Failover, at float64) benchhtml.Mark {
	from, to := f.From, strings.ReplaceAll(f.To, ",", ", ")
	if from == "" {
		from = "none"
	}
	if to == "" {
		to = "none"
	}
	micros := func(us *int64) string {
		if us == nil {
			return "-"
		}
		return fmt.Sprintf("%d µs", *us)
	}
	return benchhtml.Mark{At: at, What: fmt.Sprintf("%s → %s (%s)", from, to, f.Cause), Facts: []benchhtml.Fact{
		{Name: "detected after", Value: micros(&f.DetectionUs)}, {Name: "first frame after", Value: micros(f.FirstTxUs)},
		{Name: "outage", Value: micros(f.OutageUs)}, {Name: "frames lost", Value: fmt.Sprint(f.FramesLost)},
	}}
}
