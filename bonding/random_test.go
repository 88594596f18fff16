package bonding_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Flags for longer walks than those of every day, and by another seed:
//
//	go test ./bonding -run TestRandom -random.steps 100000 -random.seed 7
var (
	stepsFlag = flag.Int("random.steps", 0, "steps of each random walk; 0 is few enough for every day")
	seedFlag  = flag.Uint64("random.seed", 1, "seed of the random walks")
)

// randomSteps is how long a walk is that is usually of n steps.
func randomSteps(n int) int {
	switch {
	case *stepsFlag > 0:
		return *stepsFlag
	case raceEnabled || testing.Short():
		return n / 8
	}
	return n
}

// TestRandom does whatever may be done to a bond, in any order, and checks after
// each step what must always hold. A failure names its seed and step: the same
// seed does the same.
func TestRandom(t *testing.T) {
	for _, m := range recoveryModes {
		t.Run(fmt.Sprintf("%s/seed=%d", m.mode, *seedFlag), func(t *testing.T) { randomWalk(t, bonding.Options{Mode: m.mode}, *seedFlag) })
	}
	for _, policy := range []bonding.FailOverMAC{bonding.FailOverMACActive, bonding.FailOverMACFollow} {
		t.Run(fmt.Sprintf("fail_over_mac=%s/seed=%d", policy, *seedFlag), func(t *testing.T) {
			randomWalk(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: policy}, *seedFlag)
		})
	}
}

// FuzzRandom walks by other seeds.
func FuzzRandom(f *testing.F) {
	f.Add(uint8(1), uint64(2))
	f.Fuzz(func(t *testing.T, mode uint8, seed uint64) {
		n := uint8(len(recoveryModes))
		randomWalk(t, bonding.Options{Mode: recoveryModes[mode%n].mode, FailOverMAC: bonding.FailOverMAC(mode / n % 3)}, seed)
	})
}

// walk is a random walk of one bond.
type walk struct {
	*rig
	rnd       *rand.Rand
	mode      bonding.Mode
	members   []string // in order
	gone      map[string]bool
	graceOver time.Time // of the last drain
	last      bonding.Status
	step      int
	what      string
}

func randomWalk(t *testing.T, o bonding.Options, seed uint64) {
	mode := o.Mode
	o.XmitHashPolicy = xmithash.Layer34
	w := &walk{
		rig:  newRig(t, o, 0),
		rnd:  rand.New(rand.NewPCG(seed, 99)),
		mode: mode,
		gone: map[string]bool{},
	}
	w.last = w.Status()
	for w.step = range randomSteps(12000) {
		w.act()
		w.clock.RunImmediatelyScheduledJobs()
		w.check()
		if w.step%3 == 0 {
			w.checkWrites()
		}
		w.told()
		if t.Failed() {
			t.Fatalf("mode %s, seed %d, step %d: %s", mode, seed, w.step, w.what)
		}
	}
}

