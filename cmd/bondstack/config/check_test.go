package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bondstack/bonding"
)

// The whole file has what the checks of meaning take, but for a listener.
func TestCheckWhole(t *testing.T) {
	f, _ := Parse([]byte(whole))
	f.Bonds[0].Slaves[1].ActorPortPrio = 0
	for _, fault := range f.Check(Checks{}) {
		if !fault.Warning {
			t.Error(fault)
		}
	}
}

// Each fault of meaning has its place and tells what is allowed; a warning is one.
func TestCheckFaults(t *testing.T) {
	const head = "version: 1\nbonds:\n- name: b\n  slaves: [eth0, eth1]\n  addresses: [10.0.0.2/24]\n"
	bond := func(lines string) string { return head + lines }
	checks := Checks{
		Service: func(text string) error { return fmt.Errorf("no service %s", text) },
		Forward: func(text string) error { return fmt.Errorf("no forward %s", text) },
		Slave: func(s Slave) error {
			if s.Kind == "user" {
				return errors.New("kind user is not available")
			}
			return nil
		},
	}
	for _, tt := range []struct {
		text string
		want []string
	}{
		{bond("  mode: 1\n  options: {miimon: -5, lacp_rate: fast, speed: 1}\n"), []string{
			`7:21: bonds[0].options.miimon: "-5": invalid value: allowed are 0 to 2147483647`,
			`7:36: bonds[0].options.lacp_rate: "fast": not in this mode: the mode is active-backup; it may be set in 802.3ad`,
			`7:49: bonds[0].options.speed: "1": no such option: known are mode,`}},
		{bond("  mode: 1\n  options:\n    miimon: 100\n    arp_interval: 100\n"), []string{"9:19: bonds[0].options.arp_interval: \"100\": invalid value: miimon and arp_interval exclude each other"}},
		{bond("  mode: 1\n  options: {miimon: 0, updelay: 100}\n"), []string{"miimon is 0, and the delay counts its passes"}},
		{bond("  mode: 1\n  options: {mode: 2, queue_id: 'eth0:3', weight: 'eth0:3'}\n"), []string{"7:19: bonds[0].options.mode: \"2\" is not set here, but by key mode of the bond", "by key queue_id of the slave", "by key weight of the slave"}},
		{bond("  mode: 1\n  options: {primary: eth9, active_slave: eth8}\n"), []string{`7:22: bonds[0].options.primary: "eth9" is no slave; the slaves are eth0, eth1`, `active_slave: "eth8" is no slave`}},
		{bond("  mode: 2\n  options: {active_slave: eth0}\n"), []string{`"eth0": not in this mode`}},
		{bond("  mode: 1\n  options: {xmit_hash_policy: layer3+4}\n"), []string{`7:31: warning: bonds[0].options.xmit_hash_policy: "layer3+4" does nothing in mode active-backup; it is for balance-xor, 802.3ad, balance-tlb`}},
		{"version: 1\nbonds:\n- name: b\n  mode: 1\n  addresses: [10.0.0.2/24]\n  slaves:\n  - {name: a, queue_id: 3, actor_port_prio: 4, weight: 5}\n  - {name: b, queue_id: 3, kind: user}\n  - a\n", []string{
			"7:45: bonds[0].slaves[0].actor_port_prio: 4 is for mode 802.3ad", "7:56: warning: bonds[0].slaves[0].weight: 5 does nothing", "8:5: bonds[0].slaves[1]: kind user is not available",
			"8:25: bonds[0].slaves[1].queue_id: 3 is that of a already", `9:5: bonds[0].slaves[2]: the slave "a" is that of bonds[0].slaves[0] already`}},
		{bond("  mode: 2\n- name: b\n  mode: 2\n  slaves: [{name: eth1, prio: 7}]\n  addresses: [10.1.0.2/24]\n"), []string{
			`7:9: bonds[1].name: the name "b" is that of bonds[0].name already`, `9:12: bonds[1].slaves[0]: the slave "eth1" is that of bonds[0].slaves[1] already`, `9:31: warning: bonds[1].slaves[0].prio: 7 does nothing in mode balance-xor`}},
		{bond("  mode: 2\n  control: /run/a\n- name: c\n  mode: 2\n  slaves: [eth2]\n  addresses: [10.1.0.2/24]\n  control: /run/a\n"), []string{`12:12: bonds[1].control: the socket "/run/a" is that of bonds[0].control already`}},
		{bond("  mode: 2\n  netns: box\n  queues: 3\n"), []string{"7:10: bonds[0].netns: \"box\" is for device tap", "8:11: bonds[0].queues: 3 is for device tap"}},
		{bond("  mode: 2\n  device: tap\n  serve: [\"echo:7\"]\n  socks: 127.0.0.1:1\n  vlans: [{id: 1}]\n  routes: [{to: default, via: 10.0.0.1}]\n"), []string{
			"8:10: bonds[0].serve: this is for device stack", "8:11: bonds[0].serve[0]: \"echo:7\": no service echo:7", "9:10: bonds[0].socks", "10:10: bonds[0].vlans", "11:11: bonds[0].routes"}},
		{"version: 1\nbonds:\n- {name: b, mode: 1, device: tap, exclusive: true, set_hardware_addresses: true, slaves: [a, {name: c, kind: fdbased}]}\n- {name: d, mode: 1, device: tap, slaves: [{name: e, kind: fdbased}]}\n", []string{
			"bonds[0].slaves[1]: kind fdbased cannot keep frames", "bonds[0].slaves[1]: kind fdbased cannot set the interface's address"}},
		{bond("  mode: 2\n  socks_users: /users\n"), []string{"7:16: bonds[0].socks_users: there is no proxy"}},
		{bond("  mode: 2\n  forwards: ['tcp:1=h:2']\n"), []string{"no forward tcp:1=h:2"}},
		{"version: 1\nbonds:\n- {name: b, mode: 1, slaves: [a], addresses: [224.0.0.1/8, 10.0.0.2/24, 10.0.0.2/8]}\n", []string{
			"3:47: bonds[0].addresses[0]: ", "bonds[0].addresses[2]: 10.0.0.2/8 is Addresses[1] already"}},
		{"version: 1\nbonds:\n- {name: b, mode: 1, slaves: [a]}\n", []string{"bonds[0].addresses: the key is missing: a stack needs an address"}},
		{bond("  mode: 1\n  routes:\n  - {to: default}\n  - {to: default, via: 10.9.0.1}\n  - {to: 10.1.0.0/16, via: fd00::1}\n  - {to: 10.2.0.0/16, via: 10.0.0.1}\n  - {to: 10.2.0.0/16, via: 10.0.0.3}\n  - {to: 10.2.0.0/16, via: 10.0.0.3, metric: 1}\n"), []string{
			"8:5: bonds[0].routes[0]: default needs via", "9:5: bonds[0].routes[1]: gateway 10.9.0.1 is in none of the networks", "10:5: bonds[0].routes[2]: gateway fd00::1 and destination", "12:5: bonds[0].routes[4]: bonds[0].routes[3] goes there with metric 0 already"}},
		{bond("  mode: 1\n  vlans:\n  - {id: 5}\n  - {id: 5, addresses: [10.0.0.1/33]}\n"), []string{"9:5: bonds[0].vlans[1]: VLAN 5 is there twice", "bonds[0].vlans[1].addresses[0]"}},
		{bond("  mode: 1\n  vlans: [{id: 5, vlans: [{id: 6, vlans: [{id: 7}]}]}, {id: 8, vlans: [{id: 9}], routes: [{to: 10.0.0.0/8}]}]\n"), []string{
			"bonds[0].vlans[0].vlans[0].vlans: a device with three tags", "bonds[0].vlans[1].routes: there are no addresses"}},
		{strings.Replace(bond("  mode: 1\n  vlans: [{id: 5}]\n"), "name: b", "name: bond-with-name", 1), []string{"the device's name bond-with-name.5 has 16 bytes"}},
		{"version: 1\nmetrics: 9090\nweb: :9090\n" + bond("  mode: 1\n")[len("version: 1\n"):], []string{`3:6: web: the listener "127.0.0.1:9090" is that of metrics already`}},
		{bond("  mode: 2\n  user_network: loopback=on\n"), []string{"7:17: warning: bonds[0].user_network: no slave is of kind user"}},
		{"version: 1\nmetrics: 127.0.0.1:1\nweb: 127.0.0.1:1\n" + bond("  mode: 1\n")[len("version: 1\n"):], []string{`3:6: web: the listener "127.0.0.1:1" is that of metrics already`}},
	} {
		f, faults := Parse([]byte(tt.text))
		if f == nil {
			t.Errorf("%q: %v", tt.text, faults)
			continue
		}
		faults = append(faults, f.Check(checks)...)
		if missing := "bonds[0].mode: the key is missing"; len(faults) > 0 && strings.Contains(faults[0].Error(), missing) {
			faults = faults[1:]
		}
		faults.sort()
		ok := len(faults) == len(tt.want)
		for i := 0; ok && i < len(faults); i++ {
			ok = strings.Contains(faults[i].Error(), tt.want[i])
		}
		if !ok {
			t.Errorf("%s\nhas the faults\n%v\nwant\n%s", tt.text, lines(faults), strings.Join(tt.want, "\n"))
		}
	}
}

