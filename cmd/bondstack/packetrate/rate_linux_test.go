package packetrate

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// sizes are those of frames, without their check sequence.
var sizes = []int{64, 1500}

// BenchmarkReceive counts what contenders receive of the traffic.
func BenchmarkReceive(b *testing.B) {
	all := contenders(b, "receive", "active-backup", true)
	bySize(b, all, "p0")
}

// BenchmarkSend counts what arrives of what contenders send.
func BenchmarkSend(b *testing.B) {
	all := contenders(b, "send", "active-backup", true)
	bySize(b, all, "")
}

// BenchmarkForward counts what arrives of the traffic behind contenders that
// forward it between a bond of two veths and a third one.
func BenchmarkForward(b *testing.B) {
	for _, mode := range []string{"active-backup", "balance-xor"} {
		b.Run(mode, func(b *testing.B) {
			all := contenders(b, "forward", mode, false)
			b.Run("to-bond", func(b *testing.B) { bySize(b, all, "r0") })
			if mode == "active-backup" { // which has no part in what comes from the bond
				b.Run("from-bond", func(b *testing.B) { bySize(b, all, "p0") })
			}
		})
	}
}

// contenders starts all of them for a role: with a bond of a mode, and, where bare
// is set, ours without one too.
func contenders(b *testing.B, role, mode string, bare bool) []*contender {
	b.Helper()
	if runtime.NumCPU() < 2 {
		b.Skip("needs two processors")
	}
	var all []*contender
	for _, kind := range []string{"packet", "xdp"} {
		if bare {
			all = append(all, newContender(b, kind, job{role, kind, "none"}))
		}
		all = append(all, newContender(b, "bond-"+kind, job{role, kind, mode}))
	}
	if missing := dpdkMissing(); missing != "" {
		b.Log("without DPDK: ", missing)
		return all
	}
	return append(all, newContender(b, "bond-dpdk", job{role, "dpdk", mode}))
}

// bySize measures contenders for each size of the traffic that comes from an end.
func bySize(b *testing.B, all []*contender, from string) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) { turns(b, all, from, size) })
	}
}

// turns measures contenders in turns, the first one another each time, and prints
// the medians of each: thousands of packets a second, and microseconds of processor
// time a packet, of which testpmd uses all that there is. Then the quotients of the
// rates of ours and DPDK's.
func turns(b *testing.B, all []*contender, from string, size int) {
	rates, costs := map[string][]float64{}, map[string][]float64{}
	for n := 0; b.Loop(); n++ {
		for i := range all {
			c := all[(n+i)%len(all)]
			f := c.measure(from, size)
			rates[c.name] = append(rates[c.name], f.rate)
			costs[c.name] = append(costs[c.name], f.cost)
		}
	}
	for _, c := range all {
		b.ReportMetric(median(rates[c.name])/1e3, c.name+"-kpps")
		b.ReportMetric(median(costs[c.name])*1e6, c.name+"-CPU-us")
	}
	if dpdk := rates["bond-dpdk"]; dpdk != nil {
		for _, kind := range []string{"packet", "xdp"} {
			b.ReportMetric(median(rates["bond-"+kind])/median(dpdk), kind+"/dpdk")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// median returns the middle one of some numbers.
func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[len(sorted)/2]
}
