package bonding_test

import (
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
)

// flap has a link lost and found again.
func (r *rig) flap(name string) {
	r.carrier(name, false)
	r.carrier(name, true)
}

func (r *rig) wantHold(when, name string, losses uint32, ms uint64) {
	r.tb.Helper()
	if s := r.slave(name); s.FlapLosses != losses || s.FlapHoldMs != ms {
		r.tb.Errorf("%s: slave %s has %d losses and is held for %d ms, want %d and %d", when, name, s.FlapLosses, s.FlapHoldMs, losses, ms)
	}
}

// The hold doubles with each loss, up to 64 times the option's, and losses are
// forgotten one by one.
func TestFlapBackoffTable(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FlapBackoff: 100 * time.Millisecond}, 2)
	for i, ms := range []uint64{0, 100, 200, 400, 800, 1600, 3200, 6400, 6400, 6400} {
		r.flap("eth0")
		r.wantHold("after a loss", "eth0", uint32(min(i+1, 8)), ms)
	}
	r.ms(6399)
	r.wantHold("before its end", "eth0", 8, 1)
	r.ms(1)
	r.wantHold("at its end", "eth0", 7, 0)
	r.ms(6400)
	r.wantHold("later", "eth0", 6, 0)
	r.flap("eth0")
	r.wantHold("lost again", "eth0", 7, 3200)
	r.ms(6 * 6400)
	r.wantHold("much later", "eth0", 1, 0)
	r.ms(6400)
	r.wantHold("quiet", "eth0", 0, 0)
	r.flap("eth0")
	r.wantHold("a single loss", "eth0", 1, 0)
	r.flap("eth0")
	r.set("flap_backoff", "0")
	r.wantHold("turned off", "eth0", 0, 0)
	r.flap("eth0")
	r.flap("eth0")
	r.wantHold("while off", "eth0", 0, 0)
}

// A primary that flaps takes over again only after its hold, and at once where
// it is the only one.
func TestFlapBackoffPrimary(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth0", FlapBackoff: time.Second}, 2)
	r.flap("eth0")
	r.wantActive("after one loss", "eth0")
	r.flap("eth0")
	r.wantActive("after two", "eth1")
	r.wantMII("after two", "up,up")
	r.ms(999)
	r.wantActive("before the hold is over", "eth1")
	r.ms(1)
	r.wantActive("after it", "eth0")

	r.flap("eth0")
	r.wantActive("after three", "eth1")
	r.carrier("eth1", false)
	r.wantActive("with no other", "eth0")
	r.carrier("eth1", true)
	r.wantActive("with another", "eth1")
	r.ms(2000)
	r.wantActive("after the longer hold", "eth0")
	last := r.Status().Failovers
	if f := last[len(last)-2]; f.Cause != bonding.CauseBackOff || f.From != "eth0" {
		t.Errorf("failover %s, want one by back-off", f)
	}
}

// Without a reason to prefer it, a slave whose hold is over stays a backup, and
// updelay is as ever.
func TestFlapBackoffUpdelay(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FlapBackoff: 300 * time.Millisecond, UpDelay: 500 * time.Millisecond}, 2)
	r.ms(500)
	r.wantActive("at first", "eth0")
	r.flap("eth0")
	r.ms(200)
	r.flap("eth0") // a loss during updelay counts
	r.wantHold("after two", "eth0", 2, 300)
	r.wantMII("after two", "going back,up")
	r.ms(500)
	r.wantMII("after updelay", "up,up")
	r.wantActive("after both", "eth1")
}

// In the modes that spread a held slave sends nothing while another can.
func TestFlapBackoffSpread(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.BalanceXOR, bonding.Broadcast} {
		r := newRig(t, bonding.Options{Mode: mode, FlapBackoff: 100 * time.Millisecond, XmitHashPolicy: xmithash.Layer34}, 2)
		r.flap("eth1")
		r.flap("eth1")
		if got := r.carries(); got != "eth0" {
			t.Errorf("%v: %q sends, want eth0", mode, got)
		}
		r.ms(100)
		r.sendPorts(20)
		if n := r.sent("eth0", "eth1"); n[0] == 0 || n[1] == 0 {
			t.Errorf("%v: slaves sent %v frames after the hold, want both", mode, n)
		}
	}
}

// Disabling by hand is no flap.
func TestFlapBackoffByHand(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FlapBackoff: time.Second}, 2)
	for range 5 {
		r.SetSlaveEnabled("eth0", false)
		r.SetSlaveEnabled("eth0", true)
	}
	r.wantHold("disabled five times", "eth0", 0, 0)
}
