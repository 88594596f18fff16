package bonding_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
)

// step is one thing done to a bond, and the active slave after it. A step is
// "NAME up", "NAME down", "NAME prio N", "OPTION=VALUE", "+NAME", "-NAME" or
// "wait MS".
type step struct{ do, active string }

func (r *rig) do(what string) {
	r.tb.Helper()
	if name, value, isOption := strings.Cut(what, "="); isOption {
		r.set(name, value)
		return
	}
	switch {
	case what[0] == '+':
		r.enslave(what[1:], bonding.SlaveOptions{}, linktest.RecorderOptions{})
		return
	case what[0] == '-':
		if err := r.Release(what[1:]); err != nil {
			r.tb.Fatal(err)
		}
		return
	}
	name, verb, _ := strings.Cut(what, " ")
	var n int
	if name == "wait" {
		fmt.Sscan(verb, &n)
		r.ms(n)
		return
	}
	switch {
	case verb == "up":
		r.carrier(name, true)
	case verb == "down":
		r.carrier(name, false)
	case strings.HasPrefix(verb, "prio "):
		fmt.Sscan(verb[5:], &n)
		if err := r.SetSlavePriority(name, int32(n)); err != nil {
			r.tb.Fatal(err)
		}
	default:
		r.tb.Fatalf("step %q", what)
	}
}

// play does steps and checks the active slave, and that it alone carries
// frames, after each.
func (r *rig) play(steps []step) {
	r.tb.Helper()
	for i, s := range steps {
		r.do(s.do)
		r.wantActive(fmt.Sprintf("step %d, %q", i+1, s.do), s.active)
		if by := r.carries(); by != s.active {
			r.tb.Errorf("step %d, %q: frames go by %q, want %q", i+1, s.do, by, s.active)
		}
	}
}

