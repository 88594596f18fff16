package bonding_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"bondstack/bonding"
)

// The order of the checks: mode, empty, down, value, the option's own rule.
func TestOptionCheckOrder(t *testing.T) {
	for _, tt := range []struct {
		about       string
		up          bool
		slaves      int
		mode        bonding.Mode
		name, value string
		want        error
	}{
		{"mode before value", true, 1, bonding.ActiveBackup, "packets_per_slave", "x", bonding.ErrMode},
		{"mode before precondition", false, 0, bonding.BalanceXOR, "primary", "a/b", bonding.ErrMode},
		{"slaves before up", true, 1, bonding.BalanceRR, "mode", "1", bonding.ErrNotEmpty},
		{"slaves before value", true, 1, bonding.BalanceRR, "mode", "x", bonding.ErrNotEmpty},
		{"slaves alone", false, 1, bonding.BalanceRR, "mode", "1", bonding.ErrNotEmpty},
		{"up before value", true, 0, bonding.BalanceRR, "mode", "x", bonding.ErrUp},
		{"up alone", true, 0, bonding.BalanceRR, "mode", "1", bonding.ErrUp},
		{"value before availability", false, 0, bonding.BalanceRR, "use_carrier", "9", bonding.ErrInvalid},
		{"neither", false, 0, bonding.BalanceRR, "mode", "1", nil},
		{"may change while up with slaves", true, 2, bonding.BalanceXOR, "xmit_hash_policy", "1", nil},
		{"may change while up with slaves", true, 2, bonding.BalanceRR, "packets_per_slave", "7", nil},
		{"may change while up with slaves", true, 2, bonding.BalanceXOR, "miimon", "50", nil},
	} {
		r := newDownRig(t, bonding.Options{Mode: tt.mode}, tt.slaves)
		if tt.up {
			r.attach()
		}
		if err := r.SetOption(tt.name, tt.value); !errors.Is(err, tt.want) {
			t.Errorf("%s: SetOption(%s, %q) = %v, want %v", tt.about, tt.name, tt.value, err, tt.want)
		}
	}
}

// A value that cannot be read comes before the option's own rule: a delay
// without miimon is invalid first and only then lacks its precondition.
func TestDelayNeedsMIIMon(t *testing.T) {
	r := newRig(t, bonding.Options{MIIMon: -1}, 1)
	for _, name := range []string{"updelay", "downdelay", "peer_notif_delay"} {
		r.refuses(name, "2147483648", bonding.ErrInvalid)
		r.refuses(name, "100", bonding.ErrPrecondition)
		r.refuses(name, "0", bonding.ErrPrecondition)
	}
}

// A change of several options is all or none.
func TestSetOptionsAllOrNone(t *testing.T) {
	good := map[string]string{"miimon": "50", "updelay": "200", "primary": "eth1", "num_grat_arp": "7",
		"all_slaves_active": "1", "queue_id": "eth0:3", "active_slave": "eth1", "xmit_hash_policy": "2"}
	for _, bad := range []map[string]string{
		{"no_such_option": "1"}, {"min_links": "-1"}, {"packets_per_slave": "2"}, {"mode": "0"},
		{"fail_over_mac": "follow"}, {"downdelay": "x"}, {"rx_dedup": "maybe"}, // the last of the table
		{"arp_interval": "100"},
	} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, PrimaryReselect: bonding.ReselectFailure}, 2)
		before, all := r.Status(), map[string]string{}
		r.told()
		for _, m := range []map[string]string{good, bad} {
			for k, v := range m {
				all[k] = v
			}
		}
		if err := r.SetOptions(all); err == nil {
			t.Errorf("SetOptions(%v) = nil", all)
		}
		if after := r.Status(); !sameStatus(before, after) {
			t.Errorf("SetOptions(%v) failed and left\n %+v, was\n %+v", all, after, before)
		}
		if told := r.told(); len(told) > 0 {
			t.Errorf("SetOptions(%v) failed and told %q", all, told)
		}
	}

	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, PrimaryReselect: bonding.ReselectFailure}, 2)
	if err := r.SetOptions(good); err != nil {
		t.Fatalf("SetOptions(%v) = %v", good, err)
	}
	st := r.Status()
	if st.ActiveSlave != "eth1" || st.UpDelayMs != 200 || st.MIIMonMs != 50 || st.Slaves[0].QueueID != 3 || !st.Slaves[0].Receives {
		t.Errorf("SetOptions() set %+v", st)
	}
}