func lines(faults Faults) string {
	var b strings.Builder
	for _, f := range faults {
		b.WriteString(f.Error() + "\n")
	}
	return b.String()
}

// Faults of form do not hide those of meaning, nor show up as such again.
func TestReadFindsAll(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"version: 1\nspeed: 1\nbonds:\n- {name: b, mode: 1, options: {primary: eth9}, slaves: [a], addresses: [10.0.0.2]}\n", []string{
			"2:1: speed: there is no such key", "4:41: bonds[0].options.primary: \"eth9\" is no slave", "4:73: bonds[0].addresses[0]: \"10.0.0.2\" is none"}},
		{"version: 1\nbonds:\n- {name: b, mode: 9, options: {lacp_rate: fast}, slaves: [{name: a, prio: 3}], addresses: 3}\n", []string{
			"3:19: bonds[0].mode: a whole number", "3:91: bonds[0].addresses: a whole number"}},
		{"version: 1\nbonds:\n- {name: b, mode: 1, slaves: [{prio: 3}, {kind: xdp}], addresses: [10.0.0.2/24]}\n", []string{
			"bonds[0].slaves[0].name: the key is missing", "bonds[0].slaves[1].name: the key is missing"}},
	} {
		_, faults := Read([]byte(tt.text), Checks{})
		if len(faults) != len(tt.want) {
			t.Errorf("%s\nhas %d faults, want %d:\n%s", tt.text, len(faults), len(tt.want), lines(faults))
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(faults[i].Error(), want) {
				t.Errorf("fault %q, want %q", faults[i].Error(), want)
			}
		}
	}
}

// Routes are in the order of their metrics, one to a network.
func TestRoutes(t *testing.T) {
	got := fmt.Sprint(Routes([]Route{{"10.2.0.0/16", "10.0.0.1", 5}, {"default", "10.0.0.1", 0}, {"10.2.0.0/16", "10.0.0.3", 1}, {"default", "fd00::1", 0}}))
	if want := "[0.0.0.0/0 via 10.0.0.1 ::/0 via fd00::1 10.2.0.0/16 via 10.0.0.3]"; got != want {
		t.Errorf("routes %s, want %s", got, want)
	}
}

// Which options a bond refuses is for the bond to say: every option at a value
// that is no value is a fault of the file.
func TestCheckEveryOption(t *testing.T) {
	for _, o := range bonding.OptionTable() {
		f := &File{Version: 1, Bonds: []Bond{{Name: "b", Mode: Mode(o.Modes[0]), Slaves: []Slave{{Name: "a"}}, Addresses: []string{"10.0.0.2/24"},
			Options: Options{o.Name: "no such value/"}}}}
		faults := f.Check(Checks{}).Errors()
		if len(faults) == 0 || faults[0].Key != "bonds[0].options."+o.Name {
			t.Errorf("%s: %v", o.Name, faults)
		}
	}
}
