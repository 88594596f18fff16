package migrate

import (
	"path"
	"slices"
	"strings"
)

// ipKeys are the names that ip link has for a bond's options.
var ipKeys = map[string]key{
	"mode":               {"mode", nil},
	"active_slave":       {"active_slave", nil},
	"miimon":             {"miimon", nil},
	"updelay":            {"updelay", nil},
	"downdelay":          {"downdelay", nil},
	"peer_notify_delay":  {"peer_notif_delay", nil},
	"use_carrier":        {"use_carrier", switched},
	"arp_interval":       {"arp_interval", nil},
	"arp_ip_target":      {"arp_ip_target", commas},
	"ns_ip6_target":      {"ns_ip6_target", commas},
	"arp_validate":       {"arp_validate", nil},
	"arp_all_targets":    {"arp_all_targets", nil},
	"primary":            {"primary", nil},
	"primary_reselect":   {"primary_reselect", nil},
	"fail_over_mac":      {"fail_over_mac", nil},
	"xmit_hash_policy":   {"xmit_hash_policy", nil},
	"resend_igmp":        {"resend_igmp", nil},
	"num_grat_arp":       {"num_grat_arp", nil},
	"num_unsol_na":       {"num_grat_arp", nil},
	"all_slaves_active":  {"all_slaves_active", switched},
	"min_links":          {"min_links", nil},
	"lp_interval":        {"lp_interval", nil},
	"packets_per_slave":  {"packets_per_slave", nil},
	"tlb_dynamic_lb":     {"tlb_dynamic_lb", switched},
	"lacp_rate":          {"lacp_rate", nil},
	"lacp_active":        {"lacp_active", switched},
	"ad_select":          {"ad_select", nil},
	"ad_user_port_key":   {"ad_user_port_key", nil},
	"ad_actor_sys_prio":  {"ad_actor_sys_prio", nil},
	"ad_actor_system":    {"ad_actor_system", nil},
	"arp_missed_max":     {"arp_missed_max", nil},
	"coupled_control":    {"coupled_control", switched},
	"broadcast_neighbor": {"broadcast_neighbor", switched},
	"lacp_strict":        {"lacp_strict", switched},
}

// ipPortKeys are the names of type bond_slave, and the option that each is.
var ipPortKeys = map[string]string{"queue_id": "queue_id", "prio": "prio", "actor_port_prio": "actor_port_prio"}

var ipAbsent = absent(noKey)

// readIP reads scripts of ip commands and files that sysfs has, and what
// ip -json shows.
func readIP(r *reader, sources []Source) error {
	p := ipScript{reader: r}
	for _, s := range sources {
		if strings.HasPrefix(strings.TrimSpace(string(s.Text)), "[") {
			if err := r.dump(s); err != nil {
				return sourceError(s, err)
			}
			continue
		}
		for _, c := range shellCommands(string(s.Text)) {
			p.command(c, setting{place{s.Name, c.line}, "command", strings.Join(c.words, " ")})
		}
	}
	p.loose()
	return nil
}

type ipScript struct {
	*reader
	// routes without a device, which is found by the router's address.
	routes []route
}

func (p *ipScript) command(c shellCommand, s setting) {
	w := c.words
	for len(w) > 0 && (w[0] == "sudo" || strings.Contains(w[0], "=") && !strings.Contains(w[0], "/")) {
		w = w[1:]
	}
	if len(w) == 0 {
		return
	}
	about := slices.Contains([]string{"ip", "ifenslave", "modprobe"}, path.Base(w[0])) || slices.ContainsFunc(w, isBondingFile)
	switch {
	case c.open:
		p.lost(s, "a quote is not closed")
	case c.expands && about:
		p.lost(s, "it holds a variable or a command, which is not known here")
	case path.Base(w[0]) == "ip":
		p.ip(w[1:], s)
	case slices.Contains([]string{"link", "addr", "address", "route"}, w[0]): // of ip -batch
		p.ip(w, s)
	case w[0] == "echo" && len(w) == 4 && w[2] == ">":
		p.sysfs(w[1], w[3], s)
	case path.Base(w[0]) == "ifenslave" && len(w) > 2 && !strings.HasPrefix(w[1], "-"):
		p.iface(w[1], s.place).bond = true
		for _, m := range w[2:] {
			p.iface(w[1], s.place).members = append(p.iface(w[1], s.place).members, s.with(m))
		}
	case path.Base(w[0]) == "modprobe" && len(w) > 1 && w[1] == "bonding":
		p.modprobe(w[2:], s)
	default:
		p.other(s, w)
	}
}

