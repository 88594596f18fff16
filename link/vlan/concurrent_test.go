package vlan_test

import (
	"sync"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/vlan"
)

// Devices come and go, change their addresses and are attached while frames pass
// both ways and the link changes.
func TestConcurrent(t *testing.T) {
	b, err := bonding.New(bonding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	if err := b.Enslave("eth0", r, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	trunk := newTrunk(t, b)
	var count linktest.Counter
	trunk.Attach(&count)
	stays := add(t, trunk, q(1), vlan.Options{})
	stays.Attach(&count)
	const rounds = 300
	frames := [][]byte{to(baseMAC), linktest.VLAN(to(baseMAC), 0x8100, 1), linktest.VLAN(to(ownMAC), 0x8100, 2), linktest.VLAN(to(ownMAC), 0x8100, 3)}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for range rounds {
				for _, f := range frames {
					r.Inject(f)
				}
			}
		})
		wg.Go(func() {
			for range rounds {
				d, err := trunk.Add(q(uint16(2+i)), vlan.Options{LinkAddress: ownMAC})
				if err != nil {
					t.Error(err)
					return
				}
				d.Attach(&count)
				d.SetPromiscuous(true)
				linktest.Write(d, from(ownMAC))
				d.SetLinkAddress("")
				d.AddLinkAddress(ownMAC)
				d.UseRoutes(nil)
				d.Close()
			}
		})
	}
	wg.Go(func() {
		for range rounds {
			r.SetCarrier(false)
			trunk.Attach(nil)
			stays.Attach(nil)
			r.SetCarrier(true)
			trunk.Attach(&count)
			stays.Attach(&count)
			linktest.Write(stays, from(b.LinkAddress())) // which the bond drops without a carrier
			trunk.Stats()
		}
	})
	wg.Wait()
	if got := r.Calls().Filter[ownMAC]; got != 0 {
		t.Errorf("the link still has an address that was removed")
	}
	before := count.Packets.Load()
	r.Inject(frames[0])
	r.Inject(frames[1])
	if got := count.Packets.Load() - before; got != 2 {
		t.Errorf("%d of 2 frames are delivered in the end", got)
	}
	r.Drain()
	trunk.Close()
}
