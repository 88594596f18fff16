package bonding_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/probe"
	"bondstack/link"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// world is a bond on a manual clock in whose surroundings all may change: links
// to a switch with targets, behind each a port of a second bond that speaks
// hellos and LACP, VLAN devices and routes above, and every option.
type world struct {
	*rig
	rnd      *rand.Rand
	peer     *bonding.Bond
	far      map[string]*linktest.Recorder // the peer's ends
	cut      map[string]string             // "in", "out" or "both" is lost
	dead     map[netip.Addr]bool           // targets
	routes   func()                        // cancels them; nil: there are none
	vlans    []link.VLANTag
	addrs    []tcpip.LinkAddress
	written  int // frames that the bond has sent since the last step
	released []*linktest.Recorder
	last     bonding.Status
	fires    int64 // timers up to the last step
	passed   time.Duration
	what     string
}

func newWorld(tb testing.TB, o bonding.Options, seed uint64) *world {
	tb.Helper()
	w := &world{rig: newRig(tb, o, 0), rnd: rand.New(rand.NewPCG(seed, 31+uint64(o.Mode))), far: map[string]*linktest.Recorder{},
		cut: map[string]string{}, dead: map[netip.Addr]bool{}}
	peer, err := bonding.New(bonding.Options{Mode: o.Mode, Clock: w.clock, Rand: seededRand(seed), ProbeInterval: 20 * time.Millisecond})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(peer.Close)
	w.peer = peer
	peer.Attach(&linktest.Counter{})
	w.last = w.Status()
	return w
}

// join adds a slave, whose other end is a slave of the peer.
func (w *world) join(name string) {
	near := w.enslave(name, bonding.SlaveOptions{Priority: int32(w.rnd.IntN(3)), Disabled: w.rnd.IntN(10) == 0}, linktest.RecorderOptions{})
	far := linktest.NewRecorder(linktest.RecorderOptions{Address: tcpip.LinkAddress([]byte{2, 0, 0, 0, 0xff, name[len(name)-1]})})
	if err := w.peer.Enslave(name, far, bonding.SlaveOptions{}); err != nil {
		w.tb.Fatal(err)
	}
	w.far[name] = far
	near.OnWrite(func(pkts stack.PacketBufferList) {
		for _, frame := range framesOf(pkts) {
			w.written++
			w.leaves(name, frame)
		}
		near.Drain()
	})
	far.OnWrite(func(pkts stack.PacketBufferList) {
		for _, frame := range framesOf(pkts) {
			w.arrives(name, frame)
		}
		far.Drain()
	})
}

func framesOf(pkts stack.PacketBufferList) (frames [][]byte) {
	for _, pkt := range pkts.AsSlice() {
		v := pkt.ToView()
		frames = append(frames, append([]byte{}, v.AsSlice()...))
		v.Release()
	}
	return frames
}

// leaves takes what the bond sends by a link to the peer, and probes to the
// other links and to their target.
func (w *world) leaves(name string, frame []byte) {
	if c := w.cut[name]; c == "out" || c == "both" || len(frame) < 14 {
		return
	}
	if far := w.far[name]; far != nil {
		far.Inject(frame)
	}
	m, ok := probe.Parse(uint16(frame[12])<<8|uint16(frame[13]), frame[14:])
	if !ok {
		return
	}
	for _, other := range slices.Sorted(maps.Keys(w.links)) {
		if other != name {
			w.arrives(other, frame)
		}
	}
	target := m.Destination
	if m.Kind == probe.Neighbor {
		target = target6
	}
	if !w.dead[target] {
		w.arrives(name, answer(frame, m, target))
	}
}

func (w *world) arrives(name string, frame []byte) {
	if c := w.cut[name]; c != "in" && c != "both" && w.links[name] != nil {
		w.links[name].Inject(frame)
	}
}

// leave releases a slave: its endpoint is as it was, and no frame goes there any
// more.
func (w *world) leave(name string) {
	if err := w.Release(name); err != nil {
		w.tb.Errorf("Release(%s) = %v", name, err)
	}
	l := w.links[name]
	delete(w.links, name)
	if l.IsAttached() || l.LinkAddress() != macOf(name) || l.MTU() != 1500 || l.Subscribers() != 0 || len(l.Calls().Filter) != 0 {
		w.tb.Errorf("released %s has %s, addresses %v", name, endpointState(l), l.Calls().Filter)
	}
	l.OnWrite(nil)
	l.Drain()
	w.released = append(w.released, l)
	if err := w.peer.Release(name); err != nil {
		w.tb.Errorf("the peer's Release(%s) = %v", name, err)
	}
	delete(w.far, name)
}

