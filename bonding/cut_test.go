package bonding_test

import (
	"errors"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
)

// A silenced slave passes nothing either way, all of it counted, and its link stays
// up: the ARP monitor finds it. Given back, it serves again.
func TestCutSilence(t *testing.T) {
	s := newSegment(t, arpAB, 2)
	s.run(1000)
	s.wantActive("before", "eth0")
	c, err := s.Cut("eth0", bonding.CutSilence, false)
	if err != nil {
		t.Fatal(err)
	}
	if st := s.slave("eth0"); !st.Silenced || !st.Usable {
		t.Errorf("silenced %v, usable %v, want both", st.Silenced, st.Usable)
	}
	before := s.slave("eth0").Counters
	s.up.Drain()
	s.links["eth0"].Inject(s.toBond(0))
	if n := len(s.up.Drain()); n != 0 {
		t.Errorf("%d frames came by the silenced slave", n)
	}
	s.run(1000)
	s.wantActive("silenced", "eth1")
	after := s.slave("eth0").Counters
	if after.TxPackets != before.TxPackets || after.RxPackets != before.RxPackets {
		t.Errorf("%d frames sent and %d received, want none", after.TxPackets-before.TxPackets, after.RxPackets-before.RxPackets)
	}
	sent, received := c.Discarded()
	if sent == 0 || received == 0 || sent != after.Drops["tx_silenced"] || received != after.Drops["rx_silenced"] {
		t.Errorf("%d and %d discarded, counted are %d and %d", sent, received, after.Drops["tx_silenced"], after.Drops["rx_silenced"])
	}
	if f := s.Status().Failovers; len(f) == 0 || f[len(f)-1].Cause != bonding.CauseARP {
		t.Errorf("failovers %v, want one by the ARP monitor", f)
	}
	c.Restore()
	c.Restore()
	s.run(1000)
	s.wantMII("restored", "up,up")
	if now, _ := c.Discarded(); s.slave("eth0").Silenced || s.slave("eth0").Counters.RxPackets == after.RxPackets {
		t.Errorf("frames are discarded after Restore: %d, and %d before", now, sent)
	}
}

// Whatever a mode sends by a silenced slave is discarded.
func TestCutSilenceModes(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.ActiveBackup, bonding.BalanceXOR, bonding.Broadcast, bonding.BalanceTLB, bonding.BalanceALB} {
		r := newRig(t, bonding.Options{Mode: mode, XmitHashPolicy: xmithash.Layer34}, 2)
		r.sent("eth0", "eth1")
		c, err := r.Cut("eth0", bonding.CutSilence, false)
		if err != nil {
			t.Fatal(err)
		}
		r.sendPorts(20)
		if n := r.sent("eth0"); n[0] != 0 {
			t.Errorf("%v: the silenced slave sent %d frames", mode, n[0])
		}
		if n, _ := c.Discarded(); n == 0 {
			t.Errorf("%v: nothing was discarded", mode)
		}
		c.Restore()
		r.sendPorts(20)
		if n := r.sent("eth0"); n[0] == 0 {
			t.Errorf("%v: the slave sends nothing after Restore", mode)
		}
	}
}

// A capture of a silenced slave goes on after Restore, and one that begins
// meanwhile leaves it silenced.
func TestCutAndCapture(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	c, err := r.Cut("eth0", bonding.CutSilence, false)
	if err != nil {
		t.Fatal(err)
	}
	capture, err := r.Capture(bonding.CaptureOptions{Slaves: []string{"eth0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	r.sent("eth0")
	r.send(1)
	if n := r.sent("eth0"); n[0] != 0 {
		t.Errorf("a capture has ended the silence: %d frames sent", n[0])
	}
	c.Restore()
	r.send(1)
	if f, ok := capture.Next(t.Context()); !ok || f.Slave != "eth0" || !f.Out {
		t.Errorf("captured %+v, %v", f, ok)
	}
}

// The orderly ways are those of SetSlaveEnabled and Drain, and a slave that was
// renamed comes back all the same.
func TestCutOrderly(t *testing.T) {
	for how, cause := range map[bonding.CutHow]bonding.FailoverCause{bonding.CutDisable: bonding.CauseDisabled, bonding.CutDrain: bonding.CauseDrain} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
		c, err := r.Cut("eth0", how, false)
		if err != nil {
			t.Fatal(err)
		}
		r.wantActive(string(how), "eth1")
		if f := r.Status().Failovers; len(f) != 1 || f[0].Cause != cause {
			t.Errorf("%s: failovers %v", how, f)
		}
		name := "wan0"
		if _, err := r.Apply(bonding.Transaction{Slaves: []bonding.SlaveChange{{Slave: "eth0", NewName: &name}}}); err != nil {
			t.Fatal(err)
		}
		c.Restore()
		if s := r.slave(name); !s.Enabled || s.Draining {
			t.Errorf("%s: not given back: %+v", how, s)
		}
	}
}

// What cannot be cut is refused, and nothing changes; and who leaves is let go.
func TestCutRefused(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	for _, c := range []struct {
		name string
		how  bonding.CutHow
		want error
	}{{"eth7", bonding.CutSilence, bonding.ErrNoSlave}, {"eth0", "saw", bonding.ErrInvalid}} {
		if _, err := r.Cut(c.name, c.how, false); !errors.Is(err, c.want) {
			t.Errorf("Cut(%s, %s) = %v, want %v", c.name, c.how, err, c.want)
		}
	}
	for _, how := range []bonding.CutHow{bonding.CutSilence, bonding.CutDisable, bonding.CutDrain} {
		c, err := r.Cut("eth0", how, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Cut("eth0", bonding.CutSilence, true); !errors.Is(err, bonding.ErrBusy) {
			t.Errorf("%s: a second Cut() = %v, want %v", how, err, bonding.ErrBusy)
		}
		c.Restore()
	}
	r.carrier("eth1", false)
	if _, err := r.Cut("eth0", bonding.CutDisable, false); !errors.Is(err, bonding.ErrNoSuccessor) {
		t.Errorf("Cut() of the last one = %v, want %v", err, bonding.ErrNoSuccessor)
	}
	if _, err := r.Cut("eth0", bonding.CutDrain, true); !errors.Is(err, bonding.ErrNoSuccessor) {
		t.Errorf("a forced drain of the last one = %v, want %v", err, bonding.ErrNoSuccessor)
	}
	c, err := r.Cut("eth0", bonding.CutDisable, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Release("eth0"); err != nil {
		t.Fatal(err)
	}
	c.Restore()
	r.Close()
	if _, err := r.Cut("eth1", bonding.CutSilence, true); err == nil {
		t.Error("Cut() on a closed bond = nil")
	}
}
