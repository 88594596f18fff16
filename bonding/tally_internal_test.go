package bonding

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Nothing is lost when a half fills up, by many packets or by many bytes, and a
// reader never sees a sum fall.
func TestTally(t *testing.T) {
	for _, tt := range []struct{ packets, bytes, adds int }{
		{1, 60, 1000},
		{1<<16 - 1, 1 << 16, 5000},   // the packets' half fills up
		{1, 1<<32 - 1, 5000},         // the bytes' half
		{1<<16 - 1, 1<<32 - 1, 5000}, // both
	} {
		var c tally
		var wg sync.WaitGroup
		var done atomic.Bool
		for range 3 {
			wg.Go(func() {
				for range tt.adds {
					c.add(tt.packets, tt.bytes)
				}
			})
		}
		var reader sync.WaitGroup
		reader.Go(func() {
			var packets, bytes uint64
			for !done.Load() {
				p, b := c.load()
				if p < packets || b < bytes {
					t.Errorf("%+v: the sums fell from %d, %d to %d, %d", tt, packets, bytes, p, b)
				}
				packets, bytes = p, b
			}
		})
		wg.Wait()
		done.Store(true)
		reader.Wait()
		if p, b := c.load(); p != uint64(3*tt.adds*tt.packets) || b != uint64(3*tt.adds)*uint64(tt.bytes) {
			t.Errorf("%+v: %d packets, %d bytes, want %d, %d", tt, p, b, 3*tt.adds*tt.packets, uint64(3*tt.adds)*uint64(tt.bytes))
		}
	}
}
