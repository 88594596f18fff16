package main

import (
	"fmt"
	"strings"
	"testing"

	"bondstack/cmd/bondstack/config"
	"bondstack/cmd/bondstack/migrate"
	"bondstack/link/netnstest"

	"github.com/google/go-cmp/cmp"
)

// exportedBonds have, together, all options of Linux 6.1, at values that are not
// the defaults.
var exportedBonds = []string{
	"{mode: balance-rr, options: {miimon: 0, arp_interval: 100, arp_ip_target: [10.9.0.1, 10.9.0.3], ns_ip6_target: 'fd00::1', arp_validate: all, arp_all_targets: all, arp_missed_max: 4, packets_per_slave: 7}}",
	"{mode: active-backup, options: {miimon: 50, updelay: 100, downdelay: 150, peer_notif_delay: 200, primary: eth1, primary_reselect: failure, fail_over_mac: active, num_grat_arp: 3, resend_igmp: 2, all_slaves_active: 1}, slaves: [{name: eth0, prio: 3, queue_id: 2}, {name: eth1, prio: -4}]}",
	"{mode: balance-xor, options: {miimon: 70, xmit_hash_policy: vlan+srcmac, min_links: 1}}",
	"{mode: broadcast, options: {miimon: 0}}",
	"{mode: 802.3ad, options: {miimon: 80, lacp_rate: fast, lacp_active: false, ad_select: count, ad_actor_sys_prio: 70, ad_user_port_key: 9, ad_actor_system: '02:00:00:00:00:99', xmit_hash_policy: layer3+4, min_links: 2}}",
	"{mode: balance-tlb, options: {miimon: 90, tlb_dynamic_lb: 0, lp_interval: 5, xmit_hash_policy: layer2+3}}",
	"{mode: balance-alb, options: {miimon: 60, lp_interval: 3, primary: eth0}, vlans: [{id: 5, priority: 3, addresses: [10.5.0.2/24]}, {id: 7, protocol: 802.1ad, vlans: [{id: 6}]}]}",
}

// Linux takes the exported commands as they are, and shows the bond that they are
// of: what its listing is imported as is the configuration again.
func TestLinuxTakesTheExport(t *testing.T) {
	l, state := newLACPLab(t, 0, "linux.uml"), stateFolder(t)
	args := []string{"start", "peer", "--ns", l.name, "mode=none"}
	for i := range 2 {
		netnstest.Veth(t, l.near, l.ours(i), l.near, l.theirs(i))
		args = append(args, "--nic", l.theirs(i))
	}
	if out, err := l.script(state, "linux-bond.sh", args...); err != nil {
		t.Fatalf("start of the guest: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := l.script(state, "linux-bond.sh", "stop", "peer"); err != nil {
			t.Errorf("stop of the guest: %v: %s", err, out)
		}
	})
	for _, text := range exportedBonds {
		f := exportedBond(t, text)
		script, err := migrate.ToIP(f)
		if err != nil {
			t.Fatal(err)
		}
		commands := strings.Join(script.Commands, "\n")
		if len(script.Left) > 0 {
			t.Errorf("left: %v", script.Left)
		}
		out, err := l.script(state, "linux-bond.sh", "exec", "peer", "set -e\n"+commands+"\nip -d -j address show")
		if err != nil {
			t.Fatalf("%v: %s\n%s", err, out, commands)
		}
		r, err := migrate.Import("ip", []migrate.Source{{Name: "listing", Text: []byte(out)}})
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got := r.Config.Bonds[0]
		if got.HardwareAddress == "" || got.MTU != 1500 {
			t.Errorf("address %s, MTU %d", got.HardwareAddress, got.MTU)
		}
		got.HardwareAddress, got.MTU = "", 0 // of the first slave
		if d := cmp.Diff(f.Bonds[0], got); d != "" {
			t.Errorf("%s%s", d, commands)
		}
		if out, err := l.script(state, "linux-bond.sh", "exec", "peer", "ip link del bond9"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// exportedBond reads one of exportedBonds, with the slaves eth0 and eth1 unless
// it says otherwise.
func exportedBond(t *testing.T, text string) *config.File {
	t.Helper()
	slaves := ", slaves: [eth0, eth1]}"
	if strings.Contains(text, "slaves:") {
		slaves = "}"
	}
	text = fmt.Sprintf("version: 1\nbonds: [{name: bond9, addresses: [10.9.0.2/24], %s%s]", text[1:len(text)-1], slaves)
	f, faults := config.Parse([]byte(text))
	if len(faults) > 0 {
		t.Fatalf("%v: %s", faults, text)
	}
	return f
}
