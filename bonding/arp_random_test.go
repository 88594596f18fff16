package bonding_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// instant has frames that the links send be delivered from within the write.
func (s *segment) instant() {
	for name, l := range s.links {
		l.OnWrite(func(pkts stack.PacketBufferList) {
			for _, pkt := range pkts.AsSlice() {
				v := pkt.ToView()
				frame := append([]byte{}, v.AsSlice()...)
				v.Release()
				s.probed(name, frame)
			}
			l.Drain()
		})
	}
	s.log = nil
}

// TestRandomARP does whatever may be done to a bond with an ARP monitor, in any
// order, and checks after each step what must always hold; from time to time
// all is made well again, and then every slave must come up and stay so.
func TestRandomARP(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceXOR} {
		for _, rule := range []bonding.MonitorRule{bonding.MonitorExclusive, bonding.MonitorAny, bonding.MonitorAll} {
			t.Run(fmt.Sprintf("%s/%s/seed=%d", mode, rule, *seedFlag), func(t *testing.T) { randomARP(t, mode, rule, *seedFlag) })
		}
	}
}

// FuzzRandomARP walks by other seeds.
func FuzzRandomARP(f *testing.F) {
	f.Add(uint8(0), uint64(2))
	f.Fuzz(func(t *testing.T, kind uint8, seed uint64) {
		randomARP(t, []bonding.Mode{bonding.ActiveBackup, bonding.BalanceXOR}[kind%2], bonding.MonitorRule(kind/2%3), seed)
	})
}

// arpWalk is a random walk of one bond on a segment.
type arpWalk struct {
	*segment
	rnd  *rand.Rand
	rule bonding.MonitorRule
	what string
}

func randomARP(t *testing.T, mode bonding.Mode, rule bonding.MonitorRule, seed uint64) {
	w := &arpWalk{rnd: rand.New(rand.NewPCG(seed, 7)), rule: rule,
		segment: newSegment(t, bonding.Options{Mode: mode, MonitorRule: rule}, 2)}
	w.alone = mode != bonding.ActiveBackup
	w.instant()
	for step := range randomSteps(4000) {
		w.act()
		w.clock.RunImmediatelyScheduledJobs()
		w.instant()
		w.check()
		if step%250 == 249 {
			w.heal()
		}
		if t.Failed() {
			t.Fatalf("mode %s, rule %s, seed %d, step %d: %s: %s", mode, rule, seed, step, w.what, text(w.Status().Slaves))
		}
	}
}

func (w *arpWalk) act() {
	names := w.names()
	name := fmt.Sprintf("eth%d", w.rnd.IntN(4))
	member := slices.Contains(names, name)
	w.what = name
	switch n := w.rnd.IntN(16); {
	case n < 5:
		d := time.Duration(w.rnd.IntN(250)) * time.Millisecond
		w.what = fmt.Sprint("advance ", d)
		w.advance(d)
	case n < 7:
		w.cut[name] = []string{"", "", "in", "out", "both"}[w.rnd.IntN(5)]
		w.what += " cut " + w.cut[name]
	case n < 8:
		w.alive[target1] = w.rnd.IntN(3) > 0
		w.what = fmt.Sprint("target ", w.alive[target1])
	case n < 10 && member:
		on := w.rnd.IntN(3) > 0
		w.what = fmt.Sprint(name, " carrier ", on)
		if w.rnd.IntN(2) == 0 {
			w.silently(name, on)
		} else {
			w.carrier(name, on)
		}
	case n < 11 && member:
		w.links[name].Fail(nil)
		if w.rnd.IntN(2) == 0 {
			w.what += " gone"
			w.links[name].Fail(goneErrors[w.rnd.IntN(len(goneErrors))])
			w.send(1)
		}
	case n < 12 && member:
		on := w.rnd.IntN(3) > 0
		w.what = fmt.Sprint(name, " enabled ", on)
		if err := w.SetSlaveEnabled(name, on); err != nil {
			w.tb.Error(err)
		}
	case n == 12 && !member:
		w.what = "enslave " + name
		w.enslave(name, bonding.SlaveOptions{}, linktest.RecorderOptions{})
	case n == 12 && w.rnd.IntN(2) == 0:
		w.what = "release " + name
		if err := w.Release(name); err != nil {
			w.tb.Error(err)
		}
		w.links[name].OnWrite(nil)
		delete(w.links, name)
	case n == 13:
		w.what = "NIC"
		if w.IsAttached() && w.rnd.IntN(4) == 0 {
			w.Attach(nil)
		} else if !w.IsAttached() {
			w.Attach(w.up)
		}
	default:
		options := [][]string{{"arp_interval", "100", "30", "0"}, {"arp_validate", "0", "1", "2", "3", "4", "5", "6"}, {"miimon", "100", "20", "0"},
			{"arp_missed_max", "1", "2", "9"}, {"arp_ip_target", "10.1.0.11", "10.1.0.11,10.1.0.12", "-10.1.0.12", "+10.1.0.12"}, {"arp_all_targets", "0", "1"},
			{"primary", name, ""}, {"active_slave", name, ""}, {"updelay", "0", "300"}, {"downdelay", "0", "300"}, {"all_slaves_active", "0", "1"}}
		o := options[w.rnd.IntN(len(options))]
		value := o[1+w.rnd.IntN(len(o)-1)]
		w.what = o[0] + "=" + value
		w.SetOption(o[0], value) // may be refused
	}
}

