package bonding_test

import (
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/lacp"
	"bondstack/link/linktest"
	"bondstack/link/wire"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

// lacpPair returns two bonds of n wires that face each other, on one manual
// clock, both up.
func lacpPair(t *testing.T, n int, options map[string]string) (a, b *bonding.Bond, clock *faketime.ManualClock, wires []*wire.Endpoint) {
	t.Helper()
	clock = faketime.NewManualClock()
	bonds := make([]*bonding.Bond, 2)
	for i := range bonds {
		var err error
		if bonds[i], err = bonding.New(bonding.Options{Mode: bonding.IEEE8023AD, Clock: clock}); err != nil {
			t.Fatalf("New() = %v", err)
		}
		t.Cleanup(bonds[i].Close)
		if err := bonds[i].SetOptions(options); err != nil {
			t.Fatalf("SetOptions(%v) = %v", options, err)
		}
	}
	for i := range n {
		x, y, err := wire.New(wire.Options{Synchronous: true, Clock: clock})
		if err != nil {
			t.Fatalf("wire.New() = %v", err)
		}
		wires = append(wires, x)
		for j, ep := range []*wire.Endpoint{x, y} {
			if err := bonds[j].Enslave("eth"+string(rune('0'+i)), ep, bonding.SlaveOptions{}); err != nil {
				t.Fatalf("Enslave() = %v", err)
			}
		}
	}
	for _, bond := range bonds {
		bond.Attach(&linktest.Counter{})
	}
	return bonds[0], bonds[1], clock, wires
}

// run advances the clock in steps of 10 ms.
func run(clock *faketime.ManualClock, d time.Duration) {
	for ; d > 0; d -= 10 * time.Millisecond {
		clock.Advance(10 * time.Millisecond)
	}
}

// wantPorts checks which slaves carry data, and how many ports are active.
func wantPorts(t *testing.T, about string, b *bonding.Bond, carrier bool, sends ...bool) {
	t.Helper()
	st := b.Status()
	if st.Carrier != carrier {
		t.Errorf("%s: carrier is %v, want %v", about, st.Carrier, carrier)
	}
	for i, want := range sends {
		if got := st.Slaves[i].State == "active"; got != want {
			t.Errorf("%s: slave %s sends is %v, want %v: %s", about, st.Slaves[i].Name, got, want, st.Slaves[i].LACP.Explanation)
		}
	}
}

// Two bonds agree in the time that the standard takes to attach, not in eight
// seconds more; a lost link leaves at once and comes back.
func TestLACPPair(t *testing.T) {
	a, b, clock, wires := lacpPair(t, 2, map[string]string{"lacp_rate": "fast"})
	run(clock, 3*time.Second)
	for _, x := range []*bonding.Bond{a, b} {
		wantPorts(t, "after 3 s", x, true, true, true)
		st := x.Status()
		if agg := st.LACP.Aggregator; agg == nil || agg.Ports != 2 {
			t.Errorf("active aggregator is %+v, want 2 ports", agg)
		}
		for _, s := range st.Slaves {
			if s.LACP.Actor.State != 63 || s.LACP.Partner.State != 63 {
				t.Errorf("%s: actor %v, partner %v, want all but defaulted and expired", s.Name, s.LACP.Actor.Flags, s.LACP.Partner.Flags)
			}
		}
	}
	wires[0].SetCarrier(false)
	wantPorts(t, "carrier lost", a, true, false, true)
	wantPorts(t, "carrier lost", b, true, false, true)
	wires[0].SetCarrier(true)
	run(clock, 3*time.Second)
	wantPorts(t, "carrier back", a, true, true, true)
	wantPorts(t, "carrier back", b, true, true, true)
	for _, w := range wires {
		w.SetCarrier(false)
	}
	wantPorts(t, "all links lost", a, false, false, false)
	wantPorts(t, "all links lost", b, false, false, false)
	for _, s := range a.Status().Slaves {
		if s.LACP.Actor.State&uint8(lacp.Collecting|lacp.Distributing) != 0 {
			t.Errorf("without a link %s says %v", s.Name, s.LACP.Actor.Flags)
		}
	}
}

// Frames with different addresses spread over the ports, and none of the PDUs is
// among what the far side delivers.
func TestLACPSpread(t *testing.T) {
	a, b, clock, _ := lacpPair(t, 2, map[string]string{"lacp_rate": "fast"})
	up := &linktest.Sink{}
	b.Attach(up)
	run(clock, 3*time.Second)
	base := a.Status()
	for i := range 32 {
		f := linktest.Flow4(1)
		f.SrcMAC, f.DstMAC = tcpip.LinkAddress([]byte{2, 0, 0, 0, 9, byte(i)}), b.LinkAddress()
		linktest.Write(a, f.UDP(nil))
	}
	for i, s := range a.Status().Slaves {
		if s.Counters.TxPackets == base.Slaves[i].Counters.TxPackets {
			t.Errorf("%s carried none of 32 frames", s.Name)
		}
	}
	if n := len(up.Delivered()); n != 32 {
		t.Errorf("%d frames were delivered, want 32", n)
	}
}

// A link that is cut one way, with its carrier on, is found by LACP (A59).
func TestLACPOneWayCut(t *testing.T) {
	a, b, clock, wires := lacpPair(t, 2, map[string]string{"lacp_rate": "fast"})
	run(clock, 3*time.Second)
	wires[0].SetCut(true) // what a sends is lost
	run(clock, 4*time.Second)
	wantPorts(t, "one-way cut", a, true, false, true)
	wantPorts(t, "one-way cut", b, true, false, true)
}

// No data before the partner agrees, none below min_links (A41); PDUs go on.
func TestLACPMinLinks(t *testing.T) {
	a, _, clock, wires := lacpPair(t, 3, map[string]string{"lacp_rate": "fast", "min_links": "2"})
	run(clock, 3*time.Second)
	wantPorts(t, "three links", a, true, true, true, true)
	wires[0].SetCarrier(false)
	wires[1].SetCarrier(false)
	wantPorts(t, "one link", a, false, false, false)
	f := linktest.Flow4(0)
	dropped := a.Status().Counters.Drops["tx_no_slave"]
	if n, err := linktest.Write(a, f.UDP(nil), f.UDP(nil)); n != 0 || err != nil {
		t.Errorf("below min_links WritePackets() = %d, %v, want 0, nil", n, err)
	}
	if now := a.Status().Counters.Drops["tx_no_slave"]; now != dropped+2 {
		t.Errorf("below min_links %d frames were counted as dropped, want 2", now-dropped)
	}
	sent := a.Status().LACP.Counters.LACPDUTx
	run(clock, 3*time.Second)
	if now := a.Status().LACP.Counters.LACPDUTx; now <= sent {
		t.Errorf("below min_links %d LACPDUs were sent in 3 s, want some", now-sent)
	}
	wires[0].SetCarrier(true)
	run(clock, 3*time.Second)
	wantPorts(t, "two links", a, true, true, false)
}

// A released slave says farewell, with nothing set that would have the partner
// go on (A53), and nothing is written to it afterwards.
func TestLACPFarewell(t *testing.T) {
	clock := faketime.NewManualClock()
	b, err := bonding.New(bonding.Options{Mode: bonding.IEEE8023AD, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	if err := b.Enslave("eth0", r, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	b.Attach(&linktest.Counter{})
	run(clock, 2*time.Second)
	r.Drain()
	if err := b.Release("eth0"); err != nil {
		t.Fatal(err)
	}
	frames := r.Drain()
	if len(frames) != 1 {
		t.Fatalf("a release sent %d frames, want the farewell", len(frames))
	}
	pdu, err := lacp.Parse(frames[0].Frame[14:])
	if err != nil {
		t.Fatalf("the farewell does not parse: %v", err)
	}
	if s := pdu.Actor.State; s&(lacp.Aggregation|lacp.Synchronization|lacp.Collecting|lacp.Distributing) != 0 {
		t.Errorf("the farewell says %v", s)
	}
	run(clock, 60*time.Second)
	if late := r.Drain(); len(late) != 0 {
		t.Errorf("%d frames were written after the release", len(late))
	}
}
