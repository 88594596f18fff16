package bonding_test

import (
	"fmt"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

// passTimes are delays of 0, 1 and 3 passes, with the moments within a period
// of 100 ms at which a link changes.
func passTimes(f func(passes, offset int)) {
	for _, passes := range []int{0, 1, 3} {
		for _, offset := range []int{1, 50, 99} {
			f(passes, offset)
		}
	}
}

// until steps a millisecond at a time until ok, and returns how many it took.
func (r *rig) until(ok func() bool) int {
	r.tb.Helper()
	for n := range 10000 {
		if ok() {
			return n
		}
		r.ms(1)
	}
	r.tb.Fatalf("never became true; MII status is %s, active %q", r.mii(), r.Status().ActiveSlave)
	return 0
}

// A link that changes without telling is found by the next pass, and the delay
// counts from there: failover takes between downdelay and downdelay + miimon.
func TestDownDelayByPolling(t *testing.T) {
	passTimes(func(passes, offset int) {
		t.Run(fmt.Sprintf("passes=%d/offset=%d", passes, offset), func(t *testing.T) {
			delay := time.Duration(passes) * 100 * time.Millisecond
			r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, DownDelay: delay}, 2)
			r.ms(1000 + offset)
			r.silently("eth0", false)
			took := r.until(func() bool { return r.Status().ActiveSlave == "eth1" })
			if least := passes * 100; took < least || took > least+100 || took != least+100-offset {
				t.Errorf("failover took %d ms, want %d of %d to %d", took, least+100-offset, least, least+100)
			}
			r.wantMII("after failover", "down,up")
			r.wantFailures("eth0", 1)
			r.wantFailures("eth1", 0)
		})
	})
}

// A link that tells is acted on at once: failover takes exactly downdelay.
func TestDownDelayByEvents(t *testing.T) {
	passTimes(func(passes, offset int) {
		t.Run(fmt.Sprintf("passes=%d/offset=%d", passes, offset), func(t *testing.T) {
			delay := time.Duration(passes) * 100 * time.Millisecond
			r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, DownDelay: delay}, 2)
			r.ms(1000 + offset)
			r.carrier("eth0", false)
			if passes > 0 {
				r.wantMII("at once", "going down,up")
				r.wantActive("in downdelay", "eth0")
				if by := r.carries(); by != "eth0" {
					t.Errorf("in downdelay frames go by %s, want eth0 as in Linux", by)
				}
			}
			if took := r.until(func() bool { return r.Status().ActiveSlave == "eth1" }); took != passes*100 {
				t.Errorf("failover took %d ms, want %d", took, passes*100)
			}
			r.wantFailures("eth0", 1)
			if by := r.carries(); by != "eth1" {
				t.Errorf("frames go by %s", by)
			}
		})
	})
}

// updelay: a slave that comes back waits, be it found by a pass or by its own
// word.
func TestUpDelay(t *testing.T) {
	passTimes(func(passes, offset int) {
		for _, polling := range []bool{true, false} {
			t.Run(fmt.Sprintf("passes=%d/offset=%d/polling=%t", passes, offset, polling), func(t *testing.T) {
				delay := time.Duration(passes) * 100 * time.Millisecond
				r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: delay}, 2)
				r.ms(1000 + offset)
				r.carrier("eth1", false)
				r.wantMII("eth1 lost", "up,down")
				r.ms(1000)
				change, want := r.carrier, passes*100
				if polling {
					change, want = r.silently, passes*100+100-offset
				}
				change("eth1", true)
				if !polling && passes > 0 {
					r.wantMII("eth1 back", "up,going back")
				}
				if took := r.until(func() bool { return r.mii() == "up,up" }); took != want {
					t.Errorf("recovery took %d ms, want %d", took, want)
				}
				r.wantFailures("eth1", 1)
				r.wantActive("at the end", "eth0")
			})
		}
	})
}

// A loss that ends before downdelay is over is a glitch: it does not count and
// nothing moves.
func TestGlitch(t *testing.T) {
	for _, length := range []int{1, 99, 100, 199} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, DownDelay: 200 * time.Millisecond}, 2)
		r.ms(50)
		r.told()
		r.carrier("eth0", false)
		r.ms(length)
		r.carrier("eth0", true)
		r.wantMII("after the glitch", "up,up")
		r.wantActive("after the glitch", "eth0")
		r.wantFailures("eth0", 0)
		if told, want := fmt.Sprint(r.told()), "[slave eth0: link going down, was up slave eth0: link up, was going down]"; told != want {
			t.Errorf("glitch of %d ms told\n %s, want\n %s", length, told, want)
		}
	}
}

