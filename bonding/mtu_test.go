package bonding_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

// mtus are those of the bond and of all its slaves.
func (r *rig) mtus() string {
	all := []uint32{r.MTU()}
	for _, s := range r.Status().Slaves {
		all = append(all, s.MTU)
	}
	return fmt.Sprint(all)
}

// The bond takes the first slave's MTU, unless it has one of its own; every
// slave is given it, and has its own again after (A25).
func TestMTU(t *testing.T) {
	r := newRig(t, bonding.Options{}, 0)
	if r.MTU() != 1500 {
		t.Errorf("a bond without slaves has MTU %d", r.MTU())
	}
	big := r.enslave("eth0", bonding.SlaveOptions{}, linktest.RecorderOptions{MTU: 9000})
	small := r.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{MTU: 1500})
	if got := r.mtus(); got != "[9000 9000 9000]" {
		t.Errorf("bond and slaves have MTU %s", got)
	}
	err := r.Enslave("eth2", linktest.NewRecorder(linktest.RecorderOptions{MTU: 1500, MaxMTU: 1500}), bonding.SlaveOptions{})
	if !errors.Is(err, bonding.ErrMTU) || !strings.Contains(err.Error(), "eth2") {
		t.Errorf("Enslave() of a link of 1500 at most = %v", err)
	}
	r.SetMTU(1280)
	if got := r.mtus(); got != "[1280 1280 1280]" {
		t.Errorf("bond and slaves have MTU %s", got)
	}
	r.do("-eth0")
	r.do("-eth1")
	if big.MTU() != 9000 || small.MTU() != 1500 {
		t.Errorf("released slaves have MTU %d, %d, want 9000, 1500", big.MTU(), small.MTU())
	}
	r.enslave("eth3", bonding.SlaveOptions{}, linktest.RecorderOptions{MTU: 9000})
	if got := r.mtus(); got != "[1280 1280]" {
		t.Errorf("the MTU was set by hand, and is now %s", got)
	}
}

// An MTU of the bond's own is given to the first slave too.
func TestExplicitMTU(t *testing.T) {
	for _, mtu := range []uint32{68, 1500, 9000, 65521} {
		r := newRig(t, bonding.Options{MTU: mtu}, 2)
		if got, want := r.mtus(), fmt.Sprint([]uint32{mtu, mtu, mtu}); got != want {
			t.Errorf("bond and slaves have MTU %s, want %s", got, want)
		}
	}
}

// An MTU out of range, or that a slave does not take, changes nothing.
func TestMTURefused(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	r.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{MinMTU: 1000, MaxMTU: 2000})
	r.enslave("eth2", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	r.told()
	for mtu, reason := range map[uint32]string{0: "68 to 65535", 67: "68 to 65535", 65536: "68 to 65535", 1<<32 - 1: "68 to 65535", 999: "eth1", 2001: "eth1"} {
		if err := r.ChangeMTU(mtu); !errors.Is(err, bonding.ErrMTU) || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), fmt.Sprint(mtu)) {
			t.Errorf("ChangeMTU(%d) = %v", mtu, err)
		}
		r.SetMTU(mtu) // cannot say so but by an event
		if told := r.told(); len(told) != 1 || !strings.Contains(told[0], fmt.Sprint("MTU ", mtu)) {
			t.Errorf("SetMTU(%d) told %q", mtu, told)
		}
		if got := r.mtus(); got != "[1500 1500 1500 1500]" {
			t.Errorf("after MTU %d bond and slaves have %s", mtu, got)
		}
	}
	if err := r.ChangeMTU(2000); err != nil || r.mtus() != "[2000 2000 2000 2000]" {
		t.Errorf("ChangeMTU(2000) = %v, bond and slaves have %s", err, r.mtus())
	}
}

// A bond may have as much header room as the slave that needs most.
func TestMaxHeaderLength(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	if got := r.MaxHeaderLength(); got != 14 {
		t.Errorf("MaxHeaderLength() = %d", got)
	}
	if err := r.Enslave("eth1", roomy{linktest.NewRecorder(linktest.RecorderOptions{})}, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := r.MaxHeaderLength(); got != 40 {
		t.Errorf("MaxHeaderLength() = %d, want 40", got)
	}
}

// roomy is a link that needs room for headers of its own.
type roomy struct{ *linktest.Recorder }

func (roomy) MaxHeaderLength() uint16 { return 40 }
