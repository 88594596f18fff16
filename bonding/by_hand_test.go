package bonding_test

import (
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

func (r *rig) enable(name string, on bool) {
	r.tb.Helper()
	if err := r.SetSlaveEnabled(name, on); err != nil {
		r.tb.Fatalf("SetSlaveEnabled(%s, %t) = %v", name, on, err)
	}
}

// A slave that was disabled by hand stays so, whatever its link does (A56).
func TestDisabledSlaveStaysDisabled(t *testing.T) {
	for _, m := range recoveryModes {
		for _, miimon := range []time.Duration{0, -1} {
			r := newRig(t, bonding.Options{Mode: m.mode, MIIMon: miimon}, 2)
			r.enable("eth0", false)
			for range 5 {
				r.carrier("eth0", false)
				r.ms(150)
				r.carrier("eth0", true)
				r.ms(150)
				if s := r.slave("eth0"); s.Enabled || s.MIIStatus != "down" || !s.Usable {
					t.Errorf("%s: status of the disabled slave is %+v", m.mode, s)
				}
				if by := r.carries(); by != "eth1" {
					t.Errorf("%s: frames go by %q, want eth1", m.mode, by)
				}
			}
			r.enable("eth0", true)
			r.wantMII("enabled", "up,up")
			r.wantFailures("eth0", 1)
			r.carrier("eth1", false)
			r.enable("eth1", false)
			if by := r.carries(); by != "eth0" {
				t.Errorf("%s, miimon %v: after it was enabled frames go by %q, want eth0", m.mode, miimon, by)
			}
		}
	}
}

// Disabling is at once, whatever downdelay says; enabling waits for updelay.
func TestEnableAndDisableInTime(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 300 * time.Millisecond, DownDelay: 300 * time.Millisecond}, 2)
	r.ms(300)
	r.enable("eth0", false)
	r.wantMII("disabled", "down,up")
	r.wantActive("disabled", "eth1")
	r.enable("eth0", true)
	r.wantMII("enabled", "going back,up")
	r.ms(299)
	r.wantMII("in updelay", "going back,up")
	r.ms(1)
	r.wantMII("updelay over", "up,up")
	r.wantActive("updelay over", "eth1")
}

// Saying again what is so already changes nothing.
func TestEnableTwice(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 300 * time.Millisecond}, 2)
	r.ms(300)
	r.told()
	r.enable("eth0", true)
	r.wantMII("enabled twice", "up,up")
	r.enable("eth1", false)
	r.enable("eth1", false)
	r.wantMII("disabled twice", "up,down")
	r.wantFailures("eth1", 1)
}

// A slave may be enslaved disabled, with or without a monitor.
func TestEnslaveDisabled(t *testing.T) {
	for _, m := range recoveryModes {
		for _, miimon := range []time.Duration{0, -1} {
			r := newRig(t, bonding.Options{Mode: m.mode, MIIMon: miimon}, 0)
			r.enslave("eth0", bonding.SlaveOptions{Disabled: true}, linktest.RecorderOptions{})
			r.ms(300)
			r.wantMII("enslaved disabled", "down")
			if by := r.carries(); by != "" || r.Status().Carrier || r.drops("tx_no_slave") != 1 {
				t.Errorf("%s, miimon %v: frames go by %q, carrier %t", m.mode, miimon, by, r.Status().Carrier)
			}
			r.enable("eth0", true)
			r.wantMII("enabled", "up")
			if by := r.carries(); by != "eth0" {
				t.Errorf("%s, miimon %v: frames go by %q", m.mode, miimon, by)
			}
		}
	}
}

// Enabling a slave whose link is lost leaves it down until the link is back.
func TestEnableWithoutCarrier(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.enable("eth1", false)
	r.carrier("eth1", false)
	r.enable("eth1", true)
	r.wantMII("enabled without carrier", "up,down")
	r.carrier("eth1", true)
	r.wantMII("carrier is back", "up,up")
	r.wantFailures("eth1", 1)
}

// A disabled slave does not become active by order.
func TestActiveSlaveDisabled(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.enable("eth1", false)
	r.refuses("active_slave", "eth1", bonding.ErrInvalid)
}
