package bonding_test

import (
	"fmt"
	"testing"

	"bondstack/bonding"
)

// reports notes when the bond asks for membership reports, in milliseconds from
// now on.
func (r *rig) reports() *[]int64 {
	start, heard := r.clock.Now(), new([]int64)
	r.tb.Cleanup(r.SubscribeResendMemberships(func() {
		*heard = append(*heard, r.clock.Now().Sub(start).Milliseconds())
	}))
	return heard
}

// After a failover memberships are reported resend_igmp times: the first after a
// tick, then every 200 ms. Only where a group has one place: in the modes with
// an active slave when there is one, and in balance-rr.
func TestResendMemberships(t *testing.T) {
	for _, tt := range []struct {
		mode   bonding.Mode
		resend int
		do     string
		slaves int
		want   string
	}{
		{bonding.ActiveBackup, 0, "eth0 down", 2, "[10]"},
		{bonding.ActiveBackup, 1, "eth0 down", 2, "[10]"},
		{bonding.ActiveBackup, 5, "eth0 down", 2, "[10 210 410 610 810]"},
		{bonding.ActiveBackup, 3, "active_slave=eth1", 2, "[10 210 410]"},
		{bonding.ActiveBackup, 2, "-eth0", 2, "[10 210]"},
		{bonding.ActiveBackup, -1, "eth0 down", 2, "[]"},
		{bonding.ActiveBackup, 5, "eth1 down", 2, "[]"},
		{bonding.ActiveBackup, 5, "eth0 down", 1, "[]"}, // to none
		{bonding.ActiveBackup, 5, "+eth0", 0, "[10 210 410 610 810]"},
		{bonding.BalanceRR, 2, "eth0 down", 2, "[10 210]"},
		{bonding.BalanceRR, 2, "eth1 down", 2, "[]"},
		{bonding.BalanceRR, 2, "eth0 down", 1, "[10 210]"}, // to none: Linux does not look
		{bonding.BalanceXOR, 2, "eth0 down", 2, "[]"},
		{bonding.Broadcast, 2, "eth0 down", 2, "[]"},
		{bonding.IEEE8023AD, 2, "eth0 down", 2, "[]"},
	} {
		r := newRig(t, bonding.Options{Mode: tt.mode, ResendIGMP: tt.resend}, tt.slaves)
		r.ms(60_000)
		heard := r.reports()
		r.do(tt.do)
		r.ms(120_000)
		if got := fmt.Sprint(*heard); got != tt.want {
			t.Errorf("%s, resend_igmp %d, %d slaves, %s: reports at %s, want %s", tt.mode, tt.resend, tt.slaves, tt.do, got, tt.want)
		}
	}
}

// A new failover begins anew; an end of the NIC ends it, and what was left is
// not made up for.
func TestResendMembershipsAgain(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, ResendIGMP: 4}, 3)
	r.ms(60_000)
	heard := r.reports()
	want := func(when, times string) {
		t.Helper()
		if got := fmt.Sprint(*heard); got != times {
			t.Errorf("%s: reports at %s, want %s", when, got, times)
		}
		heard = r.reports()
	}
	r.do("eth0 down")
	r.ms(300)
	r.do("eth1 down")
	r.ms(10_000)
	want("a second failover", "[10 210 310 510 710 910]")
	r.do("eth0 up")
	r.do("active_slave=eth0")
	r.ms(100)
	r.Attach(nil)
	r.ms(1000)
	r.do("active_slave=eth2")
	r.ms(1000)
	r.attach()
	r.ms(1000)
	want("the NIC went", "[10]")
}

// What an inner bond asks for is asked for by the outer one, unless the inner
// one is a backup.
func TestNestedBondForwards(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceXOR} {
		inner := newDownRig(t, bonding.Options{Name: "inner", Mode: bonding.ActiveBackup}, 2)
		outer := newRig(t, bonding.Options{Mode: mode}, 0)
		if err := outer.Enslave("inner", inner.Bond, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		outer.do("+eth9")
		both := func() {
			inner.ms(1000)
			outer.ms(1000)
		}
		both()
		announced := 0
		defer outer.SubscribeNotifyPeers(func() { announced++ })()
		reports := outer.reports()
		inner.do("eth0 down")
		both()
		if announced != 1 || len(*reports) != 1 {
			t.Errorf("%s: %d announcements, %d reports", mode, announced, len(*reports))
		}
		if mode == bonding.ActiveBackup {
			outer.do("active_slave=eth9")
			both()
			announced, reports = 0, outer.reports()
			inner.do("eth0 up")
			inner.do("active_slave=eth0")
			both()
			if announced != 0 || len(*reports) != 0 {
				t.Errorf("a backup's failover: %d announcements, %d reports", announced, len(*reports))
			}
		}
		if err := outer.Release("inner"); err != nil {
			t.Fatal(err)
		}
		announced, reports = 0, outer.reports()
		inner.attach()
		inner.do("eth0 up")
		inner.do("eth1 down")
		both()
		if announced != 0 || len(*reports) != 0 {
			t.Errorf("%s: after its release %d announcements, %d reports", mode, announced, len(*reports))
		}
	}
}
