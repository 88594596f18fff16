//go:build unix

package iperf3

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuNow reads the CPU times of the process.
func cpuNow() cpuTimes {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // fails only for another pointer or who
	return cpuTimes{time.Now(), time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())}
}
