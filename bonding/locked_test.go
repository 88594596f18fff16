package bonding_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

// A LockedBond does what a Bond does, in every mode and while slaves come and go:
// else measuring against it would say nothing.
func TestLockedBond(t *testing.T) {
	for _, m := range writeModes {
		b, err := bonding.NewLocked(m.opts)
		if err != nil {
			t.Fatal(err)
		}
		var ends []*linktest.Recorder
		for i := range 3 {
			ends = append(ends, linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(fmt.Sprint("eth", i))}))
			if err := b.Enslave(fmt.Sprint("eth", i), ends[i], bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		up := &linktest.Sink{}
		b.Attach(up)
		var stop atomic.Bool
		var wg sync.WaitGroup
		var sent atomic.Uint64
		for g := range 2 {
			wg.Go(func() {
				for i := 0; !stop.Load() || i < 50; i++ {
					linktest.Write(b, linktest.Flow4(2*i+g).UDP([]byte("x")))
					sent.Add(1)
				}
			})
		}
		for range 20 {
			if err := b.Release("eth2"); err != nil {
				t.Fatal(err)
			}
			if err := b.Enslave("eth2", ends[2], bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		stop.Store(true)
		wg.Wait()
		st := b.Status()
		if least := sent.Load(); st.Counters.TxPackets < least || st.Counters.TxDropped != 0 {
			t.Errorf("%s: %d packets sent and %d dropped, want %d or more and 0", m.name, st.Counters.TxPackets, st.Counters.TxDropped, least)
		}
		f := linktest.Flow4(1)
		f.DstMAC = b.LinkAddress()
		ends[0].Inject(f.UDP([]byte("x")))
		if n := len(up.Drain()); n != 1 {
			t.Errorf("%s: %d frames delivered, want 1", m.name, n)
		}
		b.Close()
	}
	if _, err := bonding.NewLocked(bonding.Options{MTU: 1}); err == nil {
		t.Error("options that New refuses are taken")
	}
}
