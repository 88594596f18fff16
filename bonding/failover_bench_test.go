package bonding_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/wire"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// firstFrame is a dispatcher that tells when a frame came first after it was
// armed.
type firstFrame struct {
	armed atomic.Bool
	at    chan time.Time
}

func (f *firstFrame) DeliverNetworkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {
	if f.armed.Load() && f.armed.CompareAndSwap(true, false) {
		f.at <- time.Now()
	}
}

func (*firstFrame) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// BenchmarkFailover measures, on two wires, the time from the call that cuts
// the active slave's wire to the first frame at the far end of the other, with
// a writer that does not pause. One operation is 100 cuts.
func BenchmarkFailover(b *testing.B) {
	const cuts = 100
	bond, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bond.Close)
	var wires [2]*wire.Endpoint
	var first [2]*firstFrame
	for i := range wires {
		near, far, err := wire.New(wire.Options{B: wire.EndOptions{Promiscuous: true}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(far.Close)
		wires[i], first[i] = near, &firstFrame{at: make(chan time.Time, 1)}
		far.Attach(first[i])
		if err := bond.Enslave(fmt.Sprintf("eth%d", i), near, bonding.SlaveOptions{}); err != nil {
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
			runtime.Gosched()
		}
	}()
	defer func() { stop.Store(true); <-done }()

	var took []time.Duration
	active := 0
	for b.Loop() {
		for range cuts {
			next := first[1-active]
			for bond.Status().Slaves[1-active].MIIStatus != "up" {
				runtime.Gosched()
			}
			next.armed.Store(true)
			start := time.Now()
			wires[active].SetCarrier(false)
			took = append(took, (<-next.at).Sub(start))
			wires[active].SetCarrier(true)
			active = 1 - active
		}
	}
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
