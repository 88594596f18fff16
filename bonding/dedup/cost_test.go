package dedup

import (
	"sync"
	"testing"

	"bondstack/link/linktest"
)

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations are counted without the race detector")
	}
	table := New(Options{Entries: 1024, Slaves: 2})
	key := uint64(0)
	if got := testing.AllocsPerRun(10000, func() {
		table.Copy(0, key, uint32(key>>10))
		table.Copy(1, key, uint32(key>>10))
		key++
	}); got != 0 {
		t.Errorf("Copy: %v allocations a frame, want 0", got)
	}
	for name, b := range samples(linktest.NewRand(t), 1400) {
		pkt := frame(b, 50)
		if got := testing.AllocsPerRun(100, func() { table.Key(b[:14], pkt) }); got != 0 {
			t.Errorf("Key of %s: %v allocations, want 0", name, got)
		}
		pkt.DecRef()
	}
}

// BenchmarkCopy gives the time for one frame on one slave: alone, the second
// time on another slave by the same goroutine, and with each slave's frames
// from a goroutine of its own, where the time is that for a frame on all
// slaves.
func BenchmarkCopy(b *testing.B) {
	b.Run("new", func(b *testing.B) {
		table := New(Options{})
		b.ReportAllocs()
		for i := range b.N {
			table.Copy(0, uint64(i), 1)
		}
	})
	b.Run("new+copy", func(b *testing.B) {
		table := New(Options{})
		b.ReportAllocs()
		for i := range b.N {
			table.Copy(0, uint64(i), 1)
			table.Copy(1, uint64(i), 1)
		}
	})
	b.Run("2goroutines", func(b *testing.B) {
		table := New(Options{})
		b.ReportAllocs()
		var wg sync.WaitGroup
		for slave := range 2 {
			wg.Go(func() {
				for i := range b.N {
					table.Copy(slave, uint64(i), 1)
				}
			})
		}
		wg.Wait()
	})
}

// BenchmarkKey gives the time for the key of a frame.
func BenchmarkKey(b *testing.B) {
	for _, c := range []struct {
		name string
		b    []byte
	}{
		{"tcp4/66", ethernet(0x0800, ip4(6, 0, make([]byte, 32)))},
		{"tcp4/64000", ethernet(0x0800, ip4(6, 0, make([]byte, 64000-34)))},
		{"udp4/64", ethernet(0x0800, ip4(17, 0, make([]byte, 30)))},
		{"udp4/1514", ethernet(0x0800, ip4(17, 0, make([]byte, 1480)))},
		{"udp4/64000", ethernet(0x0800, ip4(17, 0, make([]byte, 64000-34)))},
	} {
		b.Run(c.name, func(b *testing.B) {
			pkt := frame(c.b)
			defer pkt.DecRef()
			b.ReportAllocs()
			for b.Loop() {
				Key(seed, c.b[:14], pkt)
			}
		})
	}
}
