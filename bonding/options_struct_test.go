package bonding_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
)

// text is a value as JSON, to compare and to print.
func text(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// In Options zero is the default and negative is off.
func TestOptionsFields(t *testing.T) {
	for _, tt := range []struct {
		about       string
		o           bonding.Options
		name, reads string
	}{
		{"default", bonding.Options{}, "miimon", "100"},
		{"off", bonding.Options{MIIMon: -1}, "miimon", "0"},
		{"off", bonding.Options{MIIMon: -time.Hour}, "miimon", "0"},
		{"set", bonding.Options{MIIMon: time.Millisecond}, "miimon", "1"},
		{"default", bonding.Options{}, "updelay", "0"},
		{"rounded", bonding.Options{UpDelay: 250 * time.Millisecond}, "updelay", "200"},
		{"set", bonding.Options{MIIMon: 50 * time.Millisecond, UpDelay: 250 * time.Millisecond}, "updelay", "250"},
		{"set", bonding.Options{DownDelay: time.Second}, "downdelay", "1000"},
		{"set", bonding.Options{PeerNotifDelay: 300 * time.Second}, "peer_notif_delay", "300000"},
		{"default", bonding.Options{}, "num_grat_arp", "1"},
		{"off", bonding.Options{NumGratARP: -1}, "num_grat_arp", "0"},
		{"set", bonding.Options{NumGratARP: 255}, "num_unsol_na", "255"},
		{"default", bonding.Options{}, "packets_per_slave", "1"},
		{"random", bonding.Options{PacketsPerSlave: -1}, "packets_per_slave", "0"},
		{"set", bonding.Options{PacketsPerSlave: 65535}, "packets_per_slave", "65535"},
		{"set", bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth5"}, "primary", "eth5"},
		{"set", bonding.Options{PrimaryReselect: bonding.ReselectBetter}, "primary_reselect", "better 1"},
		{"set", bonding.Options{FailOverMAC: bonding.FailOverMACFollow}, "fail_over_mac", "follow 2"},
		{"default", bonding.Options{}, "resend_igmp", "1"},
		{"off", bonding.Options{ResendIGMP: -1}, "resend_igmp", "0"},
		{"set", bonding.Options{ResendIGMP: 255}, "resend_igmp", "255"},
		{"set", bonding.Options{Mode: bonding.IEEE8023AD, LACP: bonding.LACPOptions{BroadcastNeighbor: true}}, "broadcast_neighbor", "1"},
		{"set", bonding.Options{XmitHashPolicy: xmithash.Encap34}, "xmit_hash_policy", "encap3+4 4"},
		{"set", bonding.Options{AllSlavesActive: true}, "all_slaves_active", "1"},
		{"more than there are", bonding.Options{MinLinks: 100000}, "min_links", "100000"},
		{"set", bonding.Options{XmitHashMap: bonding.HashConsistent}, "xmit_hash_map", "consistent 1"},
		{"set", bonding.Options{ProbeInterval: 10 * time.Millisecond}, "probe_interval", "10"},
		{"set", bonding.Options{ProbeMissedMax: 5}, "probe_missed_max", "5"},
		{"set", bonding.Options{FlapBackoff: time.Second}, "flap_backoff", "1000"},
		{"set", bonding.Options{RxDedup: bonding.DedupOn}, "rx_dedup", "on 2"},
		{"set", bonding.Options{Mode: bonding.Broadcast}, "mode", "broadcast 3"},
		{"default", bonding.Options{Mode: bonding.BalanceTLB}, "tlb_dynamic_lb", "1"},
		{"set", bonding.Options{Mode: bonding.BalanceTLB, StaticTLB: true}, "tlb_dynamic_lb", "0"},
		{"set", bonding.Options{LPInterval: 7 * time.Second}, "lp_interval", "7"},
	} {
		b, err := bonding.New(tt.o)
		if err != nil {
			t.Errorf("New(%+v) = %v", tt.o, err)
			continue
		}
		if got, err := b.Option(tt.name); got != tt.reads || err != nil {
			t.Errorf("%s: %s reads %q, %v, want %q", tt.about, tt.name, got, err, tt.reads)
		}
		b.Close()
	}
}

// New names every option that is wrong, by its Linux name (A40).
func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		o     bonding.Options
		kind  error
		names []string
	}{
		{bonding.Options{IPv6ReceiveBalance: true}, bonding.ErrMode, []string{"ipv6_receive_balance", "balance-alb"}},
		{bonding.Options{StaticTLB: true}, bonding.ErrMode, []string{"tlb_dynamic_lb"}},
		{bonding.Options{LPInterval: time.Millisecond}, bonding.ErrInvalid, []string{"lp_interval", "1ms"}},
		{bonding.Options{LPInterval: -time.Second}, bonding.ErrInvalid, []string{"lp_interval", "-1s"}},
		{bonding.Options{Mode: 7}, bonding.ErrInvalid, []string{"mode", "7"}},
		{bonding.Options{Mode: 255}, bonding.ErrInvalid, []string{"mode", "255"}},
		{bonding.Options{MIIMon: 1500 * time.Microsecond}, bonding.ErrInvalid, []string{"miimon", "1.5ms"}},
		{bonding.Options{MIIMon: (1 << 31) * time.Millisecond}, bonding.ErrInvalid, []string{"miimon", "2147483648"}},
		{bonding.Options{UpDelay: -time.Second}, bonding.ErrInvalid, []string{"updelay"}},
		{bonding.Options{DownDelay: -1}, bonding.ErrInvalid, []string{"downdelay"}},
		{bonding.Options{PeerNotifDelay: 301 * time.Second}, bonding.ErrInvalid, []string{"peer_notif_delay", "300000"}},
		{bonding.Options{MIIMon: -1, UpDelay: time.Second}, bonding.ErrPrecondition, []string{"updelay", "miimon"}},
		{bonding.Options{Primary: "eth0"}, bonding.ErrMode, []string{"primary", "active-backup"}},
		{bonding.Options{Mode: bonding.ActiveBackup, Primary: "a b"}, bonding.ErrInvalid, []string{"primary"}},
		{bonding.Options{Mode: bonding.ActiveBackup, PacketsPerSlave: 1}, bonding.ErrMode, []string{"packets_per_slave"}},
		{bonding.Options{PacketsPerSlave: 65536}, bonding.ErrInvalid, []string{"packets_per_slave", "65536"}},
		{bonding.Options{NumGratARP: 256}, bonding.ErrInvalid, []string{"num_grat_arp", "256"}},
		{bonding.Options{MinLinks: -1}, bonding.ErrInvalid, []string{"min_links", "-1"}},
		{bonding.Options{PrimaryReselect: 3}, bonding.ErrInvalid, []string{"primary_reselect"}},
		{bonding.Options{FailOverMAC: 3}, bonding.ErrInvalid, []string{"fail_over_mac", "follow"}},
		{bonding.Options{ResendIGMP: 256}, bonding.ErrInvalid, []string{"resend_igmp", "256"}},
		{bonding.Options{LACP: bonding.LACPOptions{BroadcastNeighbor: true}}, bonding.ErrMode, []string{"broadcast_neighbor", "802.3ad"}},
		{bonding.Options{XmitHashPolicy: 6}, bonding.ErrInvalid, []string{"xmit_hash_policy"}},
		{bonding.Options{RxDedup: 3}, bonding.ErrInvalid, []string{"rx_dedup"}},
		{bonding.Options{MTU: 67}, bonding.ErrMTU, []string{"67", "68"}},
		{bonding.Options{MTU: 65536}, bonding.ErrMTU, []string{"65536", "65535"}},
		{bonding.Options{LinkAddress: "\x01\x00\x5e\x00\x00\x01"}, bonding.ErrAddress, []string{"01:00:5e:00:00:01"}},
		{bonding.Options{LinkAddress: "\x00\x00\x00\x00\x00\x00"}, bonding.ErrAddress, []string{"zero"}},
		{bonding.Options{LinkAddress: "\x02\x00"}, bonding.ErrAddress, []string{"6"}},
		{bonding.Options{Name: "sixteen--letters"}, bonding.ErrInvalid, []string{"sixteen--letters"}},
		{bonding.Options{Name: "a/b"}, bonding.ErrInvalid, []string{"a/b"}},
		{bonding.Options{Mode: 7, MIIMon: 1, UpDelay: -1, NumGratARP: 300, MTU: 1, LinkAddress: "x", Name: ".."}, bonding.ErrInvalid,
			[]string{"mode", "miimon", "updelay", "num_grat_arp", "MTU 1", "link address", `".."`}},
	} {
		b, err := bonding.New(tt.o)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, tt.kind) {
			t.Errorf("New(%+v) = %v, want %v", tt.o, err, tt.kind)
			continue
		}
		for _, name := range tt.names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("New(%+v) = %v, want it to name %s", tt.o, err, name)
			}
		}
	}
}

