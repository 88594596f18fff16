package migrate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/config"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func export(t testing.TB, f *config.File) *Script {
	t.Helper()
	s, err := ToIP(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The order is that in which Linux takes it, the words are ip's, and what Linux
// does not have is told.
func TestToIP(t *testing.T) {
	f := &config.File{Version: 1, Metrics: "127.0.0.1:9090", Bonds: []config.Bond{{
		Name: "bond0", Mode: config.Mode(bonding.ActiveBackup), HardwareAddress: "02:00:00:00:00:01", MTU: 1400, Device: "tap", NetNS: "box",
		Options: config.Options{"primary": "eth0", "active_slave": "eth 1", "all_slaves_active": "on", "peer_notif_delay": "100",
			"arp_all_targets": "1", "rx_dedup": "on", "num_unsol_na": "3", "xmit_hash_policy": "1"},
		Slaves:    []config.Slave{{Name: "eth0", Prio: -5, QueueID: 3}, {Name: "$(x)'", Kind: "xdp", Weight: 4, Disabled: true, ActorPortPrio: 9}},
		Addresses: []string{"10.0.0.2/24", "dhcp", "fd00::2/64", "auto"},
		Routes:    []config.Route{{To: "default", Via: "10.0.0.1", Metric: 5}, {To: "default", Via: "fd00::1"}, {To: "fd01::/64"}},
		DNS:       &config.DNS{Servers: []string{"10.0.0.1"}},
		VLANs:     []config.VLAN{{ID: 5, Protocol: "802.1ad", Priority: 3, VLANs: []config.VLAN{{ID: 4094, Addresses: []string{"10.5.0.2/24"}}}}},
		Serve:     []string{"echo:7"}, Forwards: []string{"tcp:1=h:2"}, Socks: "127.0.0.1:1080", Control: "/run/c", Queues: 2,
	}, {Name: "bond1", Mode: config.Mode(bonding.BalanceRR), Slaves: []config.Slave{{Name: "eth5", Prio: 1}},
		Options: config.Options{"arp_interval": "100", "arp_ip_target": "10.0.0.1,10.0.0.3"}}}}
	s := export(t, f)
	want := []string{
		`ip link add bond0 address 02:00:00:00:00:01 mtu 1400 type bond mode active-backup miimon 100 peer_notify_delay 100 arp_all_targets all primary eth0 xmit_hash_policy layer3+4 num_grat_arp 3 all_slaves_active 1`,
		`ip link set eth0 down`, `ip link set eth0 master bond0`, `ip link set eth0 type bond_slave prio -5 queue_id 3`,
		`ip link set '$(x)'\''' down`, `ip link set '$(x)'\''' master bond0`,
		`ip link set bond0 up`, `ip link set bond0 type bond active_slave 'eth 1'`,
		`ip addr add 10.0.0.2/24 dev bond0`, `ip addr add fd00::2/64 dev bond0`,
		`ip route add default via 10.0.0.1 dev bond0 metric 5`, `ip -6 route add default via fd00::1 dev bond0`, `ip -6 route add fd01::/64 dev bond0`,
		`ip link add link bond0 name bond0.5 type vlan protocol 802.1ad id 5 egress-qos-map 0:3`, `ip link set bond0.5 up`,
		`ip link add link bond0.5 name bond0.5.4094 type vlan id 4094`, `ip link set bond0.5.4094 up`, `ip addr add 10.5.0.2/24 dev bond0.5.4094`,
		`ip link add bond1 type bond mode balance-rr arp_interval 100 arp_ip_target 10.0.0.1,10.0.0.3`,
		`ip link set eth5 down`, `ip link set eth5 master bond1`, `ip link set bond1 up`,
	}
	if d := cmp.Diff(want, s.Commands); d != "" {
		t.Error(d)
	}
	left := strings.Join(s.Left, "\n")
	for _, key := range []string{"metrics:", "bond0: options.rx_dedup: " + ownReason, "bond0: slave $(x)': kind xdp:", "bond0: slave $(x)': weight:",
		"bond0: slave $(x)': disabled:", "actor_port_prio: Linux refuses it in mode active-backup", "bond0: addresses dhcp:", "bond0: addresses auto:",
		"bond0: dns:", "bond0: serve:", "bond0: forwards:", "bond0: socks:", "bond0: control:", "bond0: netns:", "bond0: queues:",
		"bond1: slave eth5: prio: Linux refuses it in mode balance-rr"} {
		if !strings.Contains(left, key) {
			t.Errorf("%q is not left:\n%s", key, left)
		}
	}
	f.Bonds[1].Options = config.Options{"miimon": "100", "arp_interval": "100", "arp_validate": "all", "monitor_rule": "any"}
	s = export(t, f)
	if got := s.Commands[len(s.Commands)-4]; got != "ip link add bond1 type bond mode balance-rr miimon 100" || !strings.Contains(strings.Join(s.Left, "\n"), "bond1: options.arp_validate: Linux refuses") {
		t.Error(got, s.Left)
	}
	f.Bonds[1].Options = config.Options{"arp_interval": "100", "updelay": "0"}
	if s = export(t, f); !strings.Contains(strings.Join(s.Left, "\n"), "bond1: options.updelay: Linux refuses it without miimon") {
		t.Error(s.Left)
	}
	f.Bonds[1].Options["lacp_rate"] = "fast"
	if _, err := ToIP(f); err == nil || !strings.Contains(err.Error(), "bond bond1: ") || !strings.Contains(err.Error(), "lacp_rate") {
		t.Error(err)
	}
}

// Whichever key of a configuration has a value, the commands or what is left say
// so.
func TestExportForgetsNothing(t *testing.T) {
	for _, of := range []func(*config.File) any{
		func(f *config.File) any { return f },
		func(f *config.File) any { return &f.Bonds[0] },
		func(f *config.File) any { return &f.Bonds[0].Slaves[0] },
		func(f *config.File) any { return &f.Bonds[0].Routes[0] },
		func(f *config.File) any { return &f.Bonds[0].VLANs[0] },
	} {
		fields := reflect.TypeOf(of(example())).Elem()
		for n := range fields.NumField() {
			f := example()
			key := fields.Field(n).Tag.Get("yaml")
			field := reflect.ValueOf(of(f)).Elem().Field(n)
			if key == "" || key == "version" || !fill(field) || fields.Field(n).Name == "Device" { // which Linux's bond is anyway
				continue
			}
			if d := cmp.Diff(export(t, example()), export(t, f)); d == "" {
				t.Errorf("%s %s is forgotten", fields.Name(), key)
			}
		}
	}
}

func example() *config.File {
	return &config.File{Version: 1, Bonds: []config.Bond{{Name: "b", Mode: 1, Slaves: []config.Slave{{Name: "s"}},
		Routes: []config.Route{{To: "10.9.0.0/16"}}, VLANs: []config.VLAN{{ID: 5}}}}}
}

// fill gives a field a value; one that has one already is not changed.
func fill(v reflect.Value) bool {
	if !v.IsZero() && v.Kind() != reflect.Slice {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Map:
		v.Set(reflect.ValueOf(config.Options{"miimon": "70"}))
	case reflect.Struct:
		return fill(v.Field(0))
	case reflect.Slice:
		if v.Len() > 0 {
			return false
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fill(v.Index(0))
	}
	return true
}

// randomBond makes a bond with options of Linux's.
func randomBond(r *rand.Rand, name string) config.Bond {
	b := config.Bond{Name: name, Mode: config.Mode(r.IntN(7)), Options: config.Options{}}
	for n := range 1 + r.IntN(4) {
		s := config.Slave{Name: fmt.Sprintf("%s%d$;", name, n)}
		if r.IntN(2) == 0 && (b.Mode == 1 || b.Mode >= 5) {
			s.Prio = r.Int32N(200) - 100
		}
		if r.IntN(3) == 0 {
			s.QueueID = uint16(n) // no two the same
		}
		if r.IntN(3) == 0 && b.Mode == 4 {
			s.ActorPortPrio = uint16(1 + r.IntN(65535))
		}
		b.Slaves = append(b.Slaves, s)
	}
	choices := append(append([]string(nil), values...), b.Slaves[0].Name, "200", "10.9.9.9,10.9.9.8", "fd00::9,fd00::8", "on", "default", "maxval")
	for _, option := range bonding.OptionNames() {
		text := choices[r.IntN(len(choices))]
		if option == "mode" || ipNames[option] == "" || option == "active_slave" || r.IntN(3) == 0 {
			continue
		}
		b.Options[option] = text
		if trial, err := tryOptions(bonding.Mode(b.Mode), b.Options); err != nil {
			delete(b.Options, option)
		} else {
			trial.Close()
		}
	}
	if _, ok := b.Options["primary"]; ok {
		b.Options["primary"] = b.Slaves[0].Name
	}
	if on := strings.Trim(b.Options["arp_interval"], "0123456789") == "" && b.Options["arp_interval"] > "0"; !on { // what Linux refuses beside miimon
		delete(b.Options, "arp_validate")
	}
	if trial, err := tryOptions(bonding.Mode(b.Mode), b.Options); err == nil { // what Linux refuses without miimon
		if v, _ := trial.Option("miimon"); v == "0" {
			maps.DeleteFunc(b.Options, func(name, _ string) bool { return slices.Contains(delays, name) })
		}
		trial.Close()
	}
	if b.Mode == 1 && r.IntN(2) == 0 {
		b.Options["active_slave"] = b.Slaves[len(b.Slaves)-1].Name
	}
	if r.IntN(2) == 0 {
		b.MTU, b.HardwareAddress = 1400, "02:00:00:00:00:07"
	}
	b.Addresses = []string{fmt.Sprintf("10.%d.0.2/24", r.IntN(255)), "fd00::2/64"}[:r.IntN(3)]
	b.Routes = []config.Route{{To: "10.8.0.0/16", Metric: r.Uint32N(3)}, {To: "10.9.0.0/16"}, {To: "default", Via: "fe80::1"}}[:r.IntN(4)]
	if len(b.Addresses) == 0 {
		b.Device, b.Routes = config.DeviceTAP, nil
		return b
	}
	if r.IntN(2) == 0 {
		b.VLANs = []config.VLAN{{ID: 5, Priority: uint8(r.IntN(8)), Addresses: []string{"10.5.0.2/24"}}, {ID: 7, Protocol: "802.1ad", VLANs: []config.VLAN{{ID: 5}}}}
	}
	return b
}

// effective puts what a bond's options come to in their place.
func effective(t *testing.T, b config.Bond) config.Bond {
	t.Helper()
	active := b.Options["active_slave"]
	set := map[string]string{}
	for name, text := range b.Options {
		if name != "active_slave" {
			set[name] = text
		}
	}
	trial, err := tryOptions(bonding.Mode(b.Mode), set)
	if err != nil {
		t.Fatal(err)
	}
	defer trial.Close()
	b.Options = config.Options{"active_slave": active}
	for _, option := range bonding.OptionNames() {
		if option != "active_slave" && option != "queue_id" {
			b.Options[option], _ = trial.Option(option)
		}
	}
	return b
}

// Importing the exported commands gives the same bonds back.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 8))
		f := &config.File{Version: 1, Bonds: []config.Bond{randomBond(r, "a"), randomBond(r, "b")}}
		s := export(t, f)
		script := strings.Join(s.Commands, "\n")
		if len(s.Left) > 0 {
			t.Fatalf("seed %d: left: %v", seed, s.Left)
		}
		back, err := Import("", []Source{{"script", []byte(script)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range back.Notices {
			if n.Kind != Changed { // which a bond without addresses is
				t.Fatalf("seed %d: %v\n%s", seed, n, script)
			}
		}
		for n := range f.Bonds {
			if d := cmp.Diff(effective(t, f.Bonds[n]), effective(t, back.Config.Bonds[n]), cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("seed %d: %s\n%s", seed, d, script)
			}
		}
	}
}

// A running bond's status makes the same commands as its configuration.
func TestFromStatus(t *testing.T) {
	b, err := bonding.New(bonding.Options{Name: "bond0", Mode: bonding.IEEE8023AD})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	options := config.Options{"miimon": "50", "updelay": "100", "lacp_rate": "fast", "arp_ip_target": "10.0.0.1,10.0.0.3", "xmit_hash_policy": "layer3+4", "rx_dedup": "on"}
	if err := b.SetOptions(options); err != nil {
		t.Fatal(err)
	}
	st := b.Status()
	got := FromStatus(&st)
	if d := cmp.Diff(options, got.Bonds[0].Options); d != "" || got.Bonds[0].Mode != 4 || got.Bonds[0].Name != "bond0" {
		t.Error(d, got.Bonds[0])
	}
}