func (w *world) pass(d time.Duration) {
	w.passed += d
	w.advance(d)
}

// act does one thing.
func (w *world) act() {
	name := fmt.Sprintf("eth%d", w.rnd.IntN(4))
	l, member := w.links[name]
	is := func(one int) bool { return w.rnd.IntN(one) == 0 }
	w.what = name
	switch n := w.rnd.IntN(24); {
	case n < 6:
		d := time.Duration(w.rnd.IntN(150)) * time.Millisecond
		w.what = fmt.Sprint("advance ", d)
		w.pass(d)
	case n < 8 && !member:
		w.what = "enslave " + name
		w.join(name)
	case n == 8 && member && is(2):
		w.what = "release " + name
		w.leave(name)
	case n == 9 && is(60): // all, so that what needs that may change
		w.what = "release all"
		w.Attach(nil)
		for _, name := range slices.Sorted(maps.Keys(w.links)) {
			w.leave(name)
		}
	case n < 11 && member:
		s := link.State{Up: !is(8), Carrier: !is(3), Speed: []uint32{100, 1000, link.SpeedUnknown}[w.rnd.IntN(3)], Duplex: link.DuplexFull}
		w.what = fmt.Sprintf("%s to %+v", name, s)
		if is(3) {
			l.SetStateSilently(s)
		} else {
			l.SetState(s)
		}
	case n == 11:
		w.cut[name] = []string{"", "", "in", "out", "both"}[w.rnd.IntN(5)]
		w.what += " cut " + w.cut[name]
	case n == 12:
		w.around(name)
	case n == 13 && member:
		w.what += " fails"
		l.Fail(nil)
		if is(2) {
			l.Fail(goneErrors[w.rnd.IntN(len(goneErrors))])
			w.send(1)
		}
	case n == 14:
		w.slaveSetting(name, member)
	case n == 15:
		w.above()
	case n == 16:
		w.own = is(2)
		w.what = fmt.Sprint("send, own ", w.own)
		w.send(1 + w.rnd.IntN(8))
	case n == 17 && member:
		w.what += " hears"
		for range w.rnd.IntN(20) {
			l.Inject([][]byte{w.toBond(w.rnd.IntN(9)), noise("arp"), noise("nd"), noise(""), {1, 2, 3}}[w.rnd.IntN(5)])
		}
	default:
		w.option(name)
	}
}

// around changes what is not ours: the targets and the peer.
func (w *world) around(name string) {
	switch w.rnd.IntN(4) {
	case 0:
		target := []netip.Addr{target1, target2, target6}[w.rnd.IntN(3)]
		w.dead[target] = !w.dead[target]
		w.what = fmt.Sprint("dead ", w.dead)
	case 1:
		value := []string{"0", "10", "20"}[w.rnd.IntN(3)]
		w.what = "the peer's probe_interval=" + value
		if err := w.peer.SetOption("probe_interval", value); err != nil {
			w.tb.Error(err)
		}
	case 2:
		w.what = "the peer's NIC"
		if w.peer.IsAttached() {
			w.peer.Attach(nil)
		} else {
			w.peer.Attach(&linktest.Counter{})
		}
	case 3:
		if far := w.far[name]; far != nil {
			on := w.rnd.IntN(2) == 0
			w.what = fmt.Sprintf("the peer's %s carrier %t", name, on)
			far.SetCarrier(on)
		}
	}
}

// slaveSetting changes what is set for one slave.
func (w *world) slaveSetting(name string, member bool) {
	n := w.rnd.IntN(3)
	var err error
	switch w.rnd.IntN(5) {
	case 0:
		w.what = fmt.Sprint(name, " enabled ", n > 0)
		err = w.SetSlaveEnabled(name, n > 0)
	case 1:
		w.what = fmt.Sprint(name, " priority ", n)
		err = w.SetSlavePriority(name, int32(n))
	case 2:
		w.what = "drain " + name
		w.Drain(name) // may be refused: there has to be another
		return
	case 3:
		w.what = "undrain " + name
		err = w.Undrain(name)
	case 4:
		w.what = fmt.Sprint(name, " port priority ", n)
		w.SetActorPortPriority(name, uint16(n)) // in one mode only
		return
	}
	if (err == nil) != member {
		w.tb.Errorf("%s = %v, member %t", w.what, err, member)
	}
}

