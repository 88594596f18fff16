package bonding_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/probe"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// pairValues are the values that options are tried with, the default first. What
// a mode refuses keeps its default.
var pairValues = [][]string{
	{"monitor_rule", "", "any", "all"},
	{"miimon", "", "10", "0"},
	{"updelay", "", "200"},
	{"downdelay", "", "200"},
	{"arp_interval", "", "50"},
	{"arp_validate", "", "all", "filter"},
	{"arp_all_targets", "", "all"},
	{"arp_missed_max", "", "1", "3"},
	{"primary", "", "eth1"},
	{"primary_reselect", "", "better", "failure"},
	{"fail_over_mac", "", "active", "follow"},
	{"xmit_hash_policy", "", "layer3+4", "vlan+srcmac"},
	{"xmit_hash_map", "", "consistent"},
	{"packets_per_slave", "", "0", "3"},
	{"num_grat_arp", "", "0", "3"},
	{"peer_notif_delay", "", "200"},
	{"resend_igmp", "", "0", "5"},
	{"all_slaves_active", "", "1"},
	{"min_links", "", "2"},
	{"lp_interval", "", "2"},
	{"tlb_dynamic_lb", "", "0"},
	{"ipv6_receive_balance", "", "1"},
	{"lacp_rate", "", "fast"},
	{"ad_select", "", "bandwidth", "count"},
	{"broadcast_neighbor", "", "1"},
	{"lacp_strict", "", "1"},
	{"coupled_control", "", "0"},
	{"probe_interval", "", "50"},
	{"probe_missed_max", "", "1"},
	{"flap_backoff", "", "300"},
	{"rx_dedup", "", "off", "on"},
	{"rx_reorder", "", "off", "on"},
	{"rx_reorder_flows", "", "4"},
}

// pairRow is a choice of a value for each option.
type pairRow []int

// pairRows returns rows in which each two values of two options come together,
// or as many as fit.
func pairRows(rnd *rand.Rand, most int) []pairRow {
	type pair struct{ a, x, b, y int }
	open := map[pair]bool{}
	for a := range pairValues {
		for b := range a {
			for x := 1; x < len(pairValues[a]); x++ {
				for y := 1; y < len(pairValues[b]); y++ {
					open[pair{a, x, b, y}] = true
				}
			}
		}
	}
	gain := func(row pairRow, take bool) (n int) {
		for a := range row {
			for b := range a {
				if p := (pair{a, row[a], b, row[b]}); open[p] {
					n++
					if take {
						delete(open, p)
					}
				}
			}
		}
		return n
	}
	var rows []pairRow
	for len(open) > 0 && len(rows) < most {
		var best pairRow
		for range 10 {
			row := make(pairRow, len(pairValues))
			for i := range row {
				row[i] = 1 + rnd.IntN(len(pairValues[i])-1)
			}
			if best == nil || gain(row, false) > gain(best, false) {
				best = row
			}
		}
		gain(best, true)
		rows = append(rows, best)
	}
	return rows
}

// timerClock counts the timers that are set.
type timerClock struct {
	*faketime.ManualClock
	pending atomic.Int64
}

type countedTimer struct {
	tcpip.Timer
	clock *timerClock
	mu    sync.Mutex
	on    bool
}