// A link that is lost again in updelay was down all the time, and counts again,
// as in Linux.
func TestLossInUpDelayCounts(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 300 * time.Millisecond}, 2)
	r.carrier("eth1", false)
	for i := range 3 {
		r.carrier("eth1", true)
		r.ms(299)
		r.wantMII("in updelay", "up,going back")
		r.carrier("eth1", false)
		r.wantMII("lost again", "up,down")
		r.wantFailures("eth1", uint32(2+i))
	}
	r.carrier("eth1", true)
	r.ms(300)
	r.wantMII("at last", "up,up")
}

// recoveryModes are the modes and whether the first slave that comes back to a
// bond without any skips its updelay.
var recoveryModes = []struct {
	mode   bonding.Mode
	bypass bool
}{
	{bonding.BalanceRR, false},
	{bonding.ActiveBackup, true},
	{bonding.BalanceXOR, true},
	{bonding.BalanceTLB, true},
	{bonding.BalanceALB, true},
	{bonding.Broadcast, false},
}

// A bond without any link is up again at once, whatever updelay says, in
// active-backup and balance-xor; the others wait, as in Linux (T57, T58).
func TestRecoveryFromNone(t *testing.T) {
	for _, m := range recoveryModes {
		for _, updelay := range []int{0, 100, 200, 500, 1000, 2000, 5000} {
			t.Run(fmt.Sprintf("%s/updelay=%d", m.mode, updelay), func(t *testing.T) {
				r := newRig(t, bonding.Options{Mode: m.mode}, 2)
				r.set("updelay", fmt.Sprint(updelay))
				r.carrier("eth0", false)
				r.carrier("eth1", false)
				r.ms(250)
				if by := r.carries(); by != "" || r.Status().Carrier {
					t.Errorf("without a link frames go by %q, carrier %t", by, r.Status().Carrier)
				}
				r.carrier("eth1", true)
				want := "down,going back"
				if m.bypass || updelay == 0 {
					want = "down,up"
				}
				r.wantMII("eth1 back", want)
				if by := r.carries(); (by == "eth1") != (want == "down,up") {
					t.Errorf("frames go by %q", by)
				}
				r.ms(updelay)
				r.wantMII("after updelay", "down,up")
			})
		}
	}
}

// Of several that come back in one pass, only the first skips its updelay.
func TestOnlyTheFirstSkipsUpDelay(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode, UpDelay: 300 * time.Millisecond}, 3)
		r.ms(300)
		r.wantMII("at first", "up,up,up")
		for _, name := range []string{"eth0", "eth1", "eth2"} {
			r.carrier(name, false)
		}
		r.ms(50)
		r.silently("eth1", true)
		r.silently("eth2", true)
		r.ms(50) // the pass
		want := "down,going back,going back"
		if m.bypass {
			want = "down,up,going back"
		}
		r.wantMII(m.mode.String(), want)
		r.ms(299)
		r.wantMII(m.mode.String(), want)
		r.ms(1)
		r.wantMII(m.mode.String(), "down,up,up")
	}
}

// A slave in downdelay is still there, so nobody skips an updelay.
func TestNoBypassWhileInDownDelay(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 500 * time.Millisecond, DownDelay: 300 * time.Millisecond}, 2)
	r.carrier("eth1", false)
	r.ms(600)
	r.carrier("eth1", true)
	r.ms(100)
	r.carrier("eth0", false)
	r.ms(200)
	r.wantMII("both delays running", "going down,going back")
	r.wantActive("both delays running", "eth0")
	r.ms(100) // downdelay is over: the one on its way up takes over early
	r.wantMII("downdelay over", "down,up")
	r.wantActive("downdelay over", "eth1")
}