// above changes the NIC, addresses, VLAN devices and routes.
func (w *world) above() {
	mac := tcpip.LinkAddress([]byte{2, 0, 0, 0, 9, byte(w.rnd.IntN(4))})
	switch w.rnd.IntN(8) {
	case 0:
		w.what = "MTU"
		w.SetMTU(uint32(1280 + w.rnd.IntN(3)*100))
	case 1:
		w.what = fmt.Sprint("address ", mac)
		w.SetLinkAddress(mac)
	case 2:
		w.what = "NIC"
		if w.IsAttached() && w.rnd.IntN(4) == 0 {
			w.Attach(nil)
		} else if !w.IsAttached() {
			w.Attach(w.up)
		}
	case 3:
		tag := link.VLANTag{Protocol: []uint16{link.TagProtocolQ, link.TagProtocolAD}[w.rnd.IntN(2)], ID: uint16(1 + w.rnd.IntN(3))}
		w.what = fmt.Sprint("VLAN ", tag)
		here := slices.Contains(w.vlans, tag)
		if err := w.AddVLAN(tag, func() tcpip.LinkAddress { return mac }); (err == nil) == here {
			w.tb.Errorf("AddVLAN(%s) = %v, there already: %t", tag, err, here)
		}
		if !here {
			w.vlans = append(w.vlans, tag)
		}
	case 4:
		w.what = "VLAN leaves"
		for len(w.vlans) > 0 {
			w.RemoveVLAN(w.vlans[0])
			w.vlans = w.vlans[1:]
		}
	case 5:
		w.what = "further address"
		if err := w.AddLinkAddress(mac); err != nil {
			w.tb.Error(err)
		}
		w.addrs = append(w.addrs, mac)
	case 6:
		w.what = "further addresses leave"
		for ; len(w.addrs) > 0; w.addrs = w.addrs[1:] {
			w.RemoveLinkAddress(w.addrs[0])
		}
	case 7:
		w.useRoutes(w.routes == nil)
	}
}

// useRoutes has a stack above know ways to the targets, or nothing.
func (w *world) useRoutes(on bool) {
	w.what = fmt.Sprint("routes ", on)
	if w.routes != nil {
		w.routes()
		w.routes = nil
	}
	if !on {
		return
	}
	f := newFakeRoutes()
	if w.rnd.IntN(2) == 0 {
		f.ways[target2] = linkWay("10.1.0.2", link.TagProtocolQ, 3)
	}
	w.routes = w.UseRoutes(f)
}

// worldValues are values for every option; # is the name of a slave. Not all are
// allowed, always or at the moment.
var worldValues = map[string]string{
	"mode":         "0 1 2 3 4 5 6",
	"monitor_rule": "exclusive any all", "miimon": "100 10 0 100", "updelay": "0 0 100 300", "downdelay": "0 0 100 300", "use_carrier": "1 0",
	"arp_interval": "100 30 0", "arp_ip_target": "10.1.0.11 10.1.0.11,10.1.0.12 +10.1.0.12 -10.1.0.12 -10.1.0.11", "ns_ip6_target": "fd00:1::11 +fd00:1::11 -fd00:1::11",
	"arp_validate": "0 1 2 3 4 5 6", "arp_all_targets": "0 1", "arp_missed_max": "1 2 9",
	"active_slave": "# # _", "primary": "# _ eth9", "primary_reselect": "0 1 2", "fail_over_mac": "0 1 2",
	"num_grat_arp": "0 1 3", "num_unsol_na": "0 2", "peer_notif_delay": "0 200", "resend_igmp": "0 1 3", "all_slaves_active": "0 1",
	"xmit_hash_policy": "0 1 2 3 4 5", "xmit_hash_map": "0 1", "weight": "#:5 #:0", "packets_per_slave": "0 1 3", "queue_id": "#:1 #:0",
	"min_links": "0 1 2 -1", "lp_interval": "1 7", "tlb_dynamic_lb": "0 1", "ipv6_receive_balance": "0 1",
	"lacp_active": "0 1", "lacp_rate": "0 1", "ad_select": "0 1 2 3", "ad_actor_sys_prio": "1 65535", "ad_user_port_key": "0 7",
	"ad_actor_system": "02:00:00:00:07:07 00:00:00:00:00:00", "coupled_control": "0 1", "broadcast_neighbor": "0 1", "lacp_strict": "0 1",
	"probe_interval": "10 20 0", "probe_missed_max": "1 3", "flap_backoff": "0 20 300",
	"rx_dedup": "0 1 2", "rx_reorder": "0 1 2", "rx_reorder_hold": "10 2000", "rx_reorder_bytes": "65536 1000000", "rx_reorder_flows": "4 64",
}

