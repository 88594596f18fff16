package bonding_test

import (
	"fmt"
	"testing"

	"bondstack/bonding"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// With miimon 0 no slave is ever found to be down: active-backup goes on with
// the slave that it has. The modes that spread leave out a slave whose link
// says that it has no carrier, as in Linux, where that is looked at for each
// frame.
func TestUnmonitored(t *testing.T) {
	for _, tt := range []struct {
		mode bonding.Mode
		want string // how 12 frames are shared once eth0 has no carrier
	}{
		{bonding.BalanceRR, "[0 12]"},
		{bonding.ActiveBackup, "[12 0]"},
		{bonding.BalanceXOR, "[0 12]"},
		{bonding.Broadcast, "[0 12]"},
	} {
		r := newRig(t, bonding.Options{Mode: tt.mode, MIIMon: -1}, 2)
		r.carrier("eth0", false)
		r.ms(1000)
		r.wantMII(tt.mode.String(), "up,up")
		r.send(12)
		if got := fmt.Sprint(r.sent("eth0", "eth1")); got != tt.want {
			t.Errorf("%s: slaves were given %s, want %s", tt.mode, got, tt.want)
		}
		if !r.Status().Carrier {
			t.Errorf("%s: the bond has no carrier", tt.mode)
		}
		r.set("miimon", "100")
		r.clock.RunImmediatelyScheduledJobs()
		r.wantMII("monitored", "down,up")
		r.carrier("eth0", true)
		r.wantMII("monitored", "up,up")
	}
}

// A write that fails goes out by another slave also without a monitor, but
// nothing is committed.
func TestUnmonitoredGoneLink(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, MIIMon: -1}, 2)
	r.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
	for range 10 {
		if n, err := r.send(1); n != 1 || err != nil {
			t.Errorf("WritePackets() = %d, %v", n, err)
		}
		r.ms(10)
	}
	r.wantMII("unmonitored", "up,up")
	r.wantActive("unmonitored", "eth0")
	if got := fmt.Sprint(r.sent("eth0", "eth1")); got != "[0 10]" {
		t.Errorf("slaves were given %s", got)
	}
	r.links["eth0"].Fail(nil)
	if by := r.carries(); by != "eth0" {
		t.Errorf("frames go by %s, want eth0 again", by)
	}
}

// Stopping the monitor leaves links as they are.
func TestStopMonitor(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.carrier("eth0", false)
	r.set("miimon", "0")
	r.carrier("eth1", false)
	r.ms(1000)
	r.wantMII("stopped", "down,up")
	r.carrier("eth0", true)
	r.wantMII("stopped", "down,up")
	r.set("miimon", "10")
	r.clock.RunImmediatelyScheduledJobs()
	r.wantMII("monitored again", "up,down")
	r.wantActive("monitored again", "eth0")
}

// miimon sets how long a silent change goes unseen.
func TestMIIMonIsThePeriod(t *testing.T) {
	for _, ms := range []int{1, 10, 250, 1000} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
		r.ms(77)
		r.set("miimon", fmt.Sprint(ms)) // a pass at once, and one each period
		r.clock.RunImmediatelyScheduledJobs()
		r.silently("eth0", false)
		if took := r.until(func() bool { return r.mii() == "down,up" }); took != ms {
			t.Errorf("miimon %d: found after %d ms", ms, took)
		}
	}
}