// The pass that finds the active slave lost takes the one that it finds back,
// since a slave on its way up is better than none, also when both are found by
// the same pass. Linux counts that pass as a first one of updelay.
func TestBackTakesOverEarly(t *testing.T) {
	for _, sincePass := range []int{0, 1, 99} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 500 * time.Millisecond}, 3)
		r.ms(500)
		r.carrier("eth1", false)
		r.carrier("eth2", false)
		r.ms(1000)
		r.silently("eth2", true)
		r.ms(100)
		r.wantMII("eth2 back", "up,down,going back")
		r.silently("eth1", true)
		if sincePass > 0 {
			r.ms(100)
			r.ms(sincePass)
		}
		r.silently("eth0", false)
		r.ms(100 - sincePass)
		r.wantActive("eth0 lost", "eth2") // it has waited longest
		r.wantMII("eth0 lost", "down,going back,up")
	}
}

// A slave enslaved a moment ago has waited for nothing yet, so it does not take
// over early; the next pass lets it skip its updelay, since there is no other.
func TestEnslavedInUpDelayWaitsForAPass(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 500 * time.Millisecond}, 0)
	r.ms(30)
	r.enslave("eth0", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	r.wantActive("enslaved", "eth0") // its own word, right after, is a pass
	r = newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 500 * time.Millisecond}, 0)
	r.ms(30)
	if err := r.Enslave("eth0", linktest.Plain(linktest.NewNull(linktest.NullOptions{})), bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	r.wantActive("enslaved", "")
	r.ms(70)
	r.wantActive("after a pass", "eth0")
}

// A link that knows nothing of itself is always up.
func TestPlainLinkIsUp(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
	if err := r.Enslave("eth0", linktest.Plain(linktest.NewNull(linktest.NullOptions{})), bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	r.ms(1000)
	r.wantMII("without a state", "up")
	if s := r.slave("eth0"); s.SpeedMbps != nil || s.Duplex != "unknown" || !s.Usable {
		t.Errorf("status is %+v", s)
	}
}

// Monitors run while a NIC has the bond. What happened meanwhile is found at
// once when one takes it.
func TestMonitorRunsWhileAttached(t *testing.T) {
	r := newDownRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.carrier("eth0", false)
	r.ms(1000)
	r.wantMII("before it is attached", "up,up")
	r.attach()
	r.wantMII("attached", "down,up")
	r.Attach(nil)
	r.carrier("eth0", true)
	r.carrier("eth1", false)
	r.ms(1000)
	r.wantMII("detached", "down,up")
	r.attach()
	r.wantMII("attached again", "up,down")
	r.wantActive("attached again", "eth0")
}

// A link that is administratively down is lost as one without carrier is.
func TestAdminDownIsLost(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	s := r.links["eth0"].LinkState()
	s.Up = false
	r.links["eth0"].SetState(s)
	r.wantMII("eth0 down", "down,up")
	r.wantActive("eth0 down", "eth1")
}

// So does a slave that is on its way up since this very pass, or since a moment
// ago.
func TestBackTakesOverAtOnce(t *testing.T) {
	for _, change := range []string{"found by one pass", "told, the loss 1 ms later"} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 500 * time.Millisecond}, 2)
		r.carrier("eth1", false)
		r.ms(1050)
		if change == "found by one pass" {
			r.silently("eth1", true)
			r.silently("eth0", false)
			r.ms(50)
		} else {
			r.carrier("eth1", true)
			r.ms(1)
			r.carrier("eth0", false)
		}
		r.wantActive(change, "eth1")
		r.wantMII(change, "down,up")
		if by := r.carries(); by != "eth1" {
			t.Errorf("%s: frames go by %q", change, by)
		}
	}
}

// Two links that do not tell, with miimon=10: the bond tells of the first that
// comes and of the last that goes, and not of the others (T122).
func TestPollingTellsOfTheBondOnce(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode, MIIMon: 10 * time.Millisecond}, 2)
		r.silently("eth0", false)
		r.silently("eth1", false)
		r.ms(100)
		changes := 0
		defer r.SubscribeLinkState(func() { changes++ })()
		for _, tt := range []struct {
			do      func()
			within  int
			changes int
			carrier bool
		}{
			{func() { r.silently("eth0", true) }, 15, 1, true},
			{func() { r.silently("eth1", true) }, 15, 0, true},
			{func() { r.silently("eth0", false); r.silently("eth1", false) }, 20, 1, false},
		} {
			changes = 0
			tt.do()
			r.ms(tt.within)
			if changes != tt.changes || r.Status().Carrier != tt.carrier {
				t.Errorf("%s: %d changes told of, carrier %t; want %d, %t", m.mode, changes, r.Status().Carrier, tt.changes, tt.carrier)
			}
		}
	}
}
