package bonding_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/echo"
	"bondstack/link/linktest"
	"bondstack/link/wire"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

// helloPair is two bonds of the same wires on a manual clock.
type helloPair struct {
	tb    testing.TB
	clock *faketime.ManualClock
	bonds [2]*bonding.Bond
	ends  [2][]*wire.Endpoint
}

func newHelloPair(tb testing.TB, o bonding.Options, wires int) *helloPair {
	tb.Helper()
	p := &helloPair{tb: tb, clock: faketime.NewManualClock()}
	o.Clock = p.clock
	for i := range p.bonds {
		o.Rand = seededRand(uint64(7 + i))
		b, err := bonding.New(o)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(b.Close)
		p.bonds[i] = b
	}
	for k := range wires {
		x, y, err := wire.New(wire.Options{Synchronous: true, Clock: p.clock})
		if err != nil {
			tb.Fatal(err)
		}
		for i, end := range []*wire.Endpoint{x, y} {
			p.ends[i] = append(p.ends[i], end)
			if err := p.bonds[i].Enslave(fmt.Sprintf("eth%d", k), end, bonding.SlaveOptions{}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for _, b := range p.bonds {
		b.Attach(&linktest.Counter{})
	}
	run(p.clock, 60*time.Millisecond)
	return p
}

// verdicts are those of the probes of a bond.
func (p *helloPair) verdicts(side int) (list []string) {
	for _, s := range p.bonds[side].Status().Slaves {
		list = append(list, s.Probe.Verdict)
	}
	return list
}

func (p *helloPair) want(when string, side int, want ...string) {
	p.tb.Helper()
	if got := p.verdicts(side); !slices.Equal(got, want) {
		p.tb.Errorf("%s: probes of bond %d say %q, want %q; peers %+v", when, side, got, want, p.bonds[side].Status().Slaves[0].Probe)
	}
}

// A wire that is cut one way, with its carrier on, is found by both sides within
// 35 ms of the last frame, in every mode, by the probes alone or with the MII
// monitor; and used again when it is mended.
func TestHelloOneWay(t *testing.T) {
	for _, o := range []bonding.Options{
		{Mode: bonding.ActiveBackup}, {Mode: bonding.BalanceRR}, {Mode: bonding.BalanceXOR}, {Mode: bonding.Broadcast},
		{Mode: bonding.BalanceTLB}, {Mode: bonding.ActiveBackup, MIIMon: -1},
	} {
		for offset := range 3 {
			o.ProbeInterval, o.NumGratARP = 10*time.Millisecond, -1
			p := newHelloPair(t, o, 2)
			p.want("at first", 0, "alive", "alive")
			p.want("at first", 1, "alive", "alive")
			p.clock.Advance(time.Duration(3*offset) * time.Millisecond)
			p.ends[0][0].SetCut(true)
			run(p.clock, 45*time.Millisecond)
			p.want("cut", 0, "not heard by the peer", "alive")
			p.want("cut", 1, "nothing heard", "alive")
			for side, b := range p.bonds {
				st := b.Status()
				if s := st.Slaves[0]; s.MIIStatus != "down" || s.Monitors["probe"] != "down" || s.LinkFailureCount != 1 {
					t.Errorf("%v: slave %+v of bond %d, want down", o.Mode, s, side)
				}
				if !st.Carrier || st.Slaves[1].MIIStatus != "up" {
					t.Errorf("%v: bond %d has carrier %v, slave eth1 %s", o.Mode, side, st.Carrier, st.Slaves[1].MIIStatus)
				}
				if len(st.Failovers) != 1 {
					t.Fatalf("%v: %d failovers of bond %d, want 1", o.Mode, len(st.Failovers), side)
				}
				f := st.Failovers[0]
				if f.Cause != bonding.CauseFastProbe || f.From != "eth0" || f.To != "eth1" || side == 1 && (f.DetectionUs < 25000 || f.DetectionUs > 35000) {
					t.Errorf("%v: failover of bond %d: %s", o.Mode, side, f)
				}
			}
			p.ends[0][0].SetCut(false)
			run(p.clock, 60*time.Millisecond)
			for side, b := range p.bonds {
				p.want("mended", side, "alive", "alive")
				if s := b.Status().Slaves[0]; s.MIIStatus != "up" {
					t.Errorf("%v: mended slave %+v", o.Mode, s)
				}
			}
		}
	}
}

// A port of 802.3ad leaves the aggregate when the probes find it down.
func TestHelloLACP(t *testing.T) {
	p := newHelloPair(t, bonding.Options{Mode: bonding.IEEE8023AD, ProbeInterval: 10 * time.Millisecond}, 2)
	run(p.clock, 5*time.Second)
	for _, b := range p.bonds {
		wantPorts(t, "before", b, true, true, true)
	}
	p.ends[0][0].SetCut(true)
	run(p.clock, 45*time.Millisecond)
	for _, b := range p.bonds {
		wantPorts(t, "cut", b, true, false, true)
	}
	p.ends[0][0].SetCut(false)
	run(p.clock, 5*time.Second)
	for _, b := range p.bonds {
		wantPorts(t, "mended", b, true, true, true)
	}
}

// Under the rule all, a link with a carrier stays up.
func TestHelloRule(t *testing.T) {
	p := newHelloPair(t, bonding.Options{Mode: bonding.ActiveBackup, ProbeInterval: 10 * time.Millisecond, MonitorRule: bonding.MonitorAll}, 2)
	p.ends[0][0].SetCut(true)
	run(p.clock, 100*time.Millisecond)
	p.want("cut", 1, "nothing heard", "alive")
	if s := p.bonds[1].Status().Slaves[0]; s.MIIStatus != "up" {
		t.Errorf("slave %+v, want up by the MII monitor", s)
	}
}

// A peer that never speaks takes nothing down, and hellos never come from the
// bond's address on a backup.
func TestHelloAlone(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, ProbeInterval: 10 * time.Millisecond}, 2)
	r.ms(1000)
	r.wantMII("alone", "up,up")
	r.wantFailures("eth0", 0)
	if got := r.slave("eth0").Monitors["probe"]; got != "unknown" {
		t.Errorf("the probe monitor says %q, want unknown", got)
	}
	hellos := func(name string, from tcpip.LinkAddress) {
		t.Helper()
		n := 0
		for _, w := range r.links[name].Drain() {
			var pdu echo.PDU
			if len(w.Frame) < 60 || pdu.Parse(w.Frame[14:]) != nil {
				continue
			}
			n++
			if got := tcpip.LinkAddress(w.Frame[6:12]); from != "" && got != from || from == "" && (got == r.LinkAddress() || got[0]&3 != 2) {
				t.Errorf("a hello of %s comes from %s", name, got)
			}
		}
		if n < 95 || n > 105 {
			t.Errorf("%d hellos of %s in a second, want 100", n, name)
		}
	}
	hellos("eth0", r.LinkAddress())
	hellos("eth1", macOf("eth1"))
	r.set("active_slave", "eth1")
	r.links["eth0"].Drain()
	r.links["eth1"].Drain()
	r.ms(1000)
	hellos("eth0", "") // its own address is the bond's, which eth1 has now
	hellos("eth1", r.LinkAddress())
	r.set("probe_interval", "0")
	r.links["eth0"].Drain()
	r.ms(1000)
	if n := r.sent("eth0")[0]; n != 0 {
		t.Errorf("%d frames after the probes were turned off", n)
	}
}

// Turned off, the probes leave no slave down that they alone had found so.
func TestHelloTurnedOff(t *testing.T) {
	for _, miimon := range []time.Duration{-1, 100 * time.Millisecond} {
		p := newHelloPair(t, bonding.Options{Mode: bonding.ActiveBackup, MIIMon: miimon, ProbeInterval: 10 * time.Millisecond}, 2)
		p.ends[0][0].SetCut(true)
		run(p.clock, 60*time.Millisecond)
		if s := p.bonds[1].Status().Slaves[0]; s.MIIStatus != "down" {
			t.Fatalf("slave %+v, want down", s)
		}
		if err := p.bonds[1].SetOption("probe_interval", "0"); err != nil {
			t.Fatal(err)
		}
		run(p.clock, 200*time.Millisecond)
		st := p.bonds[1].Status()
		if s := st.Slaves[0]; s.MIIStatus != "up" || s.Probe != nil || len(s.Monitors) != len(st.Slaves[1].Monitors) {
			t.Errorf("miimon %v: slave %+v, want up", miimon, s)
		}
		p.want("after the farewell", 0, "unknown", "unknown")
	}
}

// The carrier's loss, downdelay and disabling by hand are as without probes, and
// a link that comes back counts no second failure.
func TestHelloCarrier(t *testing.T) {
	p := newHelloPair(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth0", ProbeInterval: 10 * time.Millisecond}, 2)
	b := p.bonds[0]
	slave := func() bonding.SlaveStatus { return b.Status().Slaves[0] }
	p.ends[0][0].SetCarrier(false)
	if s := slave(); s.MIIStatus != "down" {
		t.Errorf("without a carrier: %s, want down", s.MIIStatus)
	}
	run(p.clock, 500*time.Millisecond)
	p.ends[0][0].SetCarrier(true)
	if s := slave(); s.MIIStatus != "down" {
		t.Errorf("before a peer was heard: %s, want down", s.MIIStatus)
	}
	run(p.clock, 60*time.Millisecond)
	if s := slave(); s.MIIStatus != "up" || s.LinkFailureCount != 1 || b.Status().ActiveSlave != "eth0" {
		t.Errorf("once heard: %s with %d failures, active %s", s.MIIStatus, s.LinkFailureCount, b.Status().ActiveSlave)
	}
	b.SetSlaveEnabled("eth0", false)
	run(p.clock, 200*time.Millisecond)
	if s := slave(); s.MIIStatus != "down" {
		t.Errorf("disabled: %s, want down", s.MIIStatus)
	}
	b.SetSlaveEnabled("eth0", true)
	run(p.clock, 200*time.Millisecond)
	if s := slave(); s.MIIStatus != "up" {
		t.Errorf("enabled: %s, want up", s.MIIStatus)
	}
	// Where the other slave goes, one that the probes found down is used.
	p.ends[0][0].SetCut(true)
	run(p.clock, 60*time.Millisecond)
	if got := b.Status().ActiveSlave; got != "eth1" {
		t.Errorf("cut: active slave %s, want eth1", got)
	}
	p.ends[0][1].SetCarrier(false)
	if got := b.Status().ActiveSlave; got != "eth0" {
		t.Errorf("nothing else left: active slave %q, want eth0", got)
	}
}

// A slave that leaves says farewell; one that joins is heard.
func TestHelloMembership(t *testing.T) {
	p := newHelloPair(t, bonding.Options{Mode: bonding.BalanceXOR, ProbeInterval: 10 * time.Millisecond}, 2)
	if err := p.bonds[0].Release("eth0"); err != nil {
		t.Fatal(err)
	}
	p.want("after a release", 1, "unknown", "alive")
	run(p.clock, time.Second)
	p.want("later", 1, "unknown", "alive")
	if err := p.bonds[0].Enslave("eth9", p.ends[0][0], bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	run(p.clock, 60*time.Millisecond)
	p.want("after it joined again", 1, "alive", "alive")
	p.bonds[0].Close()
	p.want("after the bond closed", 1, "unknown", "unknown")
	if s := p.bonds[1].Status().Slaves[1]; s.LinkFailureCount > 1 {
		t.Errorf("%d failures", s.LinkFailureCount)
	}
}

// What is no hello goes on as an ordinary frame, and a flood of hellos is bounded
// and harms nothing.
func TestHelloHostile(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, ProbeInterval: 10 * time.Millisecond}, 2)
	r.up.Drain()
	frame := func(dst tcpip.LinkAddress, payload []byte) []byte {
		return linktest.Ethernet(dst, "\x02\x00\x00\x00\x99\x01", echo.EtherType, payload)
	}
	for _, f := range [][]byte{frame(r.LinkAddress(), []byte("an experiment of others")), frame(echo.Group, []byte("no hello")), frame(echo.Group, nil)} {
		r.links["eth0"].Inject(f)
		if n := len(r.up.Drain()); n != 1 {
			t.Errorf("% x: delivered %d times, want once", f, n)
		}
	}
	rnd := seededRand(3)
	r.sent("eth0", "eth1")
	for range 20 {
		for range 100 {
			pdu := echo.PDU{Interval: 10 * time.Millisecond, System: rnd() | 1, Discriminator: rnd() | 1, Sequence: uint32(rnd())}
			r.links["eth0"].Inject(frame(echo.Group, pdu.AppendTo(nil)))
		}
		r.ms(1)
	}
	if n := r.drops("rx_control_flood"); n != 2000-798 { // two frames above counted
		t.Errorf("%d hellos dropped as a flood, want 1202", n)
	}
	if n := r.sent("eth0")[0]; n > 3 {
		t.Errorf("%d frames sent in 20 ms of flood, want at most 3", n)
	}
	if n := len(r.slave("eth0").Probe.Peers); n != echo.MaxPeers {
		t.Errorf("%d peers, want %d", n, echo.MaxPeers)
	}
	r.ms(2000)
	r.wantMII("after the flood", "up,up")
	r.wantFailures("eth0", 0)
	if n := len(r.slave("eth0").Probe.Peers); n != 0 {
		t.Errorf("%d peers, want none", n)
	}
}

// Whatever becomes of the wires, a bond has a carrier while one of its slaves
// has: the probes never take the last one. And when all is mended, all is used.
func TestHelloRandom(t *testing.T) {
	for seed := range uint64(6) {
		modes := []bonding.Mode{bonding.ActiveBackup, bonding.BalanceXOR, bonding.BalanceRR}
		p := newHelloPair(t, bonding.Options{Mode: modes[seed%3], ProbeInterval: 10 * time.Millisecond}, 3)
		rnd := rand.New(rand.NewPCG(seed, 5))
		var carrier [3]bool
		for k := range carrier {
			carrier[k] = true
		}
		for step := range 400 {
			side, k := rnd.IntN(2), rnd.IntN(3)
			name := fmt.Sprintf("eth%d", k)
			switch rnd.IntN(8) {
			case 0, 1, 2:
				p.ends[side][k].SetCut(rnd.IntN(2) == 0)
			case 3:
				carrier[k] = rnd.IntN(3) > 0
				p.ends[side][k].SetCarrier(carrier[k])
				p.ends[1-side][k].SetCarrier(true) // it is the one side's that counts
			case 4:
				p.bonds[side].Drain(name)
			case 5:
				p.bonds[side].Undrain(name)
			case 6:
				p.bonds[side].SetOption("probe_missed_max", fmt.Sprint(2+rnd.IntN(3)))
			case 7:
				p.bonds[side].SetOption("flap_backoff", fmt.Sprint(rnd.IntN(2)*50))
			}
			run(p.clock, time.Duration(rnd.IntN(60))*time.Millisecond)
			for side, b := range p.bonds {
				some := false
				for _, end := range p.ends[side] {
					some = some || end.LinkState().Usable()
				}
				st := b.Status()
				if st.Carrier != some || some && st.Mode == bonding.ActiveBackup && st.ActiveSlave == "" {
					t.Fatalf("seed %d, step %d: bond %d has carrier %v and active slave %q, a link %v", seed, step, side, st.Carrier, st.ActiveSlave, some)
				}
			}
		}
		for side := range 2 {
			for _, end := range p.ends[side] {
				end.SetCut(false)
				end.SetCarrier(true)
			}
		}
		run(p.clock, 12*time.Second)
		for side, b := range p.bonds {
			for _, s := range b.Status().Slaves {
				if s.MIIStatus != "up" || s.Probe.Verdict != "alive" {
					t.Errorf("seed %d: mended slave %s of bond %d is %s, %+v", seed, s.Name, side, s.MIIStatus, s.Probe)
				}
			}
		}
	}
}