// act does one thing.
func (w *walk) act() {
	name := fmt.Sprintf("eth%d", w.rnd.IntN(5))
	if len(w.members) > 0 && w.rnd.IntN(4) > 0 {
		name = w.members[w.rnd.IntN(len(w.members))]
	}
	member := slices.Contains(w.members, name)
	w.what = name
	switch w.rnd.IntN(21) {
	case 0, 1:
		if !member {
			w.join(name)
		}
	case 2:
		if member && w.rnd.IntN(3) == 0 {
			w.leave(name)
		}
		if w.rnd.IntN(200) == 0 { // all, so that the mode can change
			w.Attach(nil)
			for len(w.members) > 0 {
				w.leave(w.members[0])
			}
		}
	case 3, 4, 5, 6:
		if member {
			w.changeLink(name)
		}
	case 7, 8, 9, 10, 11:
		d := time.Duration(w.rnd.IntN(250)) * time.Millisecond
		w.what = fmt.Sprint("advance ", d)
		w.advance(d)
	case 12:
		prio := int32(w.rnd.IntN(5) - 2)
		w.what = fmt.Sprint(name, " priority ", prio)
		if err := w.SetSlavePriority(name, prio); (err == nil) != member {
			w.tb.Errorf("SetSlavePriority(%s) = %v, member %t", name, err, member)
		}
	case 13:
		on := w.rnd.IntN(3) > 0
		w.what = fmt.Sprint(name, " enabled ", on)
		if err := w.SetSlaveEnabled(name, on); (err == nil) != member {
			w.tb.Errorf("SetSlaveEnabled(%s) = %v, member %t", name, err, member)
		}
	case 14, 15, 16:
		w.option(name)
	case 17:
		if member {
			w.gone[name] = !w.gone[name]
			w.what = fmt.Sprint(name, " gone ", w.gone[name])
			w.links[name].Fail(nil)
			if w.gone[name] {
				w.links[name].Fail(goneErrors[w.rnd.IntN(len(goneErrors))])
			}
		}
	case 18:
		w.what = "NIC"
		if w.rnd.IntN(8) == 0 {
			w.Attach(nil)
		} else if !w.IsAttached() {
			w.Attach(w.up)
		}
	case 20:
		on := w.rnd.IntN(2) == 0
		w.what = fmt.Sprint(name, " drained ", on)
		before, failures := w.Status().Failovers, w.Status()
		do := w.Undrain
		if on {
			do = w.Drain
			w.graceOver = w.clock.Now().Add(time.Second)
		}
		if err := do(name); err != nil && len(w.Status().Failovers) != len(before) {
			w.tb.Errorf("a drain that is refused (%v) has an effect", err)
		}
		for i, s := range w.Status().Slaves {
			if s.LinkFailureCount != failures.Slaves[i].LinkFailureCount {
				w.tb.Errorf("a drain of %s counts as a failure of %s", name, s.Name)
			}
		}
	case 19:
		w.what = "MTU and address"
		w.SetMTU(uint32(1280 + w.rnd.IntN(4)*100))
		w.SetLinkAddress(tcpip.LinkAddress([]byte{2, 0, 0, 0, 9, byte(w.rnd.IntN(4))}))
	}
}

func (w *walk) join(name string) {
	w.what = "enslave " + name
	w.enslave(name, bonding.SlaveOptions{Priority: int32(w.rnd.IntN(3)), Disabled: w.rnd.IntN(10) == 0},
		linktest.RecorderOptions{MTU: 1500, State: link.State{Up: true, Carrier: w.rnd.IntN(4) > 0, Speed: 1000, Duplex: link.DuplexFull}})
	w.members = append(w.members, name)
	delete(w.gone, name)
}

func (w *walk) leave(name string) {
	w.what = "release " + name
	if err := w.Release(name); err != nil {
		w.tb.Errorf("Release(%s) = %v", name, err)
	}
	if l := w.links[name]; l.IsAttached() || l.LinkAddress() != macOf(name) || l.MTU() != 1500 || l.Subscribers() != 0 {
		w.tb.Errorf("released %s has %s", name, endpointState(l))
	}
	w.members = slices.DeleteFunc(w.members, func(m string) bool { return m == name })
}

func (w *walk) changeLink(name string) {
	s := link.State{Up: w.rnd.IntN(8) > 0, Carrier: w.rnd.IntN(3) > 0, Speed: []uint32{100, 1000, link.SpeedUnknown}[w.rnd.IntN(3)], Duplex: link.DuplexFull}
	w.what = fmt.Sprintf("%s to %+v", name, s)
	if w.rnd.IntN(3) == 0 {
		w.links[name].SetStateSilently(s)
	} else {
		w.links[name].SetState(s)
	}
}

