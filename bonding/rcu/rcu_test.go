package rcu

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// value is what readers use; retired is set by the writer once no reader may
// see the value any more.
type value struct{ retired atomic.Bool }

func TestSynchronizeWaitsForReaders(t *testing.T) {
	var d Domain
	var published atomic.Pointer[value]
	published.Store(new(value))
	const readers, swaps = 4, 100
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var bad, reads atomic.Int64
	var started sync.WaitGroup
	read := func() {
		s := d.Enter()
		v := published.Load()
		for range 20 {
			if v.retired.Load() {
				bad.Add(1)
			}
		}
		d.Exit(s)
		reads.Add(1)
	}
	for range readers {
		wg.Add(1)
		started.Add(1)
		go func() {
			defer wg.Done()
			read()
			started.Done()
			for {
				select {
				case <-stop:
					return
				default:
					read()
				}
			}
		}()
	}
	started.Wait()
	for range swaps {
		old := published.Swap(new(value))
		d.Synchronize()
		old.retired.Store(true)
	}
	close(stop)
	wg.Wait()
	if n := bad.Load(); n != 0 {
		t.Errorf("%d uses of a retired value in %d reads, want 0", n, reads.Load())
	}
}

func TestSynchronizeIsHeldByAnOpenSection(t *testing.T) {
	var d Domain
	outer := d.Enter()
	done := make(chan struct{})
	go func() { d.Synchronize(); close(done) }()
	// The writer flips the phase before it waits for outer. Sections that
	// begin after the flip must not be waited for, so a nested one may stay
	// open.
	for d.phase.Load() == 0 {
		select {
		case <-done:
			t.Fatal("Synchronize returned while a section was open")
		default:
		}
	}
	inner := d.Enter()
	select {
	case <-done:
		t.Fatal("Synchronize returned while a section was open")
	default:
	}
	d.Exit(outer)
	<-done
	d.Exit(inner)
}

// A reader that counts itself in a phase that has passed must hold up the next
// grace period.
func TestStaleReaderHoldsTheNextPeriod(t *testing.T) {
	var d Domain
	d.Synchronize() // phase 0 has passed, 1 is current
	stale := Section{stripe: 3, phase: 0}
	d.stripes[3].readers[0].Add(1)
	done := make(chan struct{})
	go func() { d.Synchronize(); close(done) }()
	for range 1000 {
		select {
		case <-done:
			t.Fatal("Synchronize did not wait for a reader of the passed phase")
		default:
		}
	}
	d.Exit(stale)
	<-done
}

func TestSectionsDoNotAllocate(t *testing.T) {
	var d Domain
	if n := testing.AllocsPerRun(1000, func() { d.Exit(d.Enter()) }); n != 0 {
		t.Errorf("a section allocates %v times, want 0", n)
	}
}

func TestGoroutinesSpreadOverStripes(t *testing.T) {
	var seen [Stripes]atomic.Int64
	var counted, done sync.WaitGroup
	const goroutines = 256
	counted.Add(goroutines)
	done.Add(goroutines)
	for range goroutines {
		go func() {
			seen[stripeOfStack()].Add(1)
			counted.Done()
			counted.Wait() // all have counted: no stack was used twice
			done.Done()
		}()
	}
	done.Wait()
	used := 0
	for i := range seen {
		if seen[i].Load() > 0 {
			used++
		}
	}
	if used < Stripes/2 {
		t.Errorf("%d goroutines use %d of %d stripes, want at least half", goroutines, used, Stripes)
	}
}

func BenchmarkSection(b *testing.B) {
	for _, g := range []int{1, 2, 8, 16} {
		b.Run(fmt.Sprintf("goroutines=%d", g), func(b *testing.B) {
			var d Domain
			b.ReportAllocs()
			b.SetParallelism(g)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					d.Exit(d.Enter())
				}
			})
		})
	}
}

func BenchmarkSynchronize(b *testing.B) {
	var d Domain
	b.ReportAllocs()
	for b.Loop() {
		d.Synchronize()
	}
}