// Linux's own scripts, and those of its peers, as steps. In balance-tlb frames of
// other hosts, as play sends, go by the active slave too.
func TestSelection(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      bonding.Options
		slaves int
		steps  []step
	}{
		{"priorities and primary, as Linux's selftest (T1 to T11)", bonding.Options{Primary: "eth1"}, 3, []step{
			{"eth0 prio 0", "eth1"}, {"eth1 prio 10", "eth1"}, {"eth2 prio 11", "eth1"},
			{"active_slave=eth1", "eth1"},
			{"eth1 down", "eth2"}, // the greatest priority
			{"eth2 down", "eth0"},
			{"primary_reselect=0", "eth0"}, {"eth2 up", "eth2"}, // T5
			{"eth2 down", "eth0"},
			{"primary_reselect=1", "eth0"}, {"eth2 up", "eth0"}, // better: the speeds are equal
			{"eth2 down", "eth0"},
			{"primary_reselect=2", "eth0"}, {"eth2 up", "eth0"}, // T7
			{"eth1 up", "eth0"}, // T10
			{"eth0 down", "eth1"},
			{"eth0 up", "eth1"}, {"eth1 down", "eth2"},
			{"primary_reselect=0", "eth2"}, {"eth1 up", "eth1"}, // T8
			{"eth0 prio 1000000", "eth1"}, {"eth1 prio 0", "eth1"}, {"eth2 prio -50", "eth1"}, // T11
		}},
		{"live priorities without a primary", bonding.Options{}, 3, []step{
			{"eth2 prio 5", "eth2"}, {"eth1 prio 6", "eth1"}, {"eth1 prio 5", "eth1"}, // equals stay: the first is active
			{"eth1 prio 4", "eth2"}, {"eth2 prio -1", "eth1"}, {"eth1 prio -1", "eth0"},
		}},
		{"live priorities under failure", bonding.Options{PrimaryReselect: bonding.ReselectFailure}, 3, []step{
			{"eth2 prio 5", "eth0"}, {"eth1 prio 6", "eth0"}, {"eth0 down", "eth1"}, {"eth1 down", "eth2"}, {"eth1 up", "eth2"},
		}},
		{"primary comes back (T175)", bonding.Options{Primary: "eth0"}, 3, []step{
			{"eth0 down", "eth1"}, {"eth0 up", "eth0"},
		}},
		{"primary is released and enslaved again (T176)", bonding.Options{Primary: "eth0"}, 3, []step{
			{"-eth0", "eth1"}, {"eth1 down", "eth2"}, {"eth1 up", "eth2"}, {"+eth0", "eth0"}, {"eth0 down", "eth1"}, {"eth0 up", "eth0"},
		}},
		{"no primary (T178)", bonding.Options{}, 3, []step{
			{"eth0 down", "eth1"}, {"eth0 up", "eth1"}, {"eth1 down", "eth0"},
		}},
		{"primary, always (A47)", bonding.Options{Primary: "eth1", UpDelay: 200 * time.Millisecond}, 2, []step{
			{"wait 200", "eth1"}, {"eth1 down", "eth0"}, {"eth1 up", "eth0"}, {"wait 199", "eth0"}, {"wait 1", "eth1"},
		}},
		{"primary, failure (A47)", bonding.Options{Primary: "eth1", PrimaryReselect: bonding.ReselectFailure}, 2, []step{
			{"eth1 down", "eth0"}, {"eth1 up", "eth0"}, {"wait 1000", "eth0"}, {"eth0 down", "eth1"}, {"eth0 up", "eth1"},
		}},
		{"primary arrives late (A47)", bonding.Options{Primary: "eth2"}, 2, []step{
			{"wait 500", "eth0"}, {"+eth2", "eth2"}, {"-eth2", "eth0"}, {"+eth2", "eth2"},
		}},
		{"primary arrives late, failure: it takes over once", bonding.Options{Primary: "eth2", PrimaryReselect: bonding.ReselectFailure}, 2, []step{
			{"+eth2", "eth2"}, {"eth2 down", "eth0"}, {"eth2 up", "eth0"},
		}},
		{"a third slave moves traffic back", bonding.Options{}, 2, []step{
			{"eth0 down", "eth1"}, {"eth0 up", "eth1"}, {"+eth2", "eth0"},
		}},
		{"a third slave moves nothing under failure", bonding.Options{PrimaryReselect: bonding.ReselectFailure}, 2, []step{
			{"eth0 down", "eth1"}, {"eth0 up", "eth1"}, {"+eth2", "eth1"},
		}},
		{"release of a backup moves nothing", bonding.Options{}, 3, []step{
			{"eth0 down", "eth1"}, {"eth0 up", "eth1"}, {"-eth2", "eth1"}, {"-eth1", "eth0"}, {"-eth0", ""},
		}},
		{"primary set on a live bond takes over once", bonding.Options{PrimaryReselect: bonding.ReselectFailure}, 3, []step{
			{"primary=eth2", "eth2"}, {"active_slave=eth0", "eth0"}, {"eth2 down", "eth0"}, {"eth2 up", "eth0"},
			{"primary=eth2", "eth2"},
		}},
		{"primary set while it is down takes over when it comes", bonding.Options{PrimaryReselect: bonding.ReselectFailure}, 2, []step{
			{"eth1 down", "eth0"}, {"primary=eth1", "eth0"}, {"wait 500", "eth0"}, {"eth1 up", "eth1"},
			{"eth1 down", "eth0"}, {"eth1 up", "eth0"},
		}},
		{"primary is taken away", bonding.Options{Primary: "eth1"}, 2, []step{
			{"primary=", "eth0"}, // the first stands in
			{"primary=eth9", "eth0"}, {"primary=eth1", "eth1"},
		}},
		{"primary is taken away under failure", bonding.Options{Primary: "eth1", PrimaryReselect: bonding.ReselectFailure}, 2, []step{
			{"primary=", "eth1"}, {"primary=eth9", "eth1"},
		}},
		{"primary_reselect runs the selection", bonding.Options{Primary: "eth1", PrimaryReselect: bonding.ReselectFailure}, 2, []step{
			{"eth1 down", "eth0"}, {"eth1 up", "eth0"}, {"primary_reselect=better", "eth0"}, {"primary_reselect=always", "eth1"},
		}},
		// Members 1 and 3 flap, then the first goes. DPDK then takes member 2,
		// which has been up longest; Linux and we take the first in order.
		{"flapping backups (T127)", bonding.Options{}, 4, []step{
			{"eth1 down", "eth0"}, {"eth3 down", "eth0"}, {"eth1 up", "eth0"}, {"eth3 up", "eth0"}, {"eth0 down", "eth1"},
		}},
		// DPDK moves the bond's address with the primary; ours stays (A35).
		{"primary changed under traffic (T128)", bonding.Options{Primary: "eth0"}, 4, []step{
			{"primary=eth1", "eth1"}, {"primary=eth3", "eth3"}, {"primary=eth0", "eth0"},
		}},
		{"active slave moved by order, and back (T88)", bonding.Options{}, 2, []step{
			{"active_slave=eth1", "eth1"}, {"active_slave=eth0", "eth0"}, {"active_slave=eth1", "eth1"}, {"wait 1000", "eth1"},
		}},
		{"an order is not for ever", bonding.Options{Primary: "eth0"}, 3, []step{
			{"active_slave=eth1", "eth1"}, {"eth2 down", "eth1"}, {"eth2 up", "eth1"}, {"eth0 down", "eth1"}, {"eth0 up", "eth0"},
		}},
		{"no active slave asks for a selection", bonding.Options{}, 2, []step{
			{"active_slave=eth1", "eth1"}, {"active_slave=", "eth0"}, {"active_slave=\n", "eth0"},
		}},
		{"all lost, then one back", bonding.Options{}, 2, []step{
			{"eth0 down", "eth1"}, {"eth1 down", ""}, {"wait 1000", ""}, {"eth1 up", "eth1"}, {"eth0 up", "eth1"},
		}},
	} {
		for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceTLB, bonding.BalanceALB} {
			t.Run(fmt.Sprint(mode, "/", tt.name), func(t *testing.T) {
				tt.o.Mode = mode
				r := newRig(t, tt.o, tt.slaves)
				mac := r.LinkAddress()
				r.play(tt.steps)
				if r.LinkAddress() != mac {
					t.Errorf("the bond's address went from %s to %s", mac, r.LinkAddress())
				}
			})
		}
	}
}

