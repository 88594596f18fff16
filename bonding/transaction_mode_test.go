package bonding_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

// A bond in use changes from each mode to each other: its NIC, address, slaves
// and their settings stay, and frames pass; taken back all is as it was.
func TestTransactionMode(t *testing.T) {
	for _, from := range bonding.AvailableModes() {
		for _, to := range bonding.AvailableModes() {
			if from == to {
				continue
			}
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				r := newRig(t, bonding.Options{Mode: from}, 3)
				_, err := r.Apply(bonding.Transaction{Options: map[string]string{"num_grat_arp": "3", "queue_id": "eth1:2"},
					Slaves: []bonding.SlaveChange{{Slave: "eth1", Priority: ptr(int32(-3)), Weight: ptr(uint32(9))}, {Slave: "eth2", Enabled: ptr(false)}}})
				if err != nil {
					t.Fatal(err)
				}
				was := settings(r.Bond)
				x := bonding.Transaction{Options: map[string]string{"mode": to.String(), "miimon": "50"}}
				out, err := r.Try(x)
				if err != nil || len(out.Differences) < 2 || out.Flows.Moved != nil {
					t.Errorf("Try() = %+v, %v", out, err)
				}
				if d := diff(was, settings(r.Bond)); d != "" {
					t.Fatalf("Try changed (-was +is):\n%s", d)
				}
				a, err := r.Apply(x)
				if err != nil {
					t.Fatal(err)
				}
				is := settings(r.Bond)
				if is.Mode != to || is.MIIMonMs != 50 || !is.Up || is.MACAddress != was.MACAddress || is.MTU != was.MTU || is.Options["num_grat_arp"] != "3" {
					t.Errorf("the status is %+v, was %+v", is, was)
				}
				for i, s := range is.Slaves {
					o := was.Slaves[i]
					if s.Name != o.Name || s.Priority != o.Priority || s.Weight != o.Weight || s.QueueID != o.QueueID || s.Enabled != o.Enabled || s.PermHWAddr != o.PermHWAddr {
						t.Errorf("slave %s is %+v, was %+v", s.Name, s, o)
					}
				}
				r.sends(t, to)
				if err := a.Revert(); err != nil {
					t.Fatal(err)
				}
				got, want := modeless(settings(r.Bond)), modeless(was)
				if d := diff(want, got); d != "" {
					t.Errorf("reverted (-was +is):\n%s", d)
				}
				r.sends(t, from)
			})
		}
	}
}

// modeless leaves out what a mode begins anew with.
func modeless(st bonding.Status) bonding.Status {
	st = steady(st)
	st.LACP, st.Reorder, st.Carrier, st.SpeedMbps, st.Duplex = nil, nil, false, nil, ""
	for i := range st.Slaves {
		s := &st.Slaves[i]
		s.LACP = nil
		s.State, s.Receives = "", false
	}
	return st
}

// sends wants frames to go out; by LACP none does without a partner.
func (r *rig) sends(t *testing.T, mode bonding.Mode) {
	t.Helper()
	for _, l := range r.links {
		l.Drain()
	}
	n, err := r.send(8)
	if mode == bonding.IEEE8023AD {
		return
	}
	if n != 8 || err != nil {
		t.Errorf("in %s %d of 8 frames are taken, %v", mode, n, err)
	}
	if len(r.links["eth2"].Drain()) != 0 {
		t.Errorf("in %s the disabled slave sends", mode)
	}
}

