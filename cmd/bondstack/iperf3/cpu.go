package iperf3

import "time"

// cpuTimes are the CPU times of the process at a moment; unknown where the system
// does not tell.
type cpuTimes struct {
	at           time.Time
	user, system time.Duration
}

// cpuUse is the use of CPU in percent of one CPU.
type cpuUse struct{ total, user, system float64 }

// since returns the use between two moments.
func (c cpuTimes) since(old cpuTimes) cpuUse {
	wall := c.at.Sub(old.at).Seconds()
	if wall <= 0 {
		return cpuUse{}
	}
	user, system := 100*(c.user-old.user).Seconds()/wall, 100*(c.system-old.system).Seconds()/wall
	return cpuUse{user + system, user, system}
}