// check checks what must hold at any time.
func (w *arpWalk) check() {
	st := w.Status()
	up, active := 0, ""
	for _, s := range st.Slaves {
		if s.MIIStatus == "up" {
			up++
		}
		if s.State == "active" {
			active += s.Name
		}
		if !s.Enabled && s.MIIStatus == "up" {
			w.tb.Errorf("slave %s is disabled and up", s.Name)
		}
		if s.Name == st.ActiveSlave && s.MIIStatus != "up" && s.MIIStatus != "going down" {
			w.tb.Errorf("the active slave %s is %s", s.Name, s.MIIStatus)
		}
		if n := len(s.Monitors); n > 1 && w.rule == bonding.MonitorExclusive {
			w.tb.Errorf("%d monitors at once: %v", n, s.Monitors)
		}
	}
	if st.Carrier != (up > 0) {
		w.tb.Errorf("%d are up, carrier %t", up, st.Carrier)
	}
	if st.Mode == bonding.ActiveBackup && len(active) > len("eth0") {
		w.tb.Errorf("active by role: %s", active)
	}
	if st.Mode == bonding.ActiveBackup && st.ActiveSlave != "" && active != st.ActiveSlave {
		w.tb.Errorf("active is %s, by role %s", st.ActiveSlave, active)
	}
}

// heal makes all well, and checks that all slaves come up and stay so.
func (w *arpWalk) heal() {
	w.what = "heal"
	for name := range w.cut {
		delete(w.cut, name)
	}
	w.alive[target1], w.alive[target2] = true, true
	for _, name := range w.names() {
		w.links[name].Fail(nil)
		w.carrier(name, true)
		if err := w.SetSlaveEnabled(name, true); err != nil {
			w.tb.Error(err)
		}
	}
	if !w.IsAttached() {
		w.Attach(w.up)
	}
	if w.Status().ARPIntervalMs == 0 && w.Status().MIIMonMs == 0 {
		w.set("arp_interval", "50")
	}
	w.advance(5 * time.Second)
	before := w.Status()
	w.advance(5 * time.Second)
	after := w.Status()
	for i, s := range after.Slaves {
		if s.MIIStatus != "up" || s.LinkFailureCount != before.Slaves[i].LinkFailureCount {
			w.tb.Errorf("all is well, and slave %s is %s (%v); it failed %d times more", s.Name, s.MIIStatus, s.Monitors, s.LinkFailureCount-before.Slaves[i].LinkFailureCount)
		}
	}
	if after.Mode == bonding.ActiveBackup && len(after.Slaves) > 0 && after.ActiveSlave == "" {
		w.tb.Error("all is well, and there is no active slave")
	}
}
