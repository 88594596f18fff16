//go:build !unix

package iperf3

import "time"

// cpuNow does not know the CPU times here.
func cpuNow() cpuTimes { return cpuTimes{at: time.Now()} }
