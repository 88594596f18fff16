package packetrate

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"bondstack/link/netnstest"
)

// sizes are those of frames, without their check sequence.
var sizes = []int{64, 1500}

// BenchmarkReceive counts what contenders receive of the traffic.
func BenchmarkReceive(b *testing.B) { compare(b, "receive", "active-backup", "p0", true) }

// BenchmarkSend counts what arrives of what contenders send.
func BenchmarkSend(b *testing.B) { compare(b, "send", "active-backup", "", true) }

// BenchmarkForward counts what arrives of the traffic behind contenders that
// forward it between a bond of two veths and a third one.
func BenchmarkForward(b *testing.B) {
	for _, mode := range []string{"active-backup", "balance-xor"} {
		b.Run("to-bond/"+mode, func(b *testing.B) { compare(b, "forward", mode, "r0", false) })
	}
	b.Run("from-bond/active-backup", func(b *testing.B) { compare(b, "forward", "active-backup", "p0", false) })
}

// compare measures contenders in turns and prints, in thousands of packets a
// second, the median of each, and the quotients of ours and DPDK's.
func compare(b *testing.B, role, mode, from string, bare bool) {
	var all []*contender
	start := func(b *testing.B) {
		if all != nil {
			return
		}
		for _, kind := range []string{"packet", "xdp"} {
			if bare {
				all = append(all, newContender(b, kind, job{role, kind, "none"}))
			}
			all = append(all, newContender(b, "bond-"+kind, job{role, kind, mode}))
		}
		if missing := dpdkMissing(); missing == "" {
			all = append(all, newContender(b, "bond-dpdk", job{role, "dpdk", mode}))
		} else {
			b.Log("without DPDK: ", missing)
		}
	}
	if runtime.NumCPU() < 2 {
		b.Skip("needs two processors")
	}
	netnstest.New(b) // or skip
	start(b)
	for _, size := range sizes {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) { turns(b, all, from, size) })
	}
}

// turns measures contenders for one size. The first one is another each time.
func turns(b *testing.B, all []*contender, from string, size int) {
	got := map[string][]float64{}
	for n := 0; b.Loop(); n++ {
		for i := range all {
			c := all[(n+i)%len(all)]
			got[c.name] = append(got[c.name], c.measure(from, size))
		}
	}
	for _, c := range all {
		b.ReportMetric(median(got[c.name])/1e3, c.name+"-kpps")
	}
	for _, kind := range []string{"packet", "xdp"} {
		if dpdk := got["bond-dpdk"]; dpdk != nil {
			b.ReportMetric(median(got["bond-"+kind])/median(dpdk), kind+"/dpdk")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// median returns the middle one of figures.
func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[len(sorted)/2]
}