// sameStatus compares all but counters.
func sameStatus(a, b bonding.Status) bool {
	a.Counters, b.Counters = bonding.Counters{}, bonding.Counters{}
	return text(a) == text(b)
}

// Every fault of a change is named.
func TestSetOptionsNamesEveryFault(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 1)
	err := r.SetOptions(map[string]string{"miimon": "x", "zzz": "1", "aaa": "2", "min_links": "-1", "mode": "2", "packets_per_slave": "1"})
	for _, want := range []string{`miimon="x"`, `zzz="1"`, `aaa="2"`, `min_links="-1"`, `mode="2"`, `packets_per_slave="1"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("SetOptions() = %v, want it to name %s", err, want)
		}
	}
	for _, kind := range []error{bonding.ErrInvalid, bonding.ErrUnknownOption, bonding.ErrNotEmpty, bonding.ErrMode} {
		if !errors.Is(err, kind) {
			t.Errorf("SetOptions() = %v, want it to be %v", err, kind)
		}
	}
}

// The order in which netlink applies attributes lets options that need another
// come in one change with it.
func TestSetOptionsOrder(t *testing.T) {
	for _, tt := range []struct {
		values map[string]string
		reads  map[string]string // nil: refused
	}{
		{map[string]string{"updelay": "100", "miimon": "50"}, map[string]string{"updelay": "100", "miimon": "50"}},
		{map[string]string{"updelay": "120", "downdelay": "99", "peer_notif_delay": "151", "miimon": "50"},
			map[string]string{"updelay": "100", "downdelay": "50", "peer_notif_delay": "150"}},
		{map[string]string{"miimon": "0", "updelay": "50"}, nil},
		{map[string]string{"mode": "active-backup", "primary": "eth0"}, map[string]string{"mode": "active-backup 1", "primary": "eth0"}},
		{map[string]string{"mode": "active-backup", "packets_per_slave": "2"}, nil}, // not in the mode that it will be
		{map[string]string{"mode": "active-backup", "primary_reselect": "2", "primary": "eth1"},
			map[string]string{"primary_reselect": "failure 2", "primary": "eth1"}},
		{map[string]string{"miimon": "100", "arp_interval": "100"}, nil},
		{map[string]string{"miimon": "100", "arp_interval": "0"}, map[string]string{"miimon": "100", "arp_interval": "0"}},
		{map[string]string{"num_grat_arp": "3", "num_unsol_na": "4"}, map[string]string{"num_grat_arp": "4", "num_unsol_na": "4"}},
		{nil, map[string]string{"miimon": "0"}},
	} {
		r := newDownRig(t, bonding.Options{MIIMon: -1}, 0)
		err := r.SetOptions(tt.values)
		if (err != nil) != (tt.reads == nil) {
			t.Errorf("SetOptions(%v) = %v", tt.values, err)
		}
		for name, want := range tt.reads {
			if got, _ := r.Option(name); got != want {
				t.Errorf("SetOptions(%v): %s reads back %q, want %q", tt.values, name, got, want)
			}
		}
	}
}

// A delay that is no multiple of miimon is rounded down, and the bond says so
// (A40).
func TestDelayIsRounded(t *testing.T) {
	for _, tt := range []struct {
		value, want, warning string
	}{
		{"250", "200", "updelay 250 is not a multiple of miimon 100: rounded down to 200"},
		{"99", "0", "updelay 99 is not a multiple of miimon 100: rounded down to 0"},
		{"300", "300", ""},
		{"0", "0", ""},
	} {
		r := newRig(t, bonding.Options{}, 1)
		r.told()
		r.set("updelay", tt.value)
		if got, _ := r.Option("updelay"); got != tt.want || r.Status().UpDelayMs*100 == 1 {
			t.Errorf("updelay %s reads back %s, want %s", tt.value, got, tt.want)
		}
		if told := strings.Join(r.told(), "; "); told != tt.warning {
			t.Errorf("updelay %s told %q, want %q", tt.value, told, tt.warning)
		}
	}
}

// Delays are counts of passes: they scale with miimon, read as 0 without it,
// and are back when it is.
func TestDelaysScaleWithMIIMon(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	delays := []string{"updelay", "downdelay", "peer_notif_delay"}
	for i, name := range delays {
		r.set(name, []string{"300", "200", "500"}[i])
	}
	for _, tt := range []struct {
		miimon string
		want   []string
	}{
		{"50", []string{"150", "100", "250"}},
		{"0", []string{"0", "0", "0"}},
		{"1000", []string{"3000", "2000", "5000"}},
		{"1", []string{"3", "2", "5"}},
		{"100", []string{"300", "200", "500"}},
	} {
		r.set("miimon", tt.miimon)
		for i, name := range delays {
			if got, _ := r.Option(name); got != tt.want[i] {
				t.Errorf("miimon %s: %s reads %s, want %s", tt.miimon, name, got, tt.want[i])
			}
		}
	}
}

// The greatest count of passes times the greatest miimon is more than a clock
// can tell. It stays a delay that is never over, not one that is over at once.
func TestGreatestDelays(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, MIIMon: 1e6}, 2)
	for _, name := range []string{"updelay", "downdelay", "peer_notif_delay"} {
		r.set(name, "maxval")
	}
	r.set("miimon", "maxval")
	r.carrier("eth0", false)
	r.carrier("eth1", false)
	r.ms(3600_000)
	r.wantMII("an hour after both links went", "going down,going down")
	r.wantActive("an hour after both links went", "eth0")
}

// Setting an option to what it is changes nothing that goes on.
func TestSetOptionToItself(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth1"}, 2)
	before := r.Status()
	for name, value := range before.Options {
		switch name {
		case "mode", "fail_over_mac", "ad_select", "packets_per_slave", "primary": // not now, not in this mode, an order of its own
			continue
		}
		if err := r.SetOption(name, value); err != nil && !errors.Is(err, bonding.ErrMode) {
			t.Errorf("SetOption(%s, %q) = %v", name, value, err)
		}
	}
	r.ms(1000)
	if after := r.Status(); !sameStatus(before, after) {
		t.Errorf("status is\n %+v, was\n %+v", after, before)
	}
}

// A closed bond takes no options.
func TestSetOptionAfterClose(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	r.Close()
	if err := r.SetOption("miimon", "50"); !errors.Is(err, bonding.ErrClosed) {
		t.Errorf("SetOption() = %v", err)
	}
}

// queue_id: its form, its range, and one slave for each id. The last colon
// separates, since a slave's name cannot hold one anyway.
func TestQueueID(t *testing.T) {
	r := newRig(t, bonding.Options{}, 2)
	for _, text := range []string{"eth0", "eth0:", ":1", "eth0:17", "eth0:-1", "eth0:x", "eth2:1", "eth0: 1", "eth0:65536", "eth0:1:", "eth0:+1"} {
		r.refuses("queue_id", text, bonding.ErrPrecondition)
	}
	for _, tt := range []struct{ set, want string }{
		{"eth0:1", "eth0:1 eth1:0"},
		{"eth1:16\n", "eth0:1 eth1:16"},
		{"eth0:1", "eth0:1 eth1:16"}, // its own
		{"eth1:0", "eth0:1 eth1:0"},
		{"eth0:0", "eth0:0 eth1:0"}, // 0 is no id, and many may have it
	} {
		r.set("queue_id", tt.set)
		if got, _ := r.Option("queue_id"); got != tt.want {
			t.Errorf("queue_id after %q reads %q, want %q", tt.set, got, tt.want)
		}
	}
	r.set("queue_id", "eth0:5")
	r.refuses("queue_id", "eth1:5", bonding.ErrPrecondition)
}

// Values of one slave are its own (T82).
func TestSlaveValuesAreApart(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.set("queue_id", "eth0:1")
	r.set("queue_id", "eth1:2")
	if err := errors.Join(r.SetSlavePriority("eth0", 10), r.SetSlavePriority("eth1", -20), r.SetSlaveEnabled("eth1", false)); err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, s := range r.Status().Slaves {
		got = append(got, s.Name, s.Priority, s.QueueID, s.Enabled)
	}
	if want := []any{"eth0", int32(10), uint16(1), true, "eth1", int32(-20), uint16(2), false}; !slices.Equal(got, want) {
		t.Errorf("slaves are %v, want %v", got, want)
	}
	for _, err := range []error{r.SetSlavePriority("eth2", 1), r.SetSlaveEnabled("eth2", true)} {
		if !errors.Is(err, bonding.ErrNoSlave) {
			t.Errorf("change of a slave that is not there = %v", err)
		}
	}
}
