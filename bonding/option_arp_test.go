package bonding_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
)

// reads checks what options read back as: "name=value".
func (r *rig) reads(about string, want ...string) {
	r.tb.Helper()
	for _, w := range want {
		name, value, _ := strings.Cut(w, "=")
		if got, err := r.Option(name); got != value || err != nil {
			r.tb.Errorf("%s: %s reads %q, %v, want %q", about, name, got, err, value)
		}
	}
}

// Each monitor ends the other one, and a change of mode fits them to it.
func TestMonitorsExclude(t *testing.T) {
	r := newDownRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: 300 * time.Millisecond}, 0)
	r.set("arp_validate", "all")
	r.reads("stored without a monitor", "arp_validate=all 3", "miimon=100")
	r.set("arp_interval", "250")
	r.reads("arp_interval", "arp_interval=250", "miimon=0", "updelay=0", "arp_validate=all 3")
	r.refuses("updelay", "100", bonding.ErrPrecondition)
	r.set("arp_interval", "0")
	r.reads("off", "arp_interval=0", "miimon=0")
	r.set("arp_interval", "20")
	r.set("miimon", "0")
	r.reads("miimon 0", "arp_interval=20", "arp_validate=all 3")
	r.set("miimon", "50")
	r.reads("miimon", "miimon=50", "arp_interval=0", "arp_validate=none 0", "updelay=150") // the count is kept

	r.set("arp_interval", "20")
	r.set("arp_validate", "filter")
	r.set("mode", "balance-xor")
	r.reads("another mode", "arp_interval=20", "arp_validate=none 0", "miimon=0")
	r.set("mode", "802.3ad")
	r.reads("a mode without", "arp_interval=0", "miimon=100")
	r.set("miimon", "0")
	r.set("mode", "802.3ad")
	r.reads("a mode without, again", "miimon=100")
}

// Both in one message are refused, as is arp_validate with miimon, unless a rule
// lets both run; a rule is not taken away while both do.
func TestMonitorsTogether(t *testing.T) {
	type values = map[string]string
	for _, tt := range []struct {
		values values
		ok     bool
	}{
		{values{"miimon": "100", "arp_interval": "100"}, false},
		{values{"miimon": "maxval", "arp_interval": " 100\n"}, false},
		{values{"miimon": "off", "arp_interval": "100"}, true},
		{values{"miimon": "100", "arp_interval": "off"}, true},
		{values{"miimon": "100", "arp_validate": "active"}, false},
		{values{"miimon": "100", "arp_validate": "3"}, false},
		{values{"miimon": "100", "arp_validate": "none"}, true},
		{values{"miimon": "100", "arp_interval": "100", "monitor_rule": "any"}, true},
		{values{"miimon": "100", "arp_interval": "100", "monitor_rule": "all", "arp_validate": "all"}, true},
	} {
		r := newDownRig(t, bonding.Options{}, 0)
		if err := r.SetOptions(tt.values); (err == nil) != tt.ok || err != nil && !errors.Is(err, errInvalid) {
			t.Errorf("SetOptions(%v) = %v", tt.values, err)
		}
	}
	r := newDownRig(t, bonding.Options{MonitorRule: bonding.MonitorAny, ARPInterval: time.Second}, 0)
	r.reads("a rule", "miimon=100", "arp_interval=1000", "monitor_rule=any 1")
	r.set("miimon", "50")
	r.reads("both", "miimon=50", "arp_interval=1000")
	r.refuses("monitor_rule", "exclusive", errInvalid)
	if err := r.SetOptions(values{"monitor_rule": "0", "miimon": "0"}); err != nil {
		t.Error(err)
	}
	r.reads("exclusive", "miimon=0", "arp_interval=1000", "monitor_rule=exclusive 0")
}

