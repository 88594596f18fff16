package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"bondstack/link/netnstest"
)

// offloadsOff are what is without offloads in a benchmark: nothing; the links, so
// the slaves and the bare veth, while the bond's device, which is none of the
// links, has those that it is made with; and the bond's device as well, as a user
// may have turned them off there.
var offloadsOff = []string{"none", "links", "links+bond0"}

// farEnds are what the far kernel has its addresses on: the other end of the
// active slave and that of the bare veth; or a bridge each, with those as ports.
var farEnds = []string{"veth", "bridge"}

// benchmarkLAN is a tapLAN with a bare veth pair beside the bond's slaves, the
// same kind of far end for both, and without the offloads of one of offloadsOff.
func benchmarkLAN(b *testing.B, off, end string) (*tapLAN, *instance) {
	b.Helper()
	for _, program := range []string{"iperf3", "ethtool"} {
		if _, err := exec.LookPath(program); err != nil {
			b.Skipf("needs root and %s: %v", program, err)
		}
	}
	l := newTapLAN(b)
	netnstest.Veth(b, l.box, "bare0", l.far, "bare1")
	l.box.AddAddress("bare0", "10.8.0.2/24")
	bareEnd := "bare1"
	if end == "bridge" {
		bareEnd = "br1"
		l.far.Bridge(bareEnd)
		l.far.Run("ip", "link", "set", "bare1", "master", bareEnd)
	} else {
		l.far.Run("ip", "link", "set", "p0", "nomaster")
		l.far.Run("ip", "address", "delete", "10.9.0.1/24", "dev", "br0")
		l.far.AddAddress("p0", "10.9.0.1/24")
	}
	l.far.AddAddress(bareEnd, "10.8.0.1/24")
	// The bridge is in the place of a switch: what Linux's firewall costs there
	// is not the bond's. Without its module there is nothing to turn off.
	for _, family := range []string{"iptables", "ip6tables"} {
		_, _ = l.far.TryRun("sysctl", "-w", "net.bridge.bridge-nf-call-"+family+"=0")
	}
	turnOff := func(ns *netnstest.Namespace, names ...string) {
		for _, name := range names {
			ns.Run("ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off", "tx", "off")
		}
	}
	if off != "none" {
		turnOff(l.near, "s0", "s1")
		turnOff(l.far, "p0", "p1", "bare1", "br0", bareEnd)
		turnOff(l.box, "bare0")
	}
	i := l.tap("--mode", "active-backup", "--exclusive")
	if off == "links+bond0" {
		turnOff(l.box, "bond0")
		l.box.Run("ip", "link", "set", "bond0", "txqueuelen", "5000") // see docs/tap.md
	}
	return l, i
}

// BenchmarkTAPIperf prints what iperf3 reaches in 1 s, unmodified, to a kernel
// peer: on the kernel device of a bond (active-backup, two veths) and on one bare
// veth, in turns, by 1 and 4 streams, both ways. Beside the medians, that of the
// quotients of each turn, and the CPU time of all who take part for each GB.
func BenchmarkTAPIperf(b *testing.B) {
	for _, off := range offloadsOff {
		for _, end := range farEnds {
			l, i := benchmarkLAN(b, off, end)
			for _, streams := range []int{1, 4} {
				for _, way := range []string{"send", "receive"} {
					b.Run(fmt.Sprintf("off=%s/far=%s/%s/streams=%d", off, end, way, streams), func(b *testing.B) {
						l.compare(b, streams, way == "receive")
					})
				}
			}
			i.end()
		}
	}
}

// compare runs iperf3 on bond and bare veth in turns, and reports what came of it.
func (l *tapLAN) compare(b *testing.B, streams int, reverse bool) {
	var bond, bare iperfRuns
	for b.Loop() {
		bond.run(b, l, "10.9.0.1", streams, reverse)
		bare.run(b, l, "10.8.0.1", streams, reverse)
	}
	var ratios []float64
	for n := range bond.rates {
		ratios = append(ratios, bond.rates[n]/bare.rates[n])
	}
	b.ReportMetric(middle(bond.rates), "bond-Gbit/s")
	b.ReportMetric(middle(bare.rates), "bare-Gbit/s")
	b.ReportMetric(middle(ratios), "ratio")
	b.ReportMetric(middle(bond.costs), "bond-CPU-s/GB")
	b.ReportMetric(middle(bare.costs), "bare-CPU-s/GB")
	b.ReportMetric(0, "ns/op")
}

// iperfRuns are the rates of runs in Gbit/s, and the CPU time of each in seconds
// for a GB.
type iperfRuns struct{ rates, costs []float64 }

// run adds a run of 1 s.
func (r *iperfRuns) run(b *testing.B, l *tapLAN, to string, streams int, reverse bool) {
	b.Helper()
	server := l.iperfServer(b, to)
	before := processorTime(b)
	rate, bytes := l.iperf(b, to, 1, streams, reverse)()
	server.Wait()
	r.rates = append(r.rates, rate/1e9)
	r.costs = append(r.costs, (processorTime(b)-before).Seconds()/bytes*1e9)
}

