package bonding

import (
	"fmt"
	"time"
)

// String returns the record as a line for people.
func (f Failover) String() string {
	outage := "nothing sent yet"
	if f.OutageUs != nil {
		outage = "outage " + us(*f.OutageUs)
	}
	if f.To == "" {
		outage = "no slave left"
	}
	received := ""
	if f.FirstRxUs != nil {
		received = ", first frame received after " + us(*f.FirstRxUs)
	}
	return fmt.Sprintf("#%d %s %s: %s, now %s; found in %s, %s%s, %d frames lost", f.Seq, f.Time.Format("2006-01-02 15:04:05.000"),
		f.Cause, orNone(f.From), orNone(f.To), us(f.DetectionUs), outage, received, f.FramesLost)
}

func us(n int64) string { return (time.Duration(n) * time.Microsecond).String() }
