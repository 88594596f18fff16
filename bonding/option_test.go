package bonding_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bondstack/bonding"
)

// What an option may be refused with, for short.
var (
	errInvalid = bonding.ErrInvalid
	errMode    = bonding.ErrMode
)

// optionCases is Linux's option table: for each option a mode in which it may be
// set (any: all), what it accepts and then reads back as, and what it refuses.
// Options of parts that are not here accept their default alone.
var optionCases = []struct {
	name      string
	in        string            // a mode in which it may be set
	elsewhere string            // a mode in which it may not; empty: none
	initial   string            // of a new bond
	accepts   map[string]string // text to what it reads back as
	refuses   map[string]error
}{
	{name: "mode", in: "balance-rr", initial: "balance-rr 0",
		accepts: map[string]string{"0": "balance-rr 0", "1": "active-backup 1", "2": "balance-xor 2", "3": "broadcast 3",
			"balance-rr": "balance-rr 0", "active-backup": "active-backup 1", "balance-xor": "balance-xor 2", "broadcast": "broadcast 3",
			"4": "802.3ad 4", "802.3ad": "802.3ad 4", "5": "balance-tlb 5", "balance-tlb": "balance-tlb 5",
			"6": "balance-alb 6", "balance-alb": "balance-alb 6",
			"default": "balance-rr 0", "01": "active-backup 1", " 1 ": "active-backup 1", "broadcast 3": "broadcast 3"},
		refuses: map[string]error{"7": errInvalid, "-1": errInvalid, "rr": errInvalid, "Active-Backup": errInvalid, "": errInvalid}},
	{name: "miimon", in: "balance-rr", initial: "100",
		accepts: map[string]string{"0": "0", "1": "1", "2147483647": "2147483647", "off": "0", "maxval": "2147483647", "default": "100"},
		refuses: map[string]error{"2147483648": errInvalid, "-1": errInvalid, "minval": errInvalid, "on": errInvalid}},
	{name: "updelay", in: "balance-rr", initial: "0",
		accepts: map[string]string{"0": "0", "100": "100", "250": "200", "99": "0", "off": "0", "default": "0", "maxval": "2147483600"},
		refuses: map[string]error{"2147483648": errInvalid, "-100": errInvalid}},
	{name: "downdelay", in: "balance-rr", initial: "0",
		accepts: map[string]string{"0": "0", "300": "300", "350": "300", "off": "0", "default": "0", "maxval": "2147483600"},
		refuses: map[string]error{"2147483648": errInvalid, "-100": errInvalid}},
	{name: "peer_notif_delay", in: "balance-rr", initial: "0",
		accepts: map[string]string{"0": "0", "300000": "300000", "off": "0", "maxval": "300000", "default": "0"},
		refuses: map[string]error{"300001": errInvalid, "-1": errInvalid}},
	{name: "use_carrier", in: "balance-rr", initial: "1",
		accepts: map[string]string{"1": "1", "on": "1"},
		refuses: map[string]error{"0": errInvalid, "off": errInvalid, "2": errInvalid}},
	{name: "monitor_rule", in: "802.3ad", initial: "exclusive 0",
		accepts: map[string]string{"exclusive": "exclusive 0", "any": "any 1", "all": "all 2", "0": "exclusive 0", "1": "any 1", "2": "all 2", "default": "exclusive 0"},
		refuses: map[string]error{"3": errInvalid, "both": errInvalid, "": errInvalid}},
	{name: "arp_interval", in: "balance-rr", elsewhere: "802.3ad", initial: "0",
		accepts: map[string]string{"0": "0", "1": "1", "2147483647": "2147483647", "off": "0", "maxval": "2147483647", "default": "0"},
		refuses: map[string]error{"2147483648": errInvalid, "-1": errInvalid, "minval": errInvalid, "on": errInvalid}},
	{name: "arp_ip_target", in: "802.3ad", initial: "",
		accepts: map[string]string{"": "", "\n": "", "10.0.0.1": "10.0.0.1", "10.0.0.1,10.0.0.2\n": "10.0.0.1 10.0.0.2", "10.0.0.2 \t10.0.0.1": "10.0.0.2 10.0.0.1",
			"0.1.2.3,127.0.0.1,224.0.0.1": "0.1.2.3 127.0.0.1 224.0.0.1", addresses("10.0.0.", 16): strings.ReplaceAll(addresses("10.0.0.", 16), ",", " ")},
		refuses: map[string]error{"0.0.0.0": errInvalid, "255.255.255.255": errInvalid, "10.0.0.1,10.0.0.1": errInvalid, "10.0.0": errInvalid, "x": errInvalid,
			"fd00::1": errInvalid, "::ffff:10.0.0.1": errInvalid, addresses("10.0.0.", 17): errInvalid, "10.0.0.1,+10.0.0.2": errInvalid,
			"+": bonding.ErrPrecondition, "+10.0": bonding.ErrPrecondition, "-x": bonding.ErrPrecondition, "-10.9.9.9": errInvalid, "+0.0.0.0": errInvalid}},
	{name: "ns_ip6_target", in: "802.3ad", initial: "",
		accepts: map[string]string{"": "", "fd00::1": "fd00::1", "FD00:0::1,fe80::1": "fd00::1 fe80::1", addresses("fd00::", 16): strings.ReplaceAll(addresses("fd00::", 16), ",", " ")},
		refuses: map[string]error{"::": errInvalid, "::1": errInvalid, "ff02::1": errInvalid, "10.0.0.1": errInvalid, "::ffff:10.0.0.1": errInvalid, "fe80::1%eth0": errInvalid,
			"fd00::1,fd00::1": errInvalid, addresses("fd00::", 17): errInvalid, "+fd00::1:": bonding.ErrPrecondition, "-fd00::99": errInvalid}},
	{name: "arp_validate", in: "balance-rr", elsewhere: "802.3ad", initial: "none 0",
		accepts: map[string]string{"none": "none 0", "0": "none 0", "default": "none 0", "active": "active 1", "1": "active 1", "backup": "backup 2", "2": "backup 2",
			"all": "all 3", "3": "all 3", "filter": "filter 4", "4": "filter 4", "filter_active": "filter_active 5", "5": "filter_active 5",
			"filter_backup": "filter_backup 6", "6": "filter_backup 6"},
		refuses: map[string]error{"7": errInvalid, "some": errInvalid, "-1": errInvalid}},
	{name: "arp_all_targets", in: "802.3ad", initial: "any 0",
		accepts: map[string]string{"any": "any 0", "0": "any 0", "default": "any 0", "all": "all 1", "1": "all 1"},
		refuses: map[string]error{"2": errInvalid, "none": errInvalid}},
	{name: "arp_missed_max", in: "balance-rr", elsewhere: "802.3ad", initial: "2",
		accepts: map[string]string{"1": "1", "2": "2", "255": "255", "minval": "1", "maxval": "255", "default": "2"},
		refuses: map[string]error{"0": errInvalid, "256": errInvalid, "off": errInvalid, "-1": errInvalid}},
	{name: "num_grat_arp", in: "balance-rr", initial: "1",
		accepts: map[string]string{"0": "0", "255": "255", "off": "0", "maxval": "255", "default": "1"},
		refuses: map[string]error{"256": errInvalid, "-1": errInvalid}},
	{name: "num_unsol_na", in: "balance-rr", initial: "1",
		accepts: map[string]string{"0": "0", "255": "255", "off": "0", "maxval": "255", "default": "1"},
		refuses: map[string]error{"256": errInvalid, "-1": errInvalid}},
	{name: "primary", in: "active-backup", elsewhere: "balance-rr", initial: "",
		accepts: map[string]string{"eth9": "eth9", "eth9\n": "eth9", "": "", "\n": "", "fifteen-letters": "fifteen-letters"},
		refuses: map[string]error{"sixteen--letters": errInvalid, "a/b": errInvalid, ".": errInvalid, "a b": errInvalid}},
	{name: "primary_reselect", in: "balance-rr", initial: "always 0",
		accepts: map[string]string{"always": "always 0", "better": "better 1", "failure": "failure 2", "0": "always 0", "1": "better 1", "2": "failure 2", "default": "always 0"},
		refuses: map[string]error{"3": errInvalid, "never": errInvalid, "-1": errInvalid}},
	{name: "active_slave", in: "active-backup", elsewhere: "balance-xor", initial: "",
		accepts: map[string]string{"": "", "\n": ""},
		refuses: map[string]error{"eth9": bonding.ErrNoSlave}},
	{name: "fail_over_mac", in: "balance-rr", initial: "none 0",
		accepts: map[string]string{"none": "none 0", "0": "none 0", "active": "active 1", "1": "active 1", "follow": "follow 2", "2": "follow 2", "default": "none 0"},
		refuses: map[string]error{"3": errInvalid, "actively": errInvalid, "-1": errInvalid}},
	{name: "xmit_hash_policy", in: "balance-rr", initial: "layer2 0",
		accepts: map[string]string{"layer2": "layer2 0", "layer3+4": "layer3+4 1", "layer2+3": "layer2+3 2", "encap2+3": "encap2+3 3",
			"encap3+4": "encap3+4 4", "vlan+srcmac": "vlan+srcmac 5", "0": "layer2 0", "1": "layer3+4 1", "2": "layer2+3 2",
			"3": "encap2+3 3", "4": "encap3+4 4", "5": "vlan+srcmac 5", "default": "layer2 0"},
		refuses: map[string]error{"6": errInvalid, "layer3": errInvalid, "l2": errInvalid}},
	{name: "packets_per_slave", in: "balance-rr", elsewhere: "active-backup", initial: "1",
		accepts: map[string]string{"0": "0", "1": "1", "65535": "65535", "default": "1", "maxval": "65535"},
		refuses: map[string]error{"65536": errInvalid, "-1": errInvalid, "off": errInvalid}},
	{name: "tlb_dynamic_lb", in: "balance-tlb", elsewhere: "balance-rr", initial: "1",
		accepts: map[string]string{"0": "0", "1": "1", "on": "1", "off": "0", "default": "1"},
		refuses: map[string]error{"2": errInvalid, "yes": errInvalid}},
	{name: "ipv6_receive_balance", in: "balance-alb", elsewhere: "balance-tlb", initial: "0",
		accepts: map[string]string{"0": "0", "1": "1", "on": "1", "off": "0", "default": "0"},
		refuses: map[string]error{"2": errInvalid, "yes": errInvalid}},
	{name: "lp_interval", in: "balance-rr", initial: "1",
		accepts: map[string]string{"1": "1", "2147483647": "2147483647", "minval": "1", "maxval": "2147483647", "default": "1"},
		refuses: map[string]error{"0": errInvalid, "2147483648": errInvalid, "off": errInvalid}},
	{name: "resend_igmp", in: "balance-rr", initial: "1",
		accepts: map[string]string{"0": "0", "255": "255", "off": "0", "maxval": "255", "default": "1"},
		refuses: map[string]error{"256": errInvalid, "-1": errInvalid}},
	{name: "all_slaves_active", in: "balance-rr", initial: "0",
		accepts: map[string]string{"0": "0", "1": "1", "off": "0", "on": "1", "default": "0"},
		refuses: map[string]error{"2": errInvalid, "yes": errInvalid, "-1": errInvalid}},
	{name: "min_links", in: "balance-rr", initial: "0",
		accepts: map[string]string{"0": "0", "256": "256", "100000": "100000", "2147483647": "2147483647", "off": "0", "maxval": "2147483647", "default": "0"},
		refuses: map[string]error{"-1": errInvalid, "2147483648": errInvalid}},
	{name: "ad_select", in: "balance-rr", initial: "stable 0",
		accepts: map[string]string{"stable": "stable 0", "bandwidth": "bandwidth 1", "count": "count 2", "actor_port_prio": "actor_port_prio 3", "default": "stable 0"},
		refuses: map[string]error{"4": errInvalid, "fastest": errInvalid}},
	{name: "lacp_active", in: "802.3ad", elsewhere: "active-backup", initial: "on 1",
		accepts: map[string]string{"0": "off 0", "1": "on 1", "off": "off 0", "on": "on 1", "default": "on 1"},
		refuses: map[string]error{"2": errInvalid, "yes": errInvalid}},
	{name: "lacp_rate", in: "802.3ad", elsewhere: "active-backup", initial: "slow 0",
		accepts: map[string]string{"0": "slow 0", "1": "fast 1", "slow": "slow 0", "fast": "fast 1"},
		refuses: map[string]error{"2": errInvalid, "default": errInvalid, "30": errInvalid}},
	{name: "ad_actor_sys_prio", in: "802.3ad", elsewhere: "balance-rr", initial: "",
		accepts: map[string]string{"1": "1", "65535": "65535", "minval": "1", "maxval": "65535"},
		refuses: map[string]error{"0": errInvalid, "65536": errInvalid, "-1": errInvalid}},
	{name: "ad_user_port_key", in: "802.3ad", elsewhere: "balance-rr", initial: "",
		accepts: map[string]string{"0": "0", "1023": "1023", "minval": "0", "maxval": "1023"},
		refuses: map[string]error{"1024": errInvalid, "-1": errInvalid}},
	{name: "ad_actor_system", in: "802.3ad", elsewhere: "balance-rr", initial: "",
		accepts: map[string]string{"02:00:00:00:00:aa": "02:00:00:00:00:aa", "00:00:00:00:00:00": "00:00:00:00:00:00"},
		refuses: map[string]error{"01:00:00:00:00:00": errInvalid, "ff:ff:ff:ff:ff:ff": errInvalid, "02:00": errInvalid, "": errInvalid, "1": errInvalid}},
	{name: "coupled_control", in: "802.3ad", elsewhere: "balance-rr", initial: "1",
		accepts: map[string]string{"0": "0", "1": "1", "off": "0", "on": "1", "default": "1"},
		refuses: map[string]error{"2": errInvalid}},
	{name: "broadcast_neighbor", in: "802.3ad", elsewhere: "balance-rr", initial: "0",
		accepts: map[string]string{"0": "0", "1": "1", "off": "0", "on": "1", "default": "0"},
		refuses: map[string]error{"2": errInvalid}},
	{name: "lacp_strict", in: "802.3ad", elsewhere: "balance-rr", initial: "0",
		accepts: map[string]string{"0": "0", "1": "1", "off": "0", "on": "1", "default": "0"},
		refuses: map[string]error{"2": errInvalid}},
	{name: "queue_id", in: "balance-rr", initial: "",
		refuses: map[string]error{"eth9:1": bonding.ErrPrecondition, "eth9": bonding.ErrPrecondition, "": bonding.ErrPrecondition}},
	{name: "xmit_hash_map", in: "balance-rr", initial: "modulo 0",
		accepts: map[string]string{"modulo": "modulo 0", "consistent": "consistent 1", "0": "modulo 0", "1": "consistent 1", "default": "modulo 0"},
		refuses: map[string]error{"2": errInvalid, "maglev": errInvalid}},
	{name: "weight", in: "balance-rr", initial: "",
		refuses: map[string]error{"eth9:1": bonding.ErrPrecondition, "eth9": bonding.ErrPrecondition, "": bonding.ErrPrecondition}},
	{name: "probe_interval", in: "balance-rr", initial: "0",
		accepts: map[string]string{"10": "10", "0": "0", "off": "0", "60000": "60000", "maxval": "60000", "default": "0"},
		refuses: map[string]error{"60001": errInvalid, "-1": errInvalid, "0.5": errInvalid}},
	{name: "probe_missed_max", in: "balance-rr", initial: "3",
		accepts: map[string]string{"1": "1", "255": "255", "minval": "1", "default": "3"},
		refuses: map[string]error{"0": errInvalid, "256": errInvalid}},
	{name: "flap_backoff", in: "balance-rr", initial: "0",
		accepts: map[string]string{"1000": "1000", "0": "0", "off": "0", "600000": "600000", "maxval": "600000", "default": "0"},
		refuses: map[string]error{"600001": errInvalid, "-1": errInvalid, "fast": errInvalid}},
	{name: "rx_dedup", in: "balance-rr", initial: "auto 0",
		accepts: map[string]string{"auto": "auto 0", "off": "off 1", "on": "on 2", "0": "auto 0", "1": "off 1", "2": "on 2", "default": "auto 0"},
		refuses: map[string]error{"3": errInvalid, "yes": errInvalid}},
	{name: "rx_reorder", in: "balance-rr", initial: "auto 0",
		accepts: map[string]string{"auto": "auto 0", "off": "off 1", "on": "on 2", "0": "auto 0", "1": "off 1", "2": "on 2", "default": "auto 0"},
		refuses: map[string]error{"3": errInvalid, "yes": errInvalid}},
	{name: "rx_reorder_hold", in: "balance-rr", initial: "25000",
		accepts: map[string]string{"10": "10", "1000000": "1000000", "minval": "10", "maxval": "1000000", "default": "25000"},
		refuses: map[string]error{"9": errInvalid, "0": errInvalid, "off": errInvalid, "1000001": errInvalid, "2ms": errInvalid}},
	{name: "rx_reorder_bytes", in: "balance-rr", initial: "33554432",
		accepts: map[string]string{"65536": "65536", "2147483647": "2147483647", "minval": "65536", "maxval": "2147483647", "default": "33554432"},
		refuses: map[string]error{"65535": errInvalid, "0": errInvalid, "2147483648": errInvalid}},
	{name: "rx_reorder_flows", in: "balance-rr", initial: "2048",
		accepts: map[string]string{"4": "4", "65536": "65536", "minval": "4", "maxval": "65536", "default": "2048"},
		refuses: map[string]error{"3": errInvalid, "0": errInvalid, "65537": errInvalid}},
}

