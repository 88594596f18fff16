package main

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/netnstest"
	"bondstack/link/packet"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// firstFrame is a dispatcher that tells when a frame came first after it was
// armed.
type firstFrame struct {
	armed atomic.Bool
	at    chan time.Time
}

func (f *firstFrame) DeliverNetworkPacket(tcpip.NetworkProtocolNumber, *netstack.PacketBuffer) {
	if f.armed.CompareAndSwap(true, false) {
		f.at <- time.Now()
	}
}

func (*firstFrame) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *netstack.PacketBuffer) {}

// BenchmarkFailover measures, on two veth pairs, the time from the call that
// sets the active slave's peer down to the first frame at the peer of the other
// slave, with a writer that never pauses for long. One operation is 100 cuts.
func BenchmarkFailover(b *testing.B) {
	const cuts = 100
	near, far := netnstest.New(b), netnstest.New(b)
	bond, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bond.Close)
	h, err := netlink.NewHandleAt(netns.NsHandle(far.File().Fd()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(h.Close)
	var slaves, peers [2]*packet.Endpoint
	var links [2]netlink.Link
	var first [2]*firstFrame
	open := func(name string) (ep *packet.Endpoint) {
		if ep, err = packet.New(name, packet.Options{}); err != nil {
			b.Fatal(err)
		}
		return ep
	}
	for i, name := range []string{"s0", "s1"} {
		netnstest.Veth(b, near, name, far, peer(name))
		near.Do(func() { slaves[i] = open(name) })
		far.Do(func() { peers[i] = open(peer(name)) })
		b.Cleanup(peers[i].Close)
		first[i] = &firstFrame{at: make(chan time.Time, 1)}
		peers[i].SetPromiscuous(true)
		peers[i].Attach(first[i])
		if links[i], err = h.LinkByName(peer(name)); err != nil {
			b.Fatal(err)
		}
		if err := bond.Enslave(name, slaves[i], bonding.SlaveOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	bond.Attach(&linktest.Counter{})
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			linktest.Write(bond, linktest.Flow4(0).UDP([]byte("frame")))
			time.Sleep(50 * time.Microsecond)
		}
	}()
	defer func() { stop.Store(true); <-done }()

	bothUp := func() bool { return link.StateOf(slaves[0]).Usable() && link.StateOf(slaves[1]).Usable() }
	var took []time.Duration
	for b.Loop() {
		for range cuts {
			eventually(b, "both slaves up", func() bool {
				st := bond.Status()
				return bothUp() && st.Slaves[0].MIIStatus == "up" && st.Slaves[1].MIIStatus == "up"
			})
			active := 0
			if bond.Status().ActiveSlave == "s1" {
				active = 1
			}
			next := first[1-active]
			next.armed.Store(true)
			start := time.Now()
			if err := h.LinkSetDown(links[active]); err != nil {
				b.Fatal(err)
			}
			took = append(took, (<-next.at).Sub(start))
			if err := h.LinkSetUp(links[active]); err != nil {
				b.Fatal(err)
			}
		}
	}
	reportCuts(b, took)
}

// reportCuts reports how the times of cuts are spread.
func reportCuts(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))] }
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(at(0)), "min-ms")
	b.ReportMetric(ms(at(0.5)), "median-ms")
	b.ReportMetric(ms(at(0.99)), "p99-ms")
	b.ReportMetric(ms(at(1)), "max-ms")
	b.ReportMetric(0, "ns/op")
	b.Logf("%d cuts on %d CPUs: min %v, median %v, p99 %v, max %v", len(took), runtime.GOMAXPROCS(0), at(0), at(0.5), at(0.99), at(1))
}
