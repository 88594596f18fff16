package dedup

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"bondstack/link/linktest"
)

// receive has each link's frames arrive from a goroutine of its own, with the
// links at most window frames apart, and returns what was delivered.
func receive(table *Table, links [][]uint64, window int, seed uint64) map[uint64]int {
	parts := make([]map[uint64]int, len(links))
	var wg sync.WaitGroup
	gate := newGate(len(links))
	for slave, frames := range links {
		parts[slave] = map[uint64]int{}
		r := rand.New(rand.NewPCG(seed, uint64(slave)))
		wg.Go(func() {
			for i, key := range frames {
				if window > 0 && i%window == 0 {
					gate.wait()
				}
				if r.IntN(64) == 0 {
					runtime.Gosched()
				}
				if !table.Copy(slave, key, 3) {
					parts[slave][key]++
				}
			}
		})
	}
	wg.Wait()
	all := map[uint64]int{}
	for _, part := range parts {
		for key, n := range part {
			all[key] += n
		}
	}
	return all
}

// gate lets goroutines pass once all of them are there.
type gate struct {
	mu      sync.Mutex
	cond    *sync.Cond
	n, here int
	round   int
}

func newGate(n int) *gate {
	g := &gate{n: n}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *gate) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.here++; g.here == g.n {
		g.here = 0
		g.round++
		g.cond.Broadcast()
		return
	}
	for round := g.round; round == g.round; {
		g.cond.Wait()
	}
}

// TestConcurrent has each frame come out exactly as often as it was sent.
func TestConcurrent(t *testing.T) {
	r := linktest.NewRand(t)
	for _, slaves := range []int{2, 3, 8} {
		sent := sequence(r, 20000)
		links := make([][]uint64, slaves)
		for i := range links {
			links[i] = sent
		}
		// A large table without, and a small one with a bound on the lag.
		checkDelivered(t, receive(New(Options{Entries: 1 << 16, Slaves: slaves}), links, 0, r.Uint64()), tally(sent))
		checkDelivered(t, receive(New(Options{Entries: 1024, Slaves: slaves}), links, 250, r.Uint64()), tally(sent))
	}
}

// TestConcurrentLoss has each link lose frames, which come from the others.
func TestConcurrentLoss(t *testing.T) {
	r := linktest.NewRand(t)
	for _, one := range []int{2, 10, 1000} {
		sent := sequence(r, 20000)
		links := [][]uint64{lose(r, sent, one), lose(r, sent, one), lose(r, sent, one)}
		checkDelivered(t, receive(New(Options{Entries: 1 << 16, Slaves: 3}), links, 0, r.Uint64()), wantDelivered(links))
	}
}

// TestConcurrentSame has all slaves bring one and the same frame, all the time.
func TestConcurrentSame(t *testing.T) {
	r := linktest.NewRand(t)
	train := make([]uint64, 20000)
	links := [][]uint64{train, train, train, train}
	checkDelivered(t, receive(New(Options{Slaves: 4}), links, 0, r.Uint64()), map[uint64]int{0: len(train)})
}

// TestForgetWhileOthersReceive has one index come and go.
func TestForgetWhileOthersReceive(t *testing.T) {
	r := linktest.NewRand(t)
	table := New(Options{Entries: 1 << 16, Slaves: 3})
	sent := sequence(r, 20000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 50 {
			table.Forget(2)
			runtime.Gosched()
		}
	})
	checkDelivered(t, receive(table, [][]uint64{sent, sent}, 0, r.Uint64()), tally(sent))
	wg.Wait()
}
