package main

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/stack"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// shapedPeer is a Linux bond in balance-rr whose links are shaped, and a host of
// ours on a bond at their other ends that counts what it is sent.
type shapedPeer struct {
	*lacpLab
	state    string
	bond     *bonding.Bond
	received atomic.Int64
}

// shapedTo is the rate of each link.
const shapedTo = "100mbit"

func newShapedPeer(b *testing.B, links int) *shapedPeer {
	b.Helper()
	p := &shapedPeer{lacpLab: newLACPLab(b, links, "linux.uml"), state: stateFolder(b)}
	args := []string{"start", "peer", "--ns", p.name, "--ip", "10.9.0.1/24"}
	for i := range links {
		p.near.Run("tc", "qdisc", "add", "dev", p.theirs(i), "root", "tbf", "rate", shapedTo, "burst", "16kb", "latency", "50ms")
		args = append(args, "--nic", p.theirs(i))
	}
	if out, err := p.script(p.state, "linux-bond.sh", append(args, "mode=balance-rr", "miimon=100")...); err != nil {
		b.Fatalf("start of the Linux bond: %v: %s", err, out)
	}
	b.Cleanup(func() {
		if out, err := p.script(p.state, "linux-bond.sh", "stop", "peer"); err != nil {
			b.Errorf("stop of the Linux bond: %v: %s", err, out)
		}
	})
	p.listen(b)
	return p
}

// listen sets up our end.
func (p *shapedPeer) listen(b *testing.B) {
	b.Helper()
	var err error
	if p.bond, err = bonding.New(bonding.Options{Mode: bonding.BalanceRR}); err != nil {
		b.Fatal(err)
	}
	for i := range p.n {
		var ep netstack.LinkEndpoint
		p.near.Do(func() { ep, _, err = openPacket(p.ours(i), linkOptions{}) })
		if err == nil {
			err = p.bond.Enslave(p.ours(i), ep, bonding.SlaveOptions{})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	h, err := stack.NewHost(p.bond, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/24")}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close() })
	l, err := h.Listen("tcp", ":9")
	if err != nil {
		b.Fatal(err)
	}
	go serveEach(l, func(c net.Conn) { io.Copy(p, c) })
}

// Write counts.
func (p *shapedPeer) Write(b []byte) (int, error) {
	p.received.Add(int64(len(b)))
	return len(b), nil
}

// round has the Linux bond send by one connection, and returns bits a second of
// what has arrived, slow start left out.
func (p *shapedPeer) round(b *testing.B) float64 {
	var sender sync.WaitGroup
	sender.Go(func() {
		// timeout ends the sender, which is no failure.
		_, _ = p.script(p.state, "linux-bond.sh", "exec", "peer", "timeout 4 bash -c 'cat /dev/zero >/dev/tcp/10.9.0.2/9'")
	})
	before := p.received.Load()
	eventually(b, "the first bytes come", func() bool { return p.received.Load() > before })
	time.Sleep(time.Second)
	from, start := p.received.Load(), time.Now()
	time.Sleep(2500 * time.Millisecond)
	bits, elapsed := 8*float64(p.received.Load()-from), time.Since(start)
	sender.Wait()
	return bits / elapsed.Seconds()
}

// BenchmarkLinuxRoundRobin gives what one TCP stream from Linux's own bond in
// balance-rr over two links of 100 Mbit/s carries to ours, over that of one such
// link, in turn. It needs root, and the lab (see lacpLab).
func BenchmarkLinuxRoundRobin(b *testing.B) {
	one, two := newShapedPeer(b, 1), newShapedPeer(b, 2)
	var ones, twos, ratios []float64
	for b.Loop() {
		x, y := one.round(b), two.round(b)
		ones, twos, ratios = append(ones, x/1e6), append(twos, y/1e6), append(ratios, y/x)
	}
	b.Logf("Mbit/s of one link %.0f, of two %.0f; what was done to restore order: %+v", ones, twos, two.bond.Status().Reorder)
	median := func(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }
	b.ReportMetric(median(ones), "one-Mbit/s")
	b.ReportMetric(median(twos), "two-Mbit/s")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(0, "ns/op")
}
