package reorder

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Each link's goroutine delivers its part of several streams: all come out in
// order and once, though any goroutine delivers them, and what is delivered may
// come back into the stage.
func TestOrderHoldsThroughDelivery(t *testing.T) {
	const links, flows, pieces = 3, 6, 1500
	var mu sync.Mutex
	next := map[uint32]uint32{}
	var s *Stage
	s = New(Options{Hold: time.Hour, Deliver: func(pkt *stack.PacketBuffer) {
		flow, k := pkt.Hash>>16, pkt.Hash&0xffff
		mu.Lock()
		if next[flow] != k {
			t.Errorf("flow %d: piece %d was delivered when %d was due", flow, k, next[flow])
		}
		next[flow] = k + 1
		mu.Unlock()
		if k%64 == 0 {
			runtime.Gosched()
		}
		if flow < flows { // an answer that comes back by the same goroutine
			echo := packet(stream6(int(flow)).piece(int(k)))
			defer echo.DecRef()
			echo.Hash = (flow+flows)<<16 | k
			s.Receive(0, echo)
		}
	}})
	for l := range links {
		pkt := packet(stream4(0).kind(0, "ack"))
		s.seen.Or(1 << l)
		pkt.DecRef()
	}
	for f := range flows {
		pkt := packet(stream4(f).piece(0))
		pkt.Hash = uint32(f) << 16
		s.Receive(0, pkt)
		pkt.DecRef()
	}
	var wg sync.WaitGroup
	for l := range links {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(l)))
			for k := 1 + l; k < pieces; k += links {
				for f := range flows {
					pkt := packet(stream4(f).piece(k))
					pkt.Hash = uint32(f)<<16 | uint32(k)
					s.Receive(l, pkt)
					pkt.DecRef()
				}
				if rnd.IntN(30) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	for f := range uint32(2 * flows) {
		if next[f] != pieces {
			t.Errorf("flow %d: %d pieces were delivered, want %d", f, next[f], pieces)
		}
	}
	if st := s.State(); st.Frames != 0 || st.Bytes != 0 {
		t.Errorf("the stage holds %+v", st)
	}
	s.Close()
}

// Streams, losses, the timer, links that go, and Close, all at once: nothing is
// lost, delivered twice or kept.
func TestConcurrentChaos(t *testing.T) {
	const links, pieces = 4, 3000
	var mu sync.Mutex
	delivered := map[uint32]int{}
	s := New(Options{Hold: 20 * time.Microsecond, Flows: 8, Bytes: 1 << 16, Deliver: func(pkt *stack.PacketBuffer) {
		mu.Lock()
		delivered[pkt.Hash]++
		mu.Unlock()
	}})
	var wg sync.WaitGroup
	for l := range links {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(2, uint64(l)))
			for i := range pieces {
				kind := []string{"", "", "", "", "", "", "", "", "", "", "", "", "", "fin", "rst", "syn"}[rnd.IntN(16)]
				pkt := packet(stream4(rnd.IntN(12)).kind(i/2+rnd.IntN(8), kind))
				pkt.Hash = uint32(l*pieces + i)
				s.Receive(l, pkt)
				pkt.DecRef()
			}
		})
	}
	wg.Go(func() {
		for i := range 200 {
			s.Gone(1 << (i % links))
			runtime.Gosched()
		}
	})
	wg.Wait()
	s.Close()
	if n := len(delivered); n != links*pieces {
		t.Errorf("%d frames were delivered, want %d", n, links*pieces)
	}
	for id, n := range delivered {
		if n != 1 {
			t.Errorf("frame %d was delivered %d times", id, n)
		}
	}
	if st := s.State(); st.Frames != 0 || st.Bytes != 0 {
		t.Errorf("the stage holds %+v", st)
	}
}

// While one goroutine is held up in delivery, others leave it their frames, up
// to the bound; then they deliver themselves, and nothing is lost.
func TestDeliveryIsHeldUp(t *testing.T) {
	var mu sync.Mutex
	var got []uint32
	entered, resume := make(chan bool), make(chan bool)
	s := New(Options{Bytes: 10 * 1500, Deliver: func(pkt *stack.PacketBuffer) {
		if pkt.Hash == 0 {
			entered <- true
			<-resume
		}
		mu.Lock()
		got = append(got, pkt.Hash)
		mu.Unlock()
	}})
	give := func(link, k int) {
		pkt := packet(stream4(0).piece(k))
		pkt.Hash = uint32(k)
		s.Receive(link, pkt)
		pkt.DecRef()
	}
	var wg sync.WaitGroup
	wg.Go(func() { give(0, 0) })
	<-entered
	for k := 1; k <= 40; k++ {
		give(1, k)
	}
	if left := int(s.bytes.Load()); left > 10*1500 || len(got) == 0 || int(s.counters.Counts().Overflow) != len(got) {
		t.Errorf("%d bytes are left to the deliverer, %d frames went past it, counts %+v", left, len(got), s.counters.Counts())
	}
	close(resume)
	wg.Wait()
	if len(got) != 41 || s.State().Bytes != 0 {
		t.Errorf("%d frames were delivered, want 41; state %+v", len(got), s.State())
	}
}
