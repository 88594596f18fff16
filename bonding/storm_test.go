package bonding_test

import (
	"flag"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// storm is how long each mode's storm lasts. The long one is
//
//	go test -race -run TestStorm ./bonding -storm=30s
var storm = flag.Duration("storm", 2*time.Second, "how long TestStorm lasts in each mode")

// guard counts writes that come while it is set.
type guard struct {
	atomic.Bool
	late atomic.Uint64
}

// WritePackets implements stack.LinkWriter.
func (w *watched) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	if w.released.Load() {
		w.released.late.Add(1)
	}
	n, err := w.Endpoint.WritePackets(pkts)
	if w.released.Load() { // Release returned while a write was under way
		w.released.late.Add(1)
	}
	return n, err
}

// TestStorm releases and enslaves one slave after the other at both ends, the
// active ones too, while connections transfer. No transfer fails, no goroutine
// and no packet is left, and no write reaches an endpoint after its release.
func TestStorm(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.ActiveBackup, bonding.BalanceXOR, bonding.Broadcast, bonding.BalanceTLB} {
		t.Run(mode.String(), func(t *testing.T) {
			linktest.CheckPackets(t)
			linktest.CheckGoroutines(t)
			p := newHostPair(t, mode, 3)
			var stop atomic.Bool
			var arrived, transfers atomic.Uint64
			p.digest(func(n int) { arrived.Add(uint64(n)) })
			var wg sync.WaitGroup
			for i := range 2 {
				wg.Go(func() {
					for n := 0; !stop.Load(); n++ {
						if err := p.transfer(byte(2*n+i), 1<<20); err != nil {
							t.Errorf("transfer %d: %v", n, err)
							return
						}
						transfers.Add(1)
					}
				})
			}
			rounds := 0
			for end := time.Now().Add(*storm); (rounds < 6 || time.Now().Before(end)) && !t.Failed(); rounds++ {
				p.replace(rounds % 3)
				// Some bytes have to come through before the next.
				for want := arrived.Load() + 64<<10; arrived.Load() < want && !t.Failed(); {
					runtime.Gosched()
				}
			}
			stop.Store(true)
			wg.Wait()
			t.Logf("%d rounds, %d transfers of 1 MiB", rounds, transfers.Load())
			for side := range p.slaves {
				for _, w := range p.slaves[side] {
					if n := w.released.late.Load(); n != 0 {
						t.Errorf("side %d: %s was written to %d times after its release", side, w.name, n)
					}
				}
			}
		})
	}
	linktest.CheckPackets(t)
}

// replace releases a slave at both ends and enslaves it again.
func (p *hostPair) replace(k int) {
	p.tb.Helper()
	for side := range p.slaves {
		w := p.slaves[side][k]
		if err := p.bonds[side].Release(w.name); err != nil {
			p.tb.Fatalf("Release(%s) = %v", w.name, err)
		}
		w.released.Store(true)
	}
	for side := range p.slaves {
		p.enslave(side, p.slaves[side][k])
	}
}
