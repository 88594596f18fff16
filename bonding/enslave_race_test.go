package bonding_test

import (
	"sync"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// A slave that joins while the bond's MTU and address are changed has the
// latest.
func TestEnslaveWhileTheBondChanges(t *testing.T) {
	for round := range 300 {
		b := benchBond(t, bonding.Options{}, linktest.NewRecorder(linktest.RecorderOptions{}))
		mac := tcpip.LinkAddress([]byte{2, 0, 0, 1, byte(round >> 8), byte(round)})
		link := linktest.NewRecorder(linktest.RecorderOptions{})
		var wg sync.WaitGroup
		wg.Go(func() { b.SetMTU(1300); b.SetLinkAddress(mac) })
		if err := b.Enslave("late", link, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if link.MTU() != 1300 || link.LinkAddress() != mac {
			t.Fatalf("the slave has MTU %d and %s, want 1300 and %s", link.MTU(), link.LinkAddress(), mac)
		}
		b.Close()
	}
}
