package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"bondstack/link/netnstest"
)

// BenchmarkTapIperf prints what iperf3 reaches in 2 s, unmodified, to a kernel peer:
// on the kernel device of a bond (active-backup, two veths), and on one bare veth,
// with the peers' offloads on and off, by 1 and 4 streams, both ways.
func BenchmarkTapIperf(b *testing.B) {
	if _, err := exec.LookPath("iperf3"); err != nil {
		b.Skip("needs root and iperf3: ", err)
	}
	for _, offloads := range []string{"on", "off"} {
		l := newTapLAN(b)
		// A bare pair beside the bond's, the same but for the bond.
		netnstest.Veth(b, l.box, "bare0", l.far, "bare1")
		l.box.AddAddress("bare0", "10.8.0.2/24")
		l.far.AddAddress("bare1", "10.8.0.1/24")
		for _, at := range []struct {
			ns    *netnstest.Namespace
			names []string
		}{{l.near, []string{"s0", "s1"}}, {l.far, []string{"p0", "p1", "bare1"}}, {l.box, []string{"bare0"}}} {
			for _, name := range at.names {
				at.ns.Run("ethtool", "-K", name, "tso", offloads, "gso", offloads, "gro", offloads, "tx", offloads)
			}
		}
		i := l.tap("--mode", "active-backup")
		l.far.Run("ethtool", "-K", "br0", "tso", offloads, "gso", offloads, "tx", offloads)
		for _, streams := range []int{1, 4} {
			for _, way := range []string{"send", "receive"} {
				b.Run(fmt.Sprintf("offloads=%s/%s/streams=%d", offloads, way, streams), func(b *testing.B) {
					var bond, bare float64
					for b.Loop() {
						bond += iperf(b, l, "10.9.0.1", streams, way == "receive")
						bare += iperf(b, l, "10.8.0.1", streams, way == "receive")
					}
					b.ReportMetric(bond/float64(b.N), "bond-Gbit/s")
					b.ReportMetric(bare/float64(b.N), "bare-Gbit/s")
					b.ReportMetric(bond/bare, "ratio")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
		i.end()
	}
}

// iperf has iperf3 in the box send to the far kernel, or receive from it, and
// returns the rate in Gbit/s at who receives.
func iperf(b *testing.B, l *tapLAN, to string, streams int, reverse bool) float64 {
	b.Helper()
	server := exec.Command("iperf3", "--server", "--one-off", "--bind", to)
	l.far.Start(server)
	eventually(b, "iperf3 listens", func() bool {
		_, err := l.far.TryRun("sh", "-c", "ss -ltn | grep -q :5201")
		return err == nil
	})
	args := []string{"--client", to, "--time", "2", "--parallel", fmt.Sprint(streams), "--json"}
	if reverse {
		args = append(args, "--reverse")
	}
	out := l.box.Run("iperf3", args...)
	server.Wait()
	var report struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return report.End.Received.Rate / 1e9
}