// primary_reselect=better looks at the speeds of that moment.
func TestReselectBetter(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth1", PrimaryReselect: bonding.ReselectBetter}, 2)
	flap := func(speed uint32, d link.Duplex, want string) {
		t.Helper()
		r.carrier("eth1", false)
		r.links["eth1"].SetState(link.State{Up: true, Carrier: true, Speed: speed, Duplex: d})
		r.wantActive(fmt.Sprintf("primary at %d %s", speed, d), want)
	}
	r.set("active_slave", "eth0")
	flap(1000, link.DuplexFull, "eth0")
	flap(10000, link.DuplexFull, "eth0")
	flap(40000, link.DuplexHalf, "eth1")
	r.set("active_slave", "eth0")
	flap(link.SpeedUnknown, link.DuplexUnknown, "eth1")
	r.set("active_slave", "eth0")
	flap(10000, link.DuplexUnknown, "eth1")
}

// active_slave is refused where Linux refuses it, and changes nothing then.
func TestActiveSlaveRefused(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 500 * time.Millisecond, DownDelay: 500 * time.Millisecond}, 3)
	r.ms(500)
	r.refuses("active_slave", "eth7", bonding.ErrNoSlave)
	r.refuses("active_slave", "bond0", bonding.ErrNoSlave)
	r.carrier("eth1", false)
	r.refuses("active_slave", "eth1", bonding.ErrInvalid) // going down
	r.carrier("eth0", false)
	r.set("active_slave", "eth0") // it is already, though it is going down
	r.carrier("eth0", true)
	r.ms(500)
	r.refuses("active_slave", "eth1", bonding.ErrInvalid) // down
	r.carrier("eth1", true)
	r.refuses("active_slave", "eth1", bonding.ErrInvalid) // going back
	r.told()
	r.set("active_slave", "eth0") // it is
	if told := r.told(); len(told) != 0 {
		t.Errorf("the active slave made active told %q", told)
	}
	for _, name := range []string{"eth0", "eth1", "eth2"} {
		r.carrier(name, false)
	}
	r.ms(1000)
	r.refuses("active_slave", "eth0", bonding.ErrInvalid) // there is none to take over from
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.BalanceXOR, bonding.Broadcast} {
		newRig(t, bonding.Options{Mode: mode}, 1).refuses("active_slave", "eth0", bonding.ErrMode)
	}
}