// option sets an option to a value that may or may not fit at the moment.
func (w *walk) option(name string) {
	options := [][]string{
		{"miimon", "100", "10", "0", "100"}, {"updelay", "0", "100", "300"}, {"downdelay", "0", "100", "300"},
		{"primary_reselect", "0", "1", "2"}, {"all_slaves_active", "0", "1"}, {"num_grat_arp", "0", "1", "3"}, {"peer_notif_delay", "0", "200"},
		{"xmit_hash_policy", "0", "1", "5"}, {"packets_per_slave", "0", "1", "3"}, {"rx_dedup", "0", "1", "2"}, {"flap_backoff", "0", "20", "300"},
		{"xmit_hash_map", "0", "1"}, {"weight", name + ":5", name + ":0"},
		{"primary", name, "", "eth9"}, {"active_slave", name, ""}, {"queue_id", name + ":1", name + ":0"}, {"mode", "0", "1", "2", "3", "5", "6"}, {"tlb_dynamic_lb", "0", "1"}, {"ipv6_receive_balance", "0", "1"}, {"lp_interval", "1", "7"}, {"min_links", "9", "-1"},
	}
	o := options[w.rnd.IntN(len(options))]
	value := o[1+w.rnd.IntN(len(o)-1)]
	w.what = o[0] + "=" + value
	before := w.Status()
	if err := w.SetOption(o[0], value); err != nil {
		if after := w.Status(); !sameStatus(before, after) {
			w.tb.Errorf("SetOption(%s, %q) = %v changed the status\n%s\n%s", o[0], value, err, text(before), text(after))
		}
	}
	w.mode = w.Mode() // may change while there is neither slave nor NIC
}

// check checks what must hold at any time.
func (w *walk) check() {
	st := w.Status()
	up, active := 0, 0
	for i, s := range st.Slaves {
		if s.Name != w.members[i] {
			w.tb.Errorf("slave %d is %s, want %s", i, s.Name, w.members[i])
		}
		if s.MTU != st.MTU || !macFits(st, s) {
			w.tb.Errorf("slave %s has %s, MTU %d, the bond %s, %d; fail_over_mac is %s", s.Name, s.MACAddress, s.MTU, st.MACAddress, st.MTU, st.Options["fail_over_mac"])
		}
		if s.MIIStatus == "up" {
			up++
		}
		if s.State == "active" {
			active++
		}
		if !s.Enabled && s.MIIStatus != "down" {
			w.tb.Errorf("slave %s is disabled and %s", s.Name, s.MIIStatus)
		}
		isActive := w.mode != bonding.ActiveBackup || s.Name == st.ActiveSlave
		receives := isActive
		if st.Balance != nil {
			receives = s.Name == st.ActiveSlave
		}
		if (s.State == "active") != isActive || w.clock.Now().After(w.graceOver) && s.Receives != (receives || st.Options["all_slaves_active"] == "1") {
			w.tb.Errorf("slave %s is %s, receives %t; the active slave is %q", s.Name, s.State, s.Receives, st.ActiveSlave)
		}
		if s.Name == st.ActiveSlave && s.MIIStatus != "up" && s.MIIStatus != "going down" {
			w.tb.Errorf("the active slave %s is %s", s.Name, s.MIIStatus)
		}
	}
	if len(st.Slaves) != len(w.members) || st.Carrier != (up > 0) {
		w.tb.Errorf("%d slaves of %d, %d are up, carrier %t", len(st.Slaves), len(w.members), up, st.Carrier)
	}
	if w.mode == bonding.ActiveBackup && (active > 1 || (st.ActiveSlave == "") != (active == 0) || up > 0 && active == 0) {
		w.tb.Errorf("%d slaves are active, %d up, the active slave is %q", active, up, st.ActiveSlave)
	}
	if st.Balance != nil {
		w.checkSources(st)
	}
	wantGrown(w.tb, w.last.Counters, st.Counters)
	for _, old := range w.last.Slaves {
		for _, s := range st.Slaves {
			if s.Name == old.Name && len(w.last.Slaves) <= len(st.Slaves) && s.LinkFailureCount < old.LinkFailureCount {
				w.tb.Errorf("failure count of %s went from %d to %d", s.Name, old.LinkFailureCount, s.LinkFailureCount)
			}
		}
	}
	w.last = st
}