func (c *timerClock) AfterFunc(d time.Duration, f func()) tcpip.Timer {
	t := &countedTimer{clock: c}
	t.turn(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Timer = c.ManualClock.AfterFunc(d, func() { t.turn(false); f() })
	return t
}

func (t *countedTimer) turn(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on != on {
		t.on = on
		t.clock.pending.Add(map[bool]int64{true: 1, false: -1}[on])
	}
}

func (t *countedTimer) Stop() bool { t.turn(false); return t.Timer.Stop() }

func (t *countedTimer) Reset(d time.Duration) { t.turn(true); t.Timer.Reset(d) }

// pairRig is a bond whose links have, at their far ends, a target of the ARP
// monitor and the links of another bond, which speaks LACP and hellos.
type pairRig struct {
	*rig
	timers *timerClock
	peer   *bonding.Bond
	far    map[string]*linktest.Recorder
	set    []string // options

	mu     sync.Mutex      // timers of one moment run at once
	broken map[string]bool // nothing passes
	gone   map[string]bool // writes fail
	sent   map[string]int  // data that came through
	lost   int             // data into what is broken
}

var pairLinks = []string{"eth0", "eth1", "eth2"}

// newPairRig makes the bonds, with the options set before there are slaves, or
// while the bond is at work.
func newPairRig(t testing.TB, mode bonding.Mode, row pairRow, live bool) *pairRig {
	clock := &timerClock{ManualClock: faketime.NewManualClock()}
	b, err := bonding.New(bonding.Options{Mode: mode, Clock: clock, Rand: seededRand(1), ARPIPTargets: []netip.Addr{target1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	p := &pairRig{rig: &rig{tb: t, Bond: b, clock: clock.ManualClock, links: map[string]*linktest.Recorder{}, up: &linktest.Sink{}, events: b.Subscribe(10), own: true},
		timers: clock, far: map[string]*linktest.Recorder{}, broken: map[string]bool{}, gone: map[string]bool{}, sent: map[string]int{}}
	b.UseRoutes(newFakeRoutes())
	if !live {
		p.choose(row)
	}
	peerMode := bonding.BalanceXOR
	if mode == bonding.IEEE8023AD {
		peerMode = mode
	}
	if p.peer, err = bonding.New(bonding.Options{Mode: peerMode, Clock: clock.ManualClock, Rand: seededRand(2)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.peer.Close)
	for i, name := range pairLinks {
		far := linktest.NewRecorder(linktest.RecorderOptions{Address: tcpip.LinkAddress([]byte{2, 0, 0, 0, 0xdd, byte(i)})})
		if err := p.peer.Enslave(name, far, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		p.far[name] = far
		far.OnWrite(func(pkts stack.PacketBufferList) {
			far.Drain()
			p.carry(pkts, func(frame []byte) {
				if p.whole(name) {
					p.links[name].Inject(frame)
				}
			})
		})
		p.join(name)
	}
	p.peer.Attach(&linktest.Counter{})
	p.attach()
	if live {
		p.wait(time.Second)
		p.choose(row)
	}
	probing, _ := b.Option("probe_interval")
	if err := p.peer.SetOption("probe_interval", probing); err != nil {
		t.Fatal(err)
	}
	return p
}

// choose sets the options of a row, but for those that are refused.
func (p *pairRig) choose(row pairRow) {
	for i, v := range row {
		if o := pairValues[i]; o[v] != "" && p.SetOption(o[0], o[v]) == nil {
			p.set = append(p.set, o[0]+"="+o[v])
		}
	}
}

// join enslaves a link.
func (p *pairRig) join(name string) {
	p.enslave(name, bonding.SlaveOptions{}, linktest.RecorderOptions{}).OnWrite(func(pkts stack.PacketBufferList) {
		p.links[name].Drain()
		p.carry(pkts, func(frame []byte) { p.cross(name, frame) })
	})
}

func (p *pairRig) carry(pkts stack.PacketBufferList, f func([]byte)) {
	for _, pkt := range pkts.AsSlice() {
		v := pkt.ToView()
		f(append([]byte{}, v.AsSlice()...))
		v.Release()
	}
}

// cross is a frame of the bond on its way by a link.
func (p *pairRig) cross(name string, frame []byte) {
	if !p.passes(name, binary.BigEndian.Uint16(frame[12:]) == linktest.EtherTypeIPv4) {
		return
	}
	p.far[name].Inject(frame)
	if p.Mode() == bonding.ActiveBackup && frame[0]&1 != 0 { // a switch, which floods
		for other, l := range p.links {
			if other != name && p.whole(other) {
				l.Inject(frame)
			}
		}
	}
	if m, ok := probe.Parse(binary.BigEndian.Uint16(frame[12:]), frame[14:]); ok && m.Kind == probe.ARP && m.Destination == target1 {
		p.links[name].Inject(answer(frame, m, target1))
	}
}

// passes counts a frame of the bond, and reports whether it goes on: data end
// here.
func (p *pairRig) passes(name string, isData bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone[name]: // the write fails
	case p.broken[name] && isData:
		p.lost++
	case isData:
		p.sent[name]++
	default:
		return !p.broken[name]
	}
	return false
}

func (p *pairRig) whole(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.broken[name]
}

// breaks has nothing pass by a link, or has it whole again.
func (p *pairRig) breaks(name string, broken, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken[name], p.gone[name] = broken, gone
}

// wait has time pass.
func (p *pairRig) wait(d time.Duration) { run(p.clock, d) }

// has reports whether an option has a value that begins so.
func (p *pairRig) has(name, value string) bool {
	v, err := p.Option(name)
	return err == nil && strings.HasPrefix(v, value)
}

// wantTraffic checks that data go out by what is whole, and that the bond
// receives.
func (p *pairRig) wantTraffic(when string) {
	p.tb.Helper()
	const n = 12
	p.mu.Lock()
	clear(p.sent)
	p.lost = 0
	p.mu.Unlock()
	took, err := p.send(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := 0
	for _, c := range p.sent {
		sum += c
	}
	if want := p.Mode() == bonding.Broadcast; err != nil || took != n || p.lost > 0 || sum != n && !want || sum < n {
		p.tb.Errorf("%s: WritePackets() of %d = %d, %v; came through %v, lost %d\n%s", when, n, took, err, p.sent, p.lost, text(p.Status().Slaves))
	}
	if !p.Status().Carrier {
		p.tb.Errorf("%s: no carrier", when)
	}
	p.up.Drain()
	for _, gone := range p.gone {
		if gone {
			return // the link says that it is well, until it is written to
		}
	}
	for name, l := range p.links {
		if !p.broken[name] {
			l.Inject(p.toBond(1))
		}
	}
	if len(p.up.Drain()) == 0 {
		p.tb.Errorf("%s: nothing is received\n%s", when, text(p.Status().Slaves))
	}
}

// pairFault is what goes wrong with a link, and what makes it well again.
type pairFault struct {
	name      string
	apply     func(*pairRig, string)
	mend      func(*pairRig, string)
	noticed   func(*pairRig) bool
	onRequest bool // by hand: the link itself is whole
}

// silence is noticed where a monitor listens that alone, or with the others, may
// judge.
func noticesSilence(p *pairRig) bool {
	listens := !p.has("arp_interval", "0") || !p.has("probe_interval", "0")
	return listens && (p.has("monitor_rule", "any") || p.has("monitor_rule", "exclusive") || p.has("miimon", "0"))
}

func noticesCarrier(p *pairRig) bool {
	return !p.has("miimon", "0") || noticesSilence(p)
}

var pairFaults = []pairFault{
	{"carrier", func(p *pairRig, n string) { p.breaks(n, true, false); p.carrier(n, false) },
		func(p *pairRig, n string) { p.breaks(n, false, false); p.carrier(n, true) }, noticesCarrier, false},
	{"silent carrier", func(p *pairRig, n string) { p.breaks(n, true, false); p.silently(n, false) },
		func(p *pairRig, n string) { p.breaks(n, false, false); p.silently(n, true) }, noticesCarrier, false},
	{"silence", func(p *pairRig, n string) { p.breaks(n, true, false) },
		func(p *pairRig, n string) { p.breaks(n, false, false) }, noticesSilence, false},
	{"gone", func(p *pairRig, n string) {
		p.breaks(n, true, true)
		p.links[n].Fail(&tcpip.ErrInvalidEndpointState{})
	},
		func(p *pairRig, n string) { p.breaks(n, false, false); p.links[n].Fail(nil) }, noticesCarrier, false},
	{"disabled", func(p *pairRig, n string) { _ = p.SetSlaveEnabled(n, false) },
		func(p *pairRig, n string) { _ = p.SetSlaveEnabled(n, true) }, func(*pairRig) bool { return true }, true},
	{"drained", func(p *pairRig, n string) {
		if err := p.Drain(n); err != nil {
			p.tb.Errorf("drain %s: %v", n, err)
		}
	}, func(p *pairRig, n string) { _ = p.Undrain(n) }, func(*pairRig) bool { return true }, true},
}

// runPairs has one bond with a row of options go through all faults.
func runPairs(t *testing.T, mode bonding.Mode, row pairRow, live bool) {
	p := newPairRig(t, mode, row, live)
	fail := func(when string) {
		if t.Failed() {
			t.Fatalf("%s: %s with %s", when, mode, strings.Join(p.set, " "))
		}
	}
	settle := 12 * time.Second
	if mode != bonding.IEEE8023AD {
		settle = 3 * time.Second
	}
	p.wait(settle)
	p.wantTraffic("at first")
	fail("at first")
	last := p.Status().Counters
	for _, f := range pairFaults {
		for _, name := range []string{"eth1", "eth0"} {
			when := f.name + " of " + name
			f.apply(p, name)
			p.wait(settle)
			if f.noticed(p) {
				p.wantTraffic(when)
				if s := p.slave(name); s.MIIStatus != "down" && !s.StandsBack && f.name != "gone" {
					t.Errorf("%s: it is %s", when, s.MIIStatus)
				}
			}
			fail(when)
			f.mend(p, name)
			p.wait(settle)
			p.wantTraffic("after " + when)
			is := p.Status().Counters
			wantGrown(t, last, is)
			last = is
			fail("after " + when)
		}
	}
	p.allFail(settle)
	fail("all fail")
	p.Attach(nil)
	p.wait(time.Second)
	p.attach()
	p.wait(settle)
	p.wantTraffic("with another NIC")
	fail("with another NIC")
	p.leaveAndClose(settle)
	fail("leaving")
}

// allFail has all links lose their carrier, and come back.
func (p *pairRig) allFail(settle time.Duration) {
	for _, name := range pairLinks {
		p.breaks(name, true, false)
		p.carrier(name, false)
	}
	p.wait(settle)
	if st := p.Status(); noticesCarrier(p) && st.Carrier {
		p.tb.Errorf("all links are lost, and there is a carrier\n%s", text(st.Slaves))
	}
	for _, name := range pairLinks {
		p.breaks(name, false, false)
		p.carrier(name, true)
	}
	p.wait(settle)
	p.wantTraffic("after all have failed")
	p.wait(20 * time.Second)
	for _, s := range p.Status().Slaves {
		if s.MIIStatus != "up" || s.StandsBack {
			p.tb.Errorf("all is well, and %s is %s, stands back %t, monitors %v", s.Name, s.MIIStatus, s.StandsBack, s.Monitors)
		}
	}
}

// leaveAndClose releases a slave and takes it back, and closes the bond.
func (p *pairRig) leaveAndClose(settle time.Duration) {
	if err := p.Release("eth0"); err != nil {
		p.tb.Error(err)
	}
	p.links["eth0"].OnWrite(func(stack.PacketBufferList) { p.tb.Error("a released slave is written to") })
	p.breaks("eth0", true, false)
	p.wait(settle)
	p.wantTraffic("after a release")
	p.breaks("eth0", false, false)
	p.join("eth0")
	p.wait(settle)
	p.wantTraffic("after a new slave")
	for _, name := range slices.Backward(pairLinks) {
		if err := p.Release(name); err != nil {
			p.tb.Error(err)
		}
		if l := p.links[name]; l.LinkAddress() != macOf(name) || l.IsAttached() || l.Subscribers() != 0 {
			p.tb.Errorf("released %s has %s", name, endpointState(l))
		}
		p.wait(100 * time.Millisecond)
	}
	p.Close()
	p.wait(time.Second)
	if n := p.timers.pending.Load(); n != 0 {
		p.tb.Errorf("%d timers are set after Close", n)
	}
}

// TestPairs has bonds of each mode go through all that may happen to a link, with
// options set so that each two values meet.
func TestPairs(t *testing.T) {
	most := 4
	if raceEnabled || testing.Short() {
		most = 1
	}
	for _, mode := range bonding.AvailableModes() {
		for i, row := range pairRows(rand.New(rand.NewPCG(uint64(mode), 1)), most) {
			t.Run(fmt.Sprintf("%s/%d", mode, i), func(t *testing.T) { runPairs(t, mode, row, i%2 == 1) })
		}
	}
}

// FuzzPairs tries other rows.
func FuzzPairs(f *testing.F) {
	f.Add(uint8(1), []byte{1, 2, 1})
	f.Add(uint8(15), []byte{1, 2, 1})
	f.Fuzz(func(t *testing.T, mode uint8, choices []byte) {
		row := make(pairRow, len(pairValues))
		for i := range row {
			row[i] = 1
			if i < len(choices) {
				row[i] += int(choices[i]) % (len(pairValues[i]) - 1)
			}
		}
		modes := bonding.AvailableModes()
		runPairs(t, modes[int(mode)%len(modes)], row, int(mode)/len(modes)%2 == 1)
	})
}

// A slave whose link was found gone by a write is up again by the probes alone,
// when the monitor that would have ended the wait is turned off.
func TestGoneWithoutItsMonitor(t *testing.T) {
	for _, off := range []string{"arp_interval", "miimon"} {
		row := make(pairRow, len(pairValues))
		for i, o := range pairValues {
			row[i] = 1
			switch {
			case o[0] == "monitor_rule" || o[0] == "probe_interval" || o[0] == off && off == "arp_interval":
				row[i] = 2 // any; 50 ms; 50 ms
			case o[0] == "miimon" && off == "arp_interval":
				row[i] = 3 // off
			}
		}
		p := newPairRig(t, bonding.ActiveBackup, row, false)
		p.wait(time.Second)
		p.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
		p.send(1)
		p.clock.RunImmediatelyScheduledJobs()
		p.wantMII(off+": gone", "down,up,up")
		if err := p.Bond.SetOption(off, "0"); err != nil {
			t.Fatal(err)
		}
		p.links["eth0"].Fail(nil)
		p.wait(5 * time.Second)
		p.wantMII(off+": well again", "up,up,up")
	}
}

// With the probes as the only monitor, a bond whose links have all lost their
// carrier has none either: that is no dead peer.
func TestProbesAloneWithoutCarrier(t *testing.T) {
	r := newHelloPair(t, bonding.Options{Mode: bonding.BalanceXOR, MIIMon: -1, ProbeInterval: 10 * time.Millisecond}, 2)
	for _, end := range r.ends[0] {
		end.SetCarrier(false)
	}
	run(r.clock, 50*time.Millisecond)
	if st := r.bonds[0].Status(); st.Carrier {
		t.Errorf("a carrier with slaves %s", text(st.Slaves))
	}
	for _, end := range r.ends[0] {
		end.SetCarrier(true)
	}
	run(r.clock, 200*time.Millisecond)
	if st := r.bonds[0].Status(); !st.Carrier || st.Slaves[0].MIIStatus != "up" || st.Slaves[1].MIIStatus != "up" {
		t.Errorf("all is well, and the slaves are %s", text(st.Slaves))
	}
}