// addresses is a list of n addresses.
func addresses(prefix string, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = prefix + strconv.Itoa(i+1)
	}
	return strings.Join(list, ",")
}

// Every option of the table has a case, but for those with two names.
func TestOptionCasesAreAll(t *testing.T) {
	var covered []string
	for _, c := range optionCases {
		if c.name != "num_unsol_na" {
			covered = append(covered, c.name)
		}
	}
	slices.Sort(covered)
	all := slices.Sorted(slices.Values(bonding.OptionNames()))
	if !slices.Equal(covered, all) {
		t.Errorf("cases for\n %v\noptions are\n %v", covered, all)
	}
}

// What each option accepts, refuses and reads back (A40). A refused value leaves
// every option as it was, and the error names option and value.
func TestOptions(t *testing.T) {
	for _, c := range optionCases {
		t.Run(c.name, func(t *testing.T) {
			r := newDownRig(t, bonding.Options{}, 0)
			if got, err := r.Option(c.name); got != c.initial || err != nil {
				t.Errorf("Option() of a new bond = %q, %v, want %q", got, err, c.initial)
			}
			if c.in != "" {
				r.set("mode", c.in)
			}
			for text, want := range c.accepts {
				r.set(c.name, text)
				if got, err := r.Option(c.name); got != want || err != nil {
					t.Errorf("Option() after %q = %q, %v, want %q", text, got, err, want)
				}
				if c.name == "mode" {
					continue
				}
				r.set(c.name, want) // what is shown is also read
				if got, _ := r.Option(c.name); got != want {
					t.Errorf("Option() after its own value %q = %q", want, got)
				}
			}
			for text, want := range c.refuses {
				r.refuses(c.name, text, want)
			}
			if c.elsewhere != "" {
				r.set("mode", c.elsewhere)
				for text := range c.accepts {
					r.refuses(c.name, text, errMode)
				}
				r.refuses(c.name, "no such value", errMode) // the mode is looked at first
			}
		})
	}
}