var worldOptions = slices.Sorted(maps.Keys(worldValues))

// The walks set every option that there is.
func TestWorldHasAllOptions(t *testing.T) {
	r := newRig(t, bonding.Options{}, 0)
	for name := range r.Status().Options {
		if worldValues[name] == "" {
			t.Errorf("option %s has no values", name)
		}
	}
}

// option sets an option to a value that may or may not fit at the moment. One
// that is refused changes nothing.
func (w *world) option(name string) {
	option := worldOptions[w.rnd.IntN(len(worldOptions))]
	values := strings.Fields(worldValues[option])
	value := strings.ReplaceAll(strings.ReplaceAll(values[w.rnd.IntN(len(values))], "#", name), "_", "")
	w.what = option + "=" + value
	w.RemoveVLAN(link.VLANTag{}) // nothing, but what the bond has yet to see it has seen then
	before := w.Status()
	if err := w.SetOption(option, value); err != nil {
		if after := w.Status(); !sameStatus(before, after) {
			w.tb.Errorf("SetOption(%s, %q) = %v changed the status\n%s\n%s", option, value, err, text(before), text(after))
		}
	}
}

// check checks what must hold at any time.
func (w *world) check() {
	st := w.Status()
	up, active := 0, ""
	for _, s := range st.Slaves {
		if s.MIIStatus == "up" {
			up++
		}
		if s.State == "active" {
			active += s.Name
		}
		if s.MTU != st.MTU || !macFits(st, s) || w.links[s.Name].LinkAddress().String() != s.MACAddress {
			w.tb.Errorf("slave %s has %s (its link %s), MTU %d, the bond %s, %d; fail_over_mac is %s", s.Name, s.MACAddress, w.links[s.Name].LinkAddress(), s.MTU, st.MACAddress, st.MTU, st.Options["fail_over_mac"])
		}
		if !s.Enabled && s.MIIStatus == "up" {
			w.tb.Errorf("slave %s is disabled and up", s.Name)
		}
		if s.Name == st.ActiveSlave && s.MIIStatus != "up" && s.MIIStatus != "going down" {
			w.tb.Errorf("the active slave %s is %s", s.Name, s.MIIStatus)
		}
	}
	if len(st.Slaves) != len(w.links) {
		w.tb.Errorf("%d slaves, want %d", len(st.Slaves), len(w.links))
	}
	if st.Mode != bonding.IEEE8023AD && st.Carrier != (up > 0) || st.Carrier && up == 0 {
		w.tb.Errorf("%d are up, carrier %t", up, st.Carrier)
	}
	if st.LACP != nil && st.Carrier && (st.LACP.Aggregator == nil || st.LACP.Aggregator.Ports < int(st.LACP.MinLinks)) {
		w.tb.Errorf("carrier with aggregator %+v, min_links is %d", st.LACP.Aggregator, st.LACP.MinLinks)
	}
	if st.Mode == bonding.ActiveBackup && (len(active) > len("eth0") || st.ActiveSlave != "" && active != st.ActiveSlave) {
		w.tb.Errorf("active is %q, by role %q", st.ActiveSlave, active)
	}
	if len(st.Failovers) > 64 {
		w.tb.Errorf("%d failover records, want at most 64", len(st.Failovers))
	}
	if st.Balance != nil {
		(&walk{rig: w.rig}).checkSources(st)
	}
	w.checkGrowth(st)
	w.checkStorm()
	w.last = st
}

// checkGrowth checks that counters only grow, those of slaves that have been
// there at the last step as well; a slave's own end with it.
func (w *world) checkGrowth(st bonding.Status) {
	wantGrown(w.tb, w.last.Counters, st.Counters)
	if strings.HasPrefix(w.what, "release") || strings.HasPrefix(w.what, "enslave") {
		return
	}
	for i, s := range st.Slaves {
		if old := w.last.Slaves[i]; old.Name == s.Name {
			wantGrown(w.tb, old.Counters, s.Counters)
			if s.LinkFailureCount < old.LinkFailureCount {
				w.tb.Errorf("failure count of %s went from %d to %d", s.Name, old.LinkFailureCount, s.LinkFailureCount)
			}
		}
	}
}