// processorTime is the CPU time of this process and of its children that have
// ended.
func processorTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// iperfServer starts iperf3 at an address of the far kernel, for one client.
func (l *tapLAN) iperfServer(b *testing.B, at string) *exec.Cmd {
	b.Helper()
	server := exec.Command("iperf3", "--server", "--one-off", "--bind", at)
	l.far.Start(server)
	eventually(b, "iperf3 listens", func() bool {
		_, err := l.far.TryRun("sh", "-c", "ss -ltn | grep -q :5201")
		return err == nil
	})
	return server
}

// iperf has iperf3 in the box send to the far kernel for some seconds, or receive
// from it, and returns a function that waits for the end and returns the rate in
// bit/s and the bytes at who receives.
func (l *tapLAN) iperf(b *testing.B, to string, seconds, streams int, reverse bool) (end func() (rate, bytes float64)) {
	b.Helper()
	args := []string{"--client", to, "--time", fmt.Sprint(seconds), "--parallel", fmt.Sprint(streams), "--json"}
	if reverse {
		args = append(args, "--reverse")
	}
	client := exec.Command("iperf3", args...)
	var out bytes.Buffer
	client.Stdout = &out
	l.box.Start(client)
	return func() (rate, bytes float64) {
		b.Helper()
		if err := client.Wait(); err != nil {
			b.Fatalf("iperf3: %v: %s", err, &out)
		}
		var report struct {
			End struct {
				Received struct {
					Rate  float64 `json:"bits_per_second"`
					Bytes float64 `json:"bytes"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			b.Fatalf("%v: %s", err, &out)
		}
		return report.End.Received.Rate, report.End.Received.Bytes
	}
}

// BenchmarkTAPCut cuts the active link in mid-run of iperf3, while the far kernel
// is pinged every 5 ms, and prints the longest time between two replies: after the
// cut, and, in the same run, before it, where only the machine delays them. The
// time that was lost is 5 ms for each ping that has no reply.
func BenchmarkTAPCut(b *testing.B) {
	for _, off := range offloadsOff[:2] {
		l, i := benchmarkLAN(b, off, "bridge")
		for _, way := range []string{"send", "receive"} {
			b.Run(fmt.Sprintf("off=%s/%s", off, way), func(b *testing.B) {
				var before, after, lost []float64
				for b.Loop() {
					p := l.pingThroughCut(b, i, way == "receive")
					before, after, lost = append(before, p.before), append(after, p.after), append(lost, p.lost)
				}
				b.ReportMetric(middle(after), "gap-ms")
				b.ReportMetric(slices.Max(after), "worst-gap-ms")
				b.ReportMetric(middle(before), "gap-before-ms")
				b.ReportMetric(5*slices.Max(lost), "worst-lost-ms")
				b.ReportMetric(0, "ns/op")
			})
		}
		i.end()
	}
}

// pings are the longest gaps between two replies in ms, before a cut and after it,
// and how many replies never came.
type pings struct{ before, after, lost float64 }

// replyAt is where a line of ping -D tells when a reply came, and its number.
var replyAt = regexp.MustCompile(`(?m)^\[(\d+\.\d+)\].* icmp_seq=(\d+) `)

// pingThroughCut cuts the active link 1 s after iperf3 began, mends it, and
// returns how the pings fared.
func (l *tapLAN) pingThroughCut(b *testing.B, i *instance, reverse bool) (p pings) {
	b.Helper()
	active := i.status().ActiveSlave
	server := l.iperfServer(b, "10.9.0.1")
	ping := exec.Command("ping", "-D", "-n", "-i", "0.005", "-w", "2", "10.9.0.1")
	var out bytes.Buffer
	ping.Stdout = &out
	l.box.Start(ping)
	end := l.iperf(b, "10.9.0.1", 2, 1, reverse)
	time.Sleep(time.Second)
	at := float64(time.Now().UnixNano()) / 1e9
	l.far.Down(peer(active))
	i.await("failover", func(st instanceStatus) bool { return st.ActiveSlave != active })
	end()
	server.Wait()
	ping.Wait() // 1 where a reply was lost
	l.far.Up(peer(active))
	i.await("both up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	matches := replyAt.FindAllStringSubmatch(out.String(), -1)
	if len(matches) < 100 {
		b.Fatalf("%d replies: %s", len(matches), &out)
	}
	last, number := 0.0, 0
	for n, m := range matches {
		t, _ := strconv.ParseFloat(m[1], 64)
		number, _ = strconv.Atoi(m[2])
		switch gap := (t - last) * 1e3; {
		case n == 0:
		case t < at:
			p.before = max(p.before, gap)
		default:
			p.after = max(p.after, gap)
		}
		last = t
	}
	p.lost = float64(number - len(matches))
	return p
}