// refuses checks that a value is refused with an error of a kind, and that
// nothing has changed.
func (r *rig) refuses(name, text string, kind error) {
	r.tb.Helper()
	before := r.Status()
	err := r.SetOption(name, text)
	if !errors.Is(err, kind) {
		r.tb.Errorf("SetOption(%s, %q) = %v, want %v", name, text, err, kind)
		return
	}
	var oe *bonding.OptionError
	if !errors.As(err, &oe) || oe.Option != name || oe.Value != text || oe.Reason == "" {
		r.tb.Errorf("SetOption(%s, %q) = %#v, want an OptionError with option, value and reason", name, text, err)
	}
	if after := r.Status(); !maps.Equal(before.Options, after.Options) || before.ActiveSlave != after.ActiveSlave {
		r.tb.Errorf("SetOption(%s, %q) = %v, but options are %v, were %v", name, text, err, after.Options, before.Options)
	}
}

// How Linux reads text: up to the first newline, all digits a number, else one
// word.
func TestOptionText(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string // want empty: refused
	}{
		{"miimon", "50\n", "50"},
		{"miimon", "50\n60", "50"},
		{"miimon", "50\noff", "50"},
		{"miimon", " \t50\v\f\r", "50"},
		{"miimon", "007", "7"},
		{"miimon", "off\n", "0"},
		{"miimon", "off 5", "0"}, // the first word
		{"miimon", "\toff", "0"},
		{"miimon", "maxval 5\n", "2147483647"},
		{"miimon", "", ""},
		{"miimon", " ", ""},
		{"miimon", "\n50", ""}, // nothing is before the newline
		{"miimon", "50 60", ""},
		{"miimon", "+50", ""},
		{"miimon", "-0", ""},
		{"miimon", "0x10", ""},
		{"miimon", "5e1", ""},
		{"miimon", "50ms", ""},
		{"miimon", "OFF", ""},
		{"miimon", "offf", ""},
		{"miimon", "50\x00", ""},
		{"miimon", "18446744073709551615", ""},
		{"miimon", "18446744073709551616", ""},   // one more than 64 bits
		{"miimon", "18446744073709551617", ""},   // would be 1
		{"miimon", strings.Repeat("9", 400), ""}, // and much more
		{"miimon", "٥٠", ""},                     // digits, but not these
		{"mode", "1\nbroadcast", "active-backup 1"},
		{"mode", "\n1", ""},
		{"mode", "1\n", "active-backup 1"},
		{"mode", "active-backup\n", "active-backup 1"},
		{"xmit_hash_policy", "layer2+3\n", "layer2+3 2"},
		{"xmit_hash_policy", "layer2+3 2\n", "layer2+3 2"},
	} {
		r := newDownRig(t, bonding.Options{}, 0)
		err := r.SetOption(tt.name, tt.text)
		got, _ := r.Option(tt.name)
		switch {
		case tt.want == "" && !errors.Is(err, bonding.ErrInvalid):
			t.Errorf("%s=%q = %v, want invalid", tt.name, tt.text, err)
		case tt.want != "" && (err != nil || got != tt.want):
			t.Errorf("%s=%q = %v, reads back %q, want %q", tt.name, tt.text, err, got, tt.want)
		}
	}
}