// checkSources checks that the slaves of an adaptive mode have different
// addresses, the active one the bond's.
func (w *walk) checkSources(st bonding.Status) {
	seen := map[string]string{}
	for _, s := range st.Slaves {
		source := s.Balance.SourceAddress
		if other := seen[source]; other != "" {
			w.tb.Errorf("slaves %s and %s have the address %s", other, s.Name, source)
		}
		seen[source] = s.Name
		if s.Name == st.ActiveSlave && source != st.MACAddress {
			w.tb.Errorf("the active slave %s has %s, the bond %s", s.Name, source, st.MACAddress)
		}
	}
}

func wantGrown(tb testing.TB, was, is bonding.Counters) {
	tb.Helper()
	if is.TxPackets < was.TxPackets || is.TxBytes < was.TxBytes || is.RxPackets < was.RxPackets || is.RxBytes < was.RxBytes ||
		is.RxMulticast < was.RxMulticast || is.TxDropped < was.TxDropped || is.RxDropped < was.RxDropped {
		tb.Errorf("counters went from %+v to %+v", was, is)
	}
	for reason, n := range was.Drops {
		if is.Drops[reason] < n {
			tb.Errorf("%s went from %d to %d", reason, n, is.Drops[reason])
		}
	}
}

// checkWrites sends a few frames and checks that they reach slaves that may send
// and no others, that none is lost while there is one, and that each that is
// received is delivered where it may be.
func (w *walk) checkWrites() {
	st := w.last
	may := map[string]bool{}
	healthy, first := 0, false
	for _, s := range st.Slaves {
		w.links[s.Name].Drain()
		may[s.Name] = s.MIIStatus == "up" && s.Enabled && s.Usable || s.Name == st.ActiveSlave && !adaptive(w.mode)
		if may[s.Name] && !w.gone[s.Name] {
			healthy++
			first = first || !s.StandsBack
		}
	}
	for _, s := range st.Slaves {
		may[s.Name] = may[s.Name] && !(first && s.StandsBack)
	}
	n := 1 + w.rnd.IntN(8)
	w.own = adaptive(w.mode) // others' frames go by the active slave alone
	took, err := w.send(n)
	sum := 0
	for name, l := range w.links {
		got := len(data(l.Drain()))
		sum += got
		if got > 0 && (!may[name] || w.gone[name]) {
			w.tb.Errorf("%d frames went by %s, which may not send: %s", got, name, text(st))
		}
	}
	if err != nil || took > n || w.mode != bonding.Broadcast && took != sum {
		w.tb.Errorf("WritePackets() of %d = %d, %v, slaves were given %d", n, took, err, sum)
	}
	if w.mode == bonding.ActiveBackup && st.ActiveSlave == "" {
		healthy = 0 // nobody was chosen: the only slave left is on its way up
	}
	if (took == n) != (healthy > 0) {
		w.tb.Errorf("WritePackets() of %d = %d with %d slaves that can send: %s", n, took, healthy, text(st))
	}
	w.clock.RunImmediatelyScheduledJobs()
	w.last = w.Status()
	for _, s := range w.last.Slaves {
		w.up.Drain()
		w.links[s.Name].Inject(w.toBond(w.step))
		got := len(w.up.Drain())
		takes := s.Receives || w.mode == bonding.BalanceALB && s.MACAddress == w.last.MACAddress
		if want := takes && w.last.Up; (got == 1) != want && w.last.Options["rx_dedup"] == "off 1" {
			w.tb.Errorf("a frame on %s was delivered %d times: %s", s.Name, got, text(w.last))
		}
	}
}

// macFits reports whether a slave has an address that fail_over_mac gives it.
func macFits(st bonding.Status, s bonding.SlaveStatus) bool {
	active := s.Name == st.ActiveSlave
	switch policy := st.Options["fail_over_mac"]; {
	case st.Mode == bonding.BalanceALB:
		return s.MACAddress == s.Balance.SourceAddress
	case st.Mode != bonding.ActiveBackup || policy == "none 0":
		return s.MACAddress == st.MACAddress
	case policy == "active 1":
		return s.MACAddress == s.PermHWAddr && (!active || s.MACAddress == st.MACAddress)
	default: // follow: the bond's is the active slave's, or that of who was active last
		return st.ActiveSlave == "" || active == (s.MACAddress == st.MACAddress)
	}
}
