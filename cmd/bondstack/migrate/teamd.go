package migrate

import (
	"slices"
	"strings"
)

// teamdKeys are the keys that have an equal option, by their path. Under
// link_watch the watcher's name is in it.
var teamdKeys = map[string]key{
	"runner.name":                      {"mode", teamdRunner},
	"runner.active":                    {"lacp_active", switched},
	"runner.sys_prio":                  {"ad_actor_sys_prio", nil},
	"runner.fast_rate":                 {"lacp_rate", switched},
	"runner.min_ports":                 {"min_links", nil},
	"runner.agg_select_policy":         {"ad_select", words(map[string]string{"lacp_prio_stable": "stable", "bandwidth": "bandwidth", "count": "count"})},
	"runner.hwaddr_policy":             {"fail_over_mac", words(map[string]string{"same_all": "none", "by_active": "active", "only_active": "follow"})},
	"runner.tx_hash":                   {"xmit_hash_policy", teamdHash},
	"notify_peers.count":               {"num_grat_arp", nil},
	"notify_peers.interval":            {"peer_notif_delay", nil},
	"mcast_rejoin.count":               {"resend_igmp", nil},
	"link_watch.ethtool.delay_up":      {"updelay", nil},
	"link_watch.ethtool.delay_down":    {"downdelay", nil},
	"link_watch.arp_ping.interval":     {"arp_interval", nil},
	"link_watch.arp_ping.missed_max":   {"arp_missed_max", nil},
	"link_watch.arp_ping.target_host":  {"arp_ip_target", added},
	"link_watch.nsna_ping.interval":    {"arp_interval", nil},
	"link_watch.nsna_ping.missed_max":  {"arp_missed_max", nil},
	"link_watch.nsna_ping.target_host": {"ns_ip6_target", added},
}

// teamdAbsent has neither arp_validate, monitor_rule nor packets_per_slave, which
// are made of several keys, nor queue_id, which ports have.
var teamdAbsent = func() map[string]string {
	table := absent(noKey, "active_slave", "miimon", "use_carrier", "arp_all_targets", "primary", "primary_reselect",
		"all_slaves_active", "lp_interval", "ad_user_port_key", "ad_actor_system", "tlb_dynamic_lb", "coupled_control",
		"broadcast_neighbor", "lacp_strict")
	delete(table, "monitor_rule")
	return table
}()

// words makes a reader that replaces words.
func words(table map[string]string) func(string) (string, error) {
	return func(text string) (string, error) {
		if word, ok := table[text]; ok {
			return word, nil
		}
		return "", errNoEqual
	}
}

// added makes a target one that is added to those before.
func added(text string) (string, error) { return "+" + strings.TrimSpace(text), nil }

func teamdRunner(name string) (string, error) {
	return words(map[string]string{"broadcast": "broadcast", "roundrobin": "balance-rr", "random": "balance-rr",
		"activebackup": "active-backup", "loadbalance": "balance-xor", "lacp": "802.3ad"})(name)
}

// teamdHash reads a list of what is hashed. The policy with the highest layer of
// those named is the nearest.
func teamdHash(text string) (string, error) {
	parts := splitList(text)
	has := func(names ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(names, p) })
	}
	for _, p := range parts {
		if !slices.Contains([]string{"eth", "vlan", "ipv4", "ipv6", "ip", "l3", "tcp", "udp", "sctp", "l4"}, p) {
			return "", errNoEqual
		}
	}
	switch {
	case has("tcp", "udp", "sctp", "l4"):
		return "layer3+4", nil
	case has("ipv4", "ipv6", "ip", "l3"):
		return "layer2+3", nil
	case has("vlan"):
		return "vlan+srcmac", nil
	case has("eth"):
		return "layer2", nil
	}
	return "", errNoEqual
}

// exactHashes are the lists that mean the same as Linux's policy.
var exactHashes = []string{"eth", "eth,ip", "eth,ipv4,ipv6", "eth,l3", "ip,l4", "l3,l4", "ipv4,ipv6,l4", "ip,tcp,udp", "ipv4,ipv6,tcp,udp"}