// Priorities are the slave's, given at the start or later, over the whole range.
func TestPriorityRange(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
	for i, prio := range []int32{-1 << 31, 1<<31 - 1, 0} {
		r.enslave(fmt.Sprintf("eth%d", i), bonding.SlaveOptions{Priority: prio}, linktest.RecorderOptions{})
		if got := r.slave(fmt.Sprintf("eth%d", i)).Priority; got != prio {
			t.Errorf("priority is %d, want %d", got, prio)
		}
	}
	r.wantActive("at the start", "eth1")
	if err := r.SetSlavePriority("eth9", 1); !errors.Is(err, bonding.ErrNoSlave) {
		t.Errorf("SetSlavePriority() = %v", err)
	}
}

// With a primary a priority is kept, and a warning says that it does not count.
func TestPriorityBesidePrimaryWarns(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth0"}, 2)
	r.told()
	r.do("eth1 prio 7")
	if told := fmt.Sprint(r.told()); told != "[slave eth1: priority 7 is kept, but the primary eth0 comes first]" {
		t.Errorf("told %s", told)
	}
	if got := r.slave("eth1").Priority; got != 7 {
		t.Errorf("priority is %d", got)
	}
}

// The bond's own link follows its slaves: no event for the first three of four
// that go, one for the fourth, one for the first that is back, and none for what
// is up already (T100, T110). Subscribers hear of it, and the rest stays silent.
func TestCarrierFollowsSlaves(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode}, 4)
		calls := 0
		defer r.SubscribeLinkState(func() { calls++ })()
		wantCalls := func(when string, want int, carrier bool) {
			t.Helper()
			if calls != want || r.LinkState().Carrier != carrier || r.Status().Carrier != carrier {
				t.Errorf("%s, %s: subscribers were called %d times, carrier %t, want %d, %t",
					m.mode, when, calls, r.LinkState().Carrier, want, carrier)
			}
		}
		wantCalls("all up", 0, true)
		for i := range 3 {
			r.carrier(fmt.Sprintf("eth%d", i), false)
			wantCalls("some up", 0, true)
		}
		r.carrier("eth3", false)
		wantCalls("none up", 1, false)
		r.carrier("eth2", true)
		wantCalls("one up", 2, true)
		r.links["eth2"].SetCarrier(true)
		r.carrier("eth1", true)
		wantCalls("two up", 2, true)
	}
}

// A bond without slaves has no carrier and an address of its own (T107; DPDK's
// is zero there). Without a NIC slaves stay, as they do in Linux when the bond
// is set down (T101).
func TestCarrierWithoutSlaves(t *testing.T) {
	r := newRig(t, bonding.Options{}, 0)
	if st := r.LinkState(); st.Carrier || !st.Up {
		t.Errorf("state without slaves is %+v", st)
	}
	r.do("+eth0") // a member of a running bond is used at once (T109)
	if !r.LinkState().Carrier || r.carries() != "eth0" {
		t.Errorf("a slave added to a running bond carries nothing")
	}
	r.Attach(nil)
	if st := r.Status(); len(st.Slaves) != 1 || st.Up {
		t.Errorf("without a NIC the status is %s", text(st))
	}
	r.do("-eth0")
	if r.LinkState().Carrier {
		t.Error("carrier without slaves")
	}
}

// In downdelay the last slave is no longer up for the bond's carrier, as in
// Linux.
func TestCarrierInDownDelay(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, DownDelay: 500 * time.Millisecond}, 1)
	r.carrier("eth0", false)
	if r.Status().Carrier {
		t.Error("carrier while the only slave is going down")
	}
	r.carrier("eth0", true)
	if !r.Status().Carrier {
		t.Error("no carrier after a glitch")
	}
}