// lacp_rate has no value marked as the default, so "default" is refused there;
// this version has no mode in which that can be seen but by the parser. Here:
// an unknown option says which there are (T83).
func TestUnknownOption(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	for _, name := range []string{"", "miimom", "MIIMON", "miimon ", "lacp_fallback", "slaves"} {
		err := r.SetOption(name, "1")
		if !errors.Is(err, bonding.ErrUnknownOption) || !strings.Contains(err.Error(), "miimon, updelay") {
			t.Errorf("SetOption(%q) = %v, want one that lists the names", name, err)
		}
		if _, err := r.Option(name); !errors.Is(err, bonding.ErrUnknownOption) {
			t.Errorf("Option(%q) = %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"miimom":           "option miimom=\"1\": no such option: did you mean miimon? known are mode, ",
		"xmit_hash_polic":  "no such option: did you mean xmit_hash_policy? known are mode, ",
		"num_unsol_an":     "did you mean num_unsol_na?",
		"xmit-hash-policy": "did you mean xmit_hash_policy?",
		"speed":            "no such option: known are mode, ",
	} {
		if err := r.SetOption(name, "1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("SetOption(%q) = %v, want %q", name, err, want)
		}
	}
}

// An error says what is allowed.
func TestOptionErrorText(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	for _, tt := range []struct{ name, text, want string }{
		{"num_grat_arp", "256", `option num_grat_arp="256": invalid value: allowed are 0 to 255, off (0), maxval (255), default (1)`},
		{"num_unsol_na", "x", `option num_unsol_na="x": invalid value: allowed are 0 to 255, off (0), maxval (255), default (1)`},
		{"primary_reselect", "no", `option primary_reselect="no": invalid value: allowed are always (0), better (1), failure (2), default (0)`},
		{"packets_per_slave", "1", `option packets_per_slave="1": not in this mode: the mode is active-backup; it may be set in balance-rr`},
		{"lacp_rate", "fast", `option lacp_rate="fast": not in this mode: the mode is active-backup; it may be set in 802.3ad`},
		{"active_slave", "eth7", `option active_slave="eth7": no such slave: the slaves are eth0, eth1`},
		{"mode", "2", `option mode="2": the bond has slaves: release the 2 slaves first`},
		{"fail_over_mac", "active", `option fail_over_mac="active": the bond has slaves: release the 2 slaves first`},
	} {
		if err := r.SetOption(tt.name, tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("SetOption(%s, %q) =\n %v, want\n %s", tt.name, tt.text, err, tt.want)
		}
	}
}