// A mode that a slave cannot be in leaves all as it was.
func TestTransactionModeRefused(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
	r.enslave("eth0", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	r.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	r.set("active_slave", "eth1")
	r.links["eth0"].SetState(r.links["eth0"].LinkState())
	was := settings(r.Bond)
	for _, options := range []map[string]string{
		{"mode": "balance-xor", "primary": "eth0"},
		{"mode": "best"},
		{"mode": "802.3ad", "arp_interval": "100"},
		{"mode": "balance-rr", "num_grat_arp": "256"},
		{"mode": "balance-rr", "fail_over_mac": "active"},
	} {
		if _, err := r.Apply(bonding.Transaction{Options: options}); err == nil {
			t.Errorf("Apply(%v) = nil", options)
		}
		if d := diff(was, settings(r.Bond)); d != "" {
			t.Errorf("%v changed (-was +is):\n%s", options, d)
		}
	}
	_, err := r.Apply(bonding.Transaction{Options: map[string]string{"mode": "balance-rr"}, Remove: []string{"eth0"}})
	if !errors.Is(err, bonding.ErrInvalid) {
		t.Errorf("a mode with slaves: %v", err)
	}
	a, err := r.Apply(bonding.Transaction{Options: map[string]string{"mode": "balance-tlb"}})
	if st := r.Status(); err != nil || st.ActiveSlave != "eth1" || !slices.Equal([]string{st.Slaves[0].Name, st.Slaves[1].Name}, []string{"eth0", "eth1"}) {
		t.Fatalf("the active slave is %s, %v", st.ActiveSlave, err)
	}
	if err := a.Revert(); err != nil || r.Status().ActiveSlave != "eth1" {
		t.Errorf("reverted, the active slave is %s, %v", r.Status().ActiveSlave, err)
	}
}

// A slave that cannot be in the new mode has the whole bond go back.
func TestTransactionModeSlaveRefuses(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: bonding.FailOverMACActive}, 2)
	keeps := stubborn{linktest.NewRecorder(linktest.RecorderOptions{Address: macOf("eth7")})}
	if err := r.Enslave("eth7", keeps, bonding.SlaveOptions{Priority: 4}); err != nil {
		t.Fatal(err)
	}
	r.set("active_slave", "eth1")
	was := settings(r.Bond)
	_, err := r.Apply(bonding.Transaction{Options: map[string]string{"mode": "balance-xor", "miimon": "50"}})
	if !errors.Is(err, bonding.ErrAddress) {
		t.Errorf("Apply() = %v, want %v", err, bonding.ErrAddress)
	}
	if d := diff(was, settings(r.Bond)); d != "" {
		t.Errorf("it changed (-was +is):\n%s", d)
	}
	if n, err := r.send(3); n != 3 || err != nil || len(r.links["eth1"].Drain()) < 3 {
		t.Errorf("afterwards %d of 3 frames are taken, %v", n, err)
	}
}

// Devices of a table stay in it through a change of the mode, and follow their
// renaming; what only the table can do is refused.
func TestTransactionOfDevices(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	a, err := r.Apply(bonding.Transaction{Options: map[string]string{"mode": "balance-xor"}})
	if err != nil {
		t.Fatal(err)
	}
	r.rename("eth1", "wan")
	if got := r.slaveNames(); !slices.Equal(got, []string{"eth0", "wan"}) {
		t.Errorf("slaves %v", got)
	}
	if err := a.Revert(); err != nil || r.Mode() != bonding.ActiveBackup || !slices.Equal(r.slaveNames(), []string{"eth0", "wan"}) {
		t.Errorf("reverted: %v, mode %s, slaves %v", err, r.Mode(), r.slaveNames())
	}
	if dev, _ := r.devices.ByName("wan"); dev.Holder() != "bond0" {
		t.Errorf("wan is held by %q", dev.Holder())
	}
	for _, x := range []bonding.Transaction{
		{Remove: []string{"eth0"}, Revertible: true},
		{Slaves: []bonding.SlaveChange{{Slave: "eth0", NewName: ptr("lan")}}},
	} {
		if _, err := r.Apply(x); !errors.Is(err, bonding.ErrInvalid) {
			t.Errorf("Apply(%+v) = %v", x, err)
		}
	}
	if _, err := r.Apply(bonding.Transaction{Remove: []string{"eth0"}}); err != nil {
		t.Error(err)
	}
	if dev, _ := r.devices.ByName("eth0"); dev.Holder() != "" {
		t.Errorf("eth0 is held by %q", dev.Holder())
	}
}