// readTeamd reads teamd's configuration, one device a file.
func readTeamd(r *reader, sources []Source) error {
	for _, s := range sources {
		root, err := parseJSON(s.Text)
		if err != nil {
			return sourceError(s, err)
		}
		name := root.get("device").value()
		t := teamd{reader: r, source: s.Name}
		t.iface = r.iface(name, place{s.Name, root.line})
		t.bond, t.kind = true, "team"
		t.top(root)
		t.watches()
	}
	return nil
}

type teamd struct {
	*reader
	*iface
	source string

	watched                    []setting // the watchers' names
	policy                     setting
	validActive, validInactive setting
}

func (t *teamd) at(p pair, path string) setting {
	return setting{place{t.source, p.line}, path, p.value.raw()}
}

func (t *teamd) top(root *node) {
	for _, p := range t.fields(root, setting{place{t.source, root.line}, "the file", root.show()}) {
		s := t.at(p, p.key)
		switch p.key {
		case "device":
		case "hwaddr":
			t.replace(&t.mac, s)
		case "debug_level":
			t.host(s)
		case "runner", "notify_peers", "mcast_rejoin":
			for _, q := range t.fields(p.value, s) {
				t.key(p.key+"."+q.key, q)
			}
		case "link_watch":
			t.watch(p)
		case "link_watch_policy":
			t.policy = s
		case "ports":
			for _, q := range t.fields(p.value, s) {
				t.teamPort(q)
			}
		default:
			t.lost(s, noEqual)
		}
	}
}

func (t *teamd) lost(s setting, reason string) { t.iface.lost(s, reason) }

func (t *teamd) key(path string, p pair) {
	s := t.at(p, path)
	k, ok := teamdKeys[path]
	if !ok {
		t.lost(s, noEqual)
		return
	}
	t.read(k, s)
	switch {
	case path == "runner.name" && s.value == "random":
		t.option("packets_per_slave", "0", s)
	case k.option == "xmit_hash_policy" && !slices.Contains(exactHashes, s.value):
		t.rest = append(t.rest, s.notice(Changed, "the nearest policy is taken"))
	}
}

// watch reads one link watcher, or a list of them.
func (t *teamd) watch(p pair) {
	if p.value.kind == list {
		for _, item := range p.value.items {
			t.watch(pair{item.line, p.key, item})
		}
		return
	}
	name := p.value.get("name").value()
	t.watched = append(t.watched, t.at(p, "link_watch").with(name))
	for _, q := range t.fields(p.value, t.at(p, "link_watch")) {
		path := "link_watch." + name + "." + q.key
		switch q.key {
		case "name":
			if name != "ethtool" && name != "arp_ping" && name != "nsna_ping" {
				t.lost(t.at(q, "link_watch.name"), noEqual)
			}
		case "validate_active":
			t.validActive = t.at(q, path)
		case "validate_inactive":
			t.validInactive = t.at(q, path)
		default:
			t.key(path, q)
		}
	}
}

// watches sets what follows from all watchers together.
func (t *teamd) watches() {
	active, _ := switched(t.validActive.value)
	inactive, _ := switched(t.validInactive.value)
	switch {
	case active == "1" && inactive == "1":
		t.option("arp_validate", "all", t.validActive)
	case active == "1":
		t.option("arp_validate", "active", t.validActive)
	case inactive == "1":
		t.option("arp_validate", "backup", t.validInactive)
	}
	ethtool, ping := false, false
	for _, w := range t.watched {
		ethtool = ethtool || w.value == "ethtool"
		ping = ping || w.value != "ethtool"
	}
	rule := t.policy
	switch {
	case !ethtool || !ping: // one monitor, whatever the rule
		if rule.given() {
			t.rest = append(t.rest, rule.notice(Changed, "there is one monitor, so that it has no effect"))
		}
		return
	case !rule.given():
		rule = t.watched[0].with("any")
	}
	t.option("monitor_rule", rule.value, rule)
}

func (t *teamd) teamPort(p pair) {
	path := "ports." + p.key
	t.members = append(t.members, t.at(p, path).with(p.key))
	i := t.reader.iface(p.key, place{t.source, p.line})
	for _, q := range t.fields(p.value, t.at(p, path)) {
		s := t.at(q, path+"."+q.key)
		switch q.key {
		case "prio", "queue_id":
			i.portOption(q.key, s.value, s)
		case "lacp_prio":
			i.portOption("actor_port_prio", s.value, s)
		default:
			i.lost(s, noEqual)
		}
	}
}