// other keeps a command that is not understood.
func (p *ipScript) other(s setting, w []string) {
	p.mentions = append(p.mentions, mention{setting: s, names: w, reason: "the command is not understood"})
}

// modprobe makes the bond that the module makes by itself, unless told not to.
func (p *ipScript) modprobe(options []string, s setting) {
	if len(options) == 0 || slices.Contains(options, "max_bonds=0") {
		return
	}
	i := p.iface("bond0", s.place)
	i.bond = true
	i.moduleOptions(setting{s.place, "modprobe bonding", strings.Join(options, " ")})
}

func isBondingFile(word string) bool {
	return strings.HasPrefix(word, "/sys/class/net/") && (strings.Contains(word, "/bonding/") || strings.HasSuffix(word, "/bonding_masters"))
}

// sysfs reads echo VALUE > FILE.
func (p *ipScript) sysfs(value, file string, s setting) {
	rest, ok := strings.CutPrefix(file, "/sys/class/net/")
	name, key, _ := strings.Cut(rest, "/")
	s = setting{s.place, file, value}
	switch {
	case !ok:
		p.other(s, []string{file})
	case rest == "bonding_masters":
		if bond, plus := strings.CutPrefix(value, "+"); plus {
			p.iface(bond, s.place).bond = true
		} else {
			p.lost(s, "only what is set up is read")
		}
	case key == "bonding/slaves":
		if slave, plus := strings.CutPrefix(value, "+"); plus {
			i := p.iface(name, s.place)
			i.bond = true
			i.members = append(i.members, s.with(slave))
		} else {
			p.lost(s, "only what is set up is read")
		}
	case strings.HasPrefix(key, "bonding/"):
		i := p.iface(name, s.place)
		i.bond = true
		i.linuxOption(strings.TrimPrefix(key, "bonding/"), value, s)
	case key == "mtu":
		i := p.iface(name, s.place)
		i.replace(&i.mtu, s)
	default:
		p.other(s, []string{name})
	}
}

// ip reads the arguments of ip.
func (p *ipScript) ip(w []string, s setting) {
	for len(w) > 0 && strings.HasPrefix(w[0], "-") {
		switch flag := w[0]; flag {
		case "-4", "-6":
		case "-n", "-netns":
			w = w[1:]
			p.notices = append(p.notices, setting{s.place, flag, strings.Join(w[:min(1, len(w))], "")}.notice(Host, "start bondstack in the namespace"))
		default:
			p.lost(s.with(flag), "unknown flag of ip")
		}
		w = w[min(1, len(w)):]
	}
	if len(w) == 0 {
		return
	}
	object, args := w[0], w[1:]
	verb := "show"
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	if verb == "a" || verb == "ad" {
		verb = "add"
	}
	switch {
	case verb == "show" || verb == "list" || verb == "ls": // tells, and changes nothing
	case abbreviates(object, "link") && verb == "add":
		p.linkAdd(args, s)
	case abbreviates(object, "link") && verb == "set":
		p.linkSet(args, s)
	case abbreviates(object, "addr", "address") && (verb == "add" || verb == "replace"):
		p.addrAdd(args, s)
	case abbreviates(object, "route") && (verb == "add" || verb == "replace" || verb == "append"):
		p.routeAdd(args, s)
	default:
		p.other(s, w)
	}
}

// abbreviates reports whether word is the beginning of one of names.
func abbreviates(word string, names ...string) bool {
	return word != "" && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, word) })
}