// What Options say besides: the bond's name, address and MTU.
func TestNewDefaults(t *testing.T) {
	b, err := bonding.New(bonding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Name() != "bond0" || b.MTU() != 1500 || b.Mode() != bonding.BalanceRR {
		t.Errorf("New() = bond %s, MTU %d, mode %s", b.Name(), b.MTU(), b.Mode())
	}
	mac := b.LinkAddress()
	if len(mac) != 6 || mac[0]&3 != 2 {
		t.Errorf("the address of a new bond is %s, want one that is local and unicast", mac)
	}
	if least, greatest := b.MTURange(); least != 68 || greatest != 65535 {
		t.Errorf("MTURange() = %d, %d", least, greatest)
	}
}

// An explicit miimon of 0 is kept, with a warning in the status and, when it is
// set on a live bond, as an event (A17).
func TestMIIMonOffWarns(t *testing.T) {
	r := newRig(t, bonding.Options{MIIMon: -1}, 1)
	const warning = "miimon is 0: links are not monitored, and no slave is ever found to be down"
	if w := r.Status().Warnings; len(w) != 1 || w[0] != warning {
		t.Errorf("warnings are %q", w)
	}
	r.set("miimon", "100")
	if w := r.Status().Warnings; len(w) != 0 {
		t.Errorf("with miimon warnings are %q", w)
	}
	r.told()
	r.set("miimon", "0")
	if told := r.told(); len(told) != 1 || told[0] != warning {
		t.Errorf("miimon=0 told %q", told)
	}
}

// Odd, but accepted as in Linux: a primary that is not there, more min_links
// than slaves. Each is a warning.
func TestOddOptionsWarn(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth9", MinLinks: 3}, 2)
	w := strings.Join(r.Status().Warnings, "\n")
	for _, want := range []string{"primary eth9 is not among the slaves", "min_links is 3, but there are 2 slaves"} {
		if !strings.Contains(w, want) {
			t.Errorf("warnings are %q, want %q", w, want)
		}
	}
}