// checkStorm checks that neither timers nor frames come in numbers that no
// option asks for, and that none goes where a slave was.
func (w *world) checkStorm() {
	millis := w.passed.Milliseconds()
	if got, most := w.fired.Load()-w.fires, 20+millis; got > most {
		w.tb.Errorf("%d timers in %d ms, want at most %d", got, millis, most)
	}
	if most := 100 + 3*int(millis); w.written > most {
		w.tb.Errorf("%d frames in %d ms, want at most %d", w.written, millis, most)
	}
	w.fires, w.written, w.passed = w.fired.Load(), 0, 0
	for _, l := range w.released {
		if n := len(l.Written()); n > 0 {
			w.tb.Errorf("%d frames went by a released slave", n)
		}
	}
	if n := len(w.released); n > 8 {
		w.released = w.released[n-8:]
	}
}

// heal makes all well, and checks that all slaves come up and stay so, and carry.
func (w *world) heal() {
	clear(w.cut)
	clear(w.dead)
	for _, set := range [][2]string{{"min_links", "0"}, {"flap_backoff", "0"}, {"updelay", "0"}, {"lacp_strict", "0"}, {"lacp_active", "1"}, {"arp_ip_target", "+10.1.0.11"}} {
		w.Attach(nil)
		w.SetOption(set[0], set[1]) // those that the mode has
	}
	for _, name := range slices.Sorted(maps.Keys(w.links)) {
		w.links[name].Fail(nil)
		w.links[name].SetState(link.State{Up: true, Carrier: true, Speed: 1000, Duplex: link.DuplexFull})
		w.far[name].SetCarrier(true)
		if err := w.SetSlaveEnabled(name, true); err != nil {
			w.tb.Error(err)
		}
		if err := w.Undrain(name); err != nil {
			w.tb.Error(err)
		}
	}
	w.useRoutes(true)
	w.Attach(w.up)
	if !w.peer.IsAttached() {
		w.peer.Attach(&linktest.Counter{})
	}
	if w.Status().ARPIntervalMs == 0 && w.Status().MIIMonMs == 0 {
		w.set("miimon", "100")
	}
	w.what = "heal"
	w.pass(20 * time.Second)
	before := w.Status()
	w.pass(3 * time.Second)
	after := w.Status()
	for i, s := range after.Slaves {
		if s.MIIStatus != "up" || s.LinkFailureCount != before.Slaves[i].LinkFailureCount {
			w.tb.Errorf("all is well, and slave %s is %s (%v, probe %+v); it failed %d times more", s.Name, s.MIIStatus, s.Monitors, s.Probe, s.LinkFailureCount-before.Slaves[i].LinkFailureCount)
		}
	}
	if len(after.Slaves) == 0 {
		return
	}
	if !after.Carrier || after.ActiveSlave == "" && (after.Mode == bonding.ActiveBackup || adaptive(after.Mode)) {
		w.tb.Errorf("all is well, carrier %t, the active slave is %q", after.Carrier, after.ActiveSlave)
	}
	w.own = true
	if n, err := w.send(8); n != 8 || err != nil {
		w.tb.Errorf("all is well, WritePackets() of 8 = %d, %v", n, err)
	}
}

func walkWorld(t *testing.T, o bonding.Options, seed uint64, steps int) {
	w := newWorld(t, o, seed)
	for step := range steps {
		w.act()
		w.clock.RunImmediatelyScheduledJobs()
		w.up.Drain()
		w.check()
		if step%400 == 399 {
			w.heal()
			w.check()
		}
		w.told()
		if t.Failed() {
			t.Fatalf("mode %s (now %s), seed %d, step %d: %s: %s", o.Mode, w.Mode(), seed, step, w.what, text(w.Status()))
		}
	}
}

var worldModes = []bonding.Mode{bonding.BalanceRR, bonding.ActiveBackup, bonding.BalanceXOR, bonding.Broadcast, bonding.IEEE8023AD, bonding.BalanceTLB, bonding.BalanceALB}

// TestRandomWorld does whatever may be done to a bond and around it, in any
// order, and checks after each step what must always hold; from time to time all
// is made well, and then all has to work. See stepsFlag.
func TestRandomWorld(t *testing.T) {
	for _, mode := range worldModes {
		t.Run(fmt.Sprintf("%s/seed=%d", mode, *seedFlag), func(t *testing.T) {
			walkWorld(t, bonding.Options{Mode: mode}, *seedFlag, randomSteps(1500))
		})
	}
}

// FuzzRandomWorld walks by other seeds.
func FuzzRandomWorld(f *testing.F) {
	f.Add(uint8(1), uint64(2))
	f.Fuzz(func(t *testing.T, mode uint8, seed uint64) {
		walkWorld(t, bonding.Options{Mode: worldModes[int(mode)%len(worldModes)]}, seed, 300)
	})
}