// Targets one at a time, as sysfs takes them, and as lists.
func TestTargetChanges(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, ARPInterval: time.Second}, 1)
	r.set("arp_ip_target", "+10.0.0.1")
	r.set("arp_ip_target", "+10.0.0.2\n")
	r.set("arp_ip_target", "+10.0.0.3")
	r.refuses("arp_ip_target", "+10.0.0.2", errInvalid)
	r.set("arp_ip_target", "-10.0.0.2")
	r.reads("removed", "arp_ip_target=10.0.0.1 10.0.0.3")
	r.set("arp_ip_target", "+10.0.0.2 -10.0.0.1,+10.0.0.4")
	r.reads("several", "arp_ip_target=10.0.0.3 10.0.0.2 10.0.0.4")
	r.refuses("arp_ip_target", "-10.0.0.3,+10.0.0.2", errInvalid) // all or none
	r.set("ns_ip6_target", "+fd00::1")
	r.set("ns_ip6_target", "+fd00:0:0::2")
	r.reads("IPv6", "ns_ip6_target=fd00::1 fd00::2", "arp_ip_target=10.0.0.3 10.0.0.2 10.0.0.4")
	r.told()
	r.set("arp_ip_target", "")
	if told := strings.Join(r.told(), ";"); !strings.Contains(told, "arp_ip_target: the last target was removed, but arp_interval is set") {
		t.Errorf("told %q", told)
	}
	r.set("ns_ip6_target", addresses("fd00::", 16))
	r.refuses("ns_ip6_target", "+fd00::99", errInvalid)
}

// The Go fields stand for the options.
func TestARPOptionFields(t *testing.T) {
	addr := netip.MustParseAddr
	o := bonding.Options{Mode: bonding.ActiveBackup, ARPInterval: 250 * time.Millisecond, ARPIPTargets: []netip.Addr{addr("10.1.0.11"), addr("10.1.0.12")},
		NSIP6Targets: []netip.Addr{addr("fd00:1::11")}, ARPValidate: bonding.ValidateFilterActive, ARPAllTargets: true, ARPMissedMax: 5}
	r := newDownRig(t, o, 1)
	r.reads("fields", "arp_interval=250", "miimon=0", "arp_ip_target=10.1.0.11 10.1.0.12", "ns_ip6_target=fd00:1::11", "arp_validate=filter_active 5", "arp_all_targets=all 1", "arp_missed_max=5")
	var text strings.Builder
	st := r.Status()
	if err := st.WriteProc(&text); err != nil {
		t.Fatal(err)
	}
	want := "Peer Notification Delay (ms): 0\nARP Polling Interval (ms): 250\nARP Missed Max: 5\nARP IP target/s (n.n.n.n form): 10.1.0.11, 10.1.0.12\nNS IPv6 target/s (xx::xx form): fd00:1::11\n\nSlave Interface: eth0\n"
	if !strings.Contains(text.String(), want) {
		t.Errorf("proc has\n%s, want in it\n%s", text.String(), want)
	}
	r.set("ns_ip6_target", "")
	text.Reset()
	st = r.Status()
	if err := st.WriteProc(&text); err != nil || !strings.Contains(text.String(), "\nNS IPv6 target/s (xx::xx form):\n\n") {
		t.Errorf("without IPv6 targets proc has\n%s", text.String())
	}

	for _, tt := range []struct {
		o    bonding.Options
		kind error
		name string
	}{
		{bonding.Options{Mode: bonding.IEEE8023AD, ARPInterval: time.Second}, errMode, "arp_interval"}, // A40
		{bonding.Options{ARPInterval: time.Microsecond}, errInvalid, "arp_interval"},
		{bonding.Options{ARPInterval: -1}, errInvalid, "arp_interval"},
		{bonding.Options{ARPInterval: time.Second, MIIMon: time.Second}, errInvalid, "arp_interval"},
		{bonding.Options{ARPInterval: time.Second, UpDelay: time.Second}, bonding.ErrPrecondition, "updelay"},
		{bonding.Options{ARPIPTargets: []netip.Addr{{}}}, errInvalid, "arp_ip_target"},
		{bonding.Options{NSIP6Targets: []netip.Addr{addr("10.0.0.1")}}, errInvalid, "ns_ip6_target"},
		{bonding.Options{ARPMissedMax: 256}, errInvalid, "arp_missed_max"},
		{bonding.Options{ARPMissedMax: -1}, errInvalid, "arp_missed_max"},
		{bonding.Options{ARPValidate: 7}, errInvalid, "arp_validate"},
		{bonding.Options{MonitorRule: 3}, errInvalid, "monitor_rule"},
	} {
		if b, err := bonding.New(tt.o); !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), "option "+tt.name) {
			t.Errorf("New(%+v) = %v, %v", tt.o, b, err)
		}
	}
}
