package bonding_test

import (
	"fmt"
	"math"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link"
	"bondstack/link/linktest"
)

const mappedFlows = 4000

// flowOwners returns which slave carries each of many flows.
func (r *rig) flowOwners() []string {
	r.tb.Helper()
	owners := make([]string, mappedFlows)
	for _, l := range r.links {
		l.Drain()
	}
	for i := range owners {
		f := linktest.Flow4(i)
		f.Dst = addPort(f.Dst, uint16(i*7919))
		linktest.Write(r, f.UDP([]byte("x")))
		for name, l := range r.links {
			if n := len(l.Drain()); n == 1 && owners[i] == "" {
				owners[i] = name
			} else if n != 0 {
				r.tb.Fatalf("flow %d went by %s %d times, and by %q", i, name, n, owners[i])
			}
		}
	}
	return owners
}

func shareOf(owners []string, name string) float64 {
	n := 0
	for _, o := range owners {
		if o == name {
			n++
		}
	}
	return float64(n) / float64(len(owners))
}

func mappedRig(t *testing.T, slaves int) *rig {
	return newRig(t, bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: xmithash.Layer34, XmitHashMap: bonding.HashConsistent}, slaves)
}

// When a slave goes, by release or by its link, its flows move and no others;
// when it is back, under a new name too, all is as before. Modulo moves most.
func TestConsistentMapMovesOneSlavesFlows(t *testing.T) {
	r := mappedRig(t, 4)
	before := r.flowOwners()
	moves := func(what string, want bool) {
		t.Helper()
		after := r.flowOwners()
		moved := 0
		for i := range before {
			if before[i] != after[i] {
				moved++
				if want && before[i] != "eth2" {
					t.Fatalf("%s: a flow of %s moved to %s", what, before[i], after[i])
				}
			}
		}
		if share := float64(moved) / mappedFlows; want && (share != shareOf(before, "eth2") || math.Abs(share-0.25) > 0.05) || !want && moved != 0 {
			t.Errorf("%s: %.3f of the flows moved, eth2 had %.3f", what, share, shareOf(before, "eth2"))
		}
	}
	moves("nothing happens", false)
	r.carrier("eth2", false)
	moves("eth2 loses its carrier", true)
	r.carrier("eth2", true)
	moves("eth2 is back", false)
	r.do("-eth2")
	moves("eth2 is released", true)
	r.do("+eth2")
	moves("eth2 is enslaved again, as the last", false)

	r.set("xmit_hash_map", "modulo")
	before = r.flowOwners()
	r.carrier("eth2", false)
	after, moved := r.flowOwners(), 0
	for i := range before {
		if before[i] != after[i] {
			moved++
		}
	}
	if moved < mappedFlows/2 {
		t.Errorf("modulo: %d of %d flows moved, so the test shows nothing", moved, mappedFlows)
	}
}

// Weights are the slaves' speeds, or what was set; one of unknown speed counts as
// the fastest.
func TestConsistentMapWeights(t *testing.T) {
	r := mappedRig(t, 0)
	speeds := map[string]uint32{"eth0": 1000, "eth1": 3000, "eth2": link.SpeedUnknown}
	for _, name := range []string{"eth0", "eth1", "eth2"} {
		r.enslave(name, bonding.SlaveOptions{}, linktest.RecorderOptions{State: link.State{Up: true, Carrier: true, Speed: speeds[name]}})
	}
	check := func(what string, want ...float64) {
		t.Helper()
		owners := r.flowOwners()
		for i, w := range want {
			name := fmt.Sprintf("eth%d", i)
			if got := shareOf(owners, name); math.Abs(got-w) > 0.05 {
				t.Errorf("%s: %s has %.3f of the flows, want %.3f", what, name, got, w)
			}
		}
	}
	check("by speed", 1.0/7, 3.0/7, 3.0/7)
	r.links["eth0"].SetState(link.State{Up: true, Carrier: true, Speed: 6000})
	check("eth0 is faster", 6.0/15, 3.0/15, 6.0/15)
	r.set("weight", "eth2:1000")
	r.set("weight", "eth1:3000")
	check("eth2 was set", 0.6, 0.3, 0.1)
	if got, _ := r.Option("weight"); got != "eth0:0 eth1:3000 eth2:1000" || r.slave("eth2").Weight != 1000 {
		t.Errorf("weight reads %q, eth2's in the status is %d", got, r.slave("eth2").Weight)
	}
	r.set("weight", "eth2:0")
	check("eth2 by speed again", 6.0/15, 3.0/15, 6.0/15)
	for _, text := range []string{"eth2", "eth2:", "eth2:-1", "eth2:1000000001", "eth9:1", ":1"} {
		r.refuses("weight", text, bonding.ErrPrecondition)
	}
	if err := r.Enslave("eth3", linktest.NewRecorder(linktest.RecorderOptions{}), bonding.SlaveOptions{Weight: 1_000_000_001}); err == nil {
		t.Error("a weight of 1000000001 is taken")
	}
	r.enslave("eth3", bonding.SlaveOptions{Weight: 30_000}, linktest.RecorderOptions{})
	check("eth3 joins", 6.0/49, 3.0/49, 10.0/49, 30.0/49)
}
