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

// words takes words off a list of arguments.
type args struct{ list []string }

func (a *args) next() string {
	if len(a.list) == 0 {
		return ""
	}
	word := a.list[0]
	a.list = a.list[1:]
	return word
}

// linkAdd reads the arguments of ip link add.
func (p *ipScript) linkAdd(words []string, s setting) {
	name, link, kind := "", "", ""
	for n := 0; n < len(words); n++ {
		switch w := words[n]; {
		case (w == "name" || w == "dev") && n+1 < len(words):
			n++
			name = words[n]
		case w == "link" && n+1 < len(words):
			n++
			link = words[n]
		case w == "type" && n+1 < len(words):
			kind = words[n+1]
			n = len(words)
		case slices.Contains([]string{"mtu", "address", "txqueuelen", "txqlen", "numtxqueues", "numrxqueues", "master"}, w):
			n++
		case w != "up" && name == "":
			name = w
		}
	}
	if kind == "bond" && name == "" {
		name = "bond0"
	}
	i := p.iface(name, s.place)
	if kind != "" {
		i.kind = kind
	}
	i.bond = i.bond || kind == "bond"
	if kind == "vlan" {
		i.vlan = &vlanLink{link: setting{s.place, "link", link}}
	}
	a := args{words}
	for len(a.list) > 0 {
		switch w := a.next(); w {
		case "name", "dev", "link":
			a.next()
		case name:
		default:
			p.linkKey(i, w, &a, s)
		}
	}
}

func (p *ipScript) linkSet(words []string, s setting) {
	a := args{words}
	name := a.next()
	if name == "dev" {
		name = a.next()
	}
	i := p.iface(name, s.place)
	for len(a.list) > 0 {
		p.linkKey(i, a.next(), &a, s)
	}
}

// linkKey reads one key of ip link add or set, and what belongs to it.
func (p *ipScript) linkKey(i *iface, key string, a *args, s setting) {
	at := func() setting { return setting{s.place, key, a.next()} }
	switch key {
	case "up", "down": // a slave is taken down before, and up after it joined
	case "mtu":
		i.replace(&i.mtu, at())
	case "address":
		i.replace(&i.mac, at())
	case "master":
		p.master(i, at())
	case "txqueuelen", "txqlen", "numtxqueues", "numrxqueues":
		i.host(at())
	case "type":
		switch kind := a.next(); kind {
		case "bond":
			i.bond = true
			p.bondKeys(i, a, s.place)
		case "bond_slave":
			p.portKeys(i, a, s.place)
		case "vlan":
			p.vlanKeys(i, a, s.place)
		default:
			if len(a.list) > 0 || !i.bond {
				i.lost(setting{s.place, "type " + kind, strings.Join(a.list, " ")}, noEqual)
			}
			a.list = nil
		}
	default:
		i.lost(setting{s.place, key, strings.Join(a.list, " ")}, "unknown argument")
		a.list = nil
	}
}

// master makes an interface a slave, or the port of a bridge. A bond that is not
// made before is one of the host's.
func (p *ipScript) master(i *iface, s setting) {
	if m := p.byName[s.value]; m != nil && !m.bond && m.kind != "interface" {
		p.bridged(s.with(i.name), i.name)
		return
	}
	if m := p.byName[s.value]; m != nil { // in the order of the commands
		m.bond = true
		m.members = append(m.members, s.with(i.name))
		return
	}
	i.replace(&i.master, s)
}

func (p *ipScript) bondKeys(i *iface, a *args, at place) {
	for len(a.list) > 0 {
		name := a.next()
		if name == "clear_active_slave" {
			i.host(setting{at, name, ""})
			continue
		}
		s := setting{at, name, a.next()}
		if k, ok := ipKeys[name]; ok {
			i.read(k, s)
		} else {
			i.lost(s, "unknown option")
		}
	}
}

func (p *ipScript) portKeys(i *iface, a *args, at place) {
	for len(a.list) > 0 {
		s := setting{at, a.next(), ""}
		s.value = a.next()
		if option, ok := ipPortKeys[s.key]; ok {
			i.portOption(option, s.value, s)
		} else {
			i.lost(s, "unknown option")
		}
	}
}

func (p *ipScript) vlanKeys(i *iface, a *args, at place) {
	if i.vlan == nil {
		i.vlan = &vlanLink{}
	}
	for len(a.list) > 0 {
		s := setting{at, a.next(), ""}
		switch s.key {
		case "id":
			s.value = a.next()
			i.vlan.id = s
		case "protocol", "proto":
			s.value = a.next()
			i.vlan.protocol = s
		case "egress-qos-map":
			p.egress(i, a, s)
		default:
			s.value = a.next()
			i.lost(s, noEqual)
		}
	}
}

// egress reads a map of priorities. One of 0 alone is the device's priority.
func (p *ipScript) egress(i *iface, a *args, s setting) {
	for len(a.list) > 0 && strings.Contains(a.list[0], ":") {
		from, to, _ := strings.Cut(a.next(), ":")
		if from == "0" {
			i.vlan.priority = s.with(to)
		} else {
			i.lost(s.with(from+":"+to), "there is one priority for all frames")
		}
	}
}

func (p *ipScript) addrAdd(words []string, s setting) {
	a := args{words}
	address, dev := "", ""
	var rest []setting
	for len(a.list) > 0 {
		switch w := a.next(); w {
		case "dev":
			dev = a.next()
		case "local":
			address = a.next()
		case "broadcast", "brd":
			a.next() // follows from the address
		case "nodad", "noprefixroute", "mngtmpaddr", "home", "autojoin":
			rest = append(rest, setting{s.place, w, ""})
		case "scope", "label", "peer", "metric", "valid_lft", "preferred_lft", "proto", "anycast":
			rest = append(rest, setting{s.place, w, a.next()})
		default:
			if address != "" {
				rest = append(rest, setting{s.place, w, ""})
				continue
			}
			address = w
		}
	}
	if dev == "" {
		p.lost(s, "it names no device")
		return
	}
	i := p.iface(dev, s.place)
	if !strings.Contains(address, "/") { // as ip takes it
		address = withMask(address, map[bool]string{false: "32", true: "128"}[strings.Contains(address, ":")])
	}
	i.address(address, setting{s.place, "addr", address})
	for _, r := range rest {
		i.lost(r, noEqual)
	}
}

func (p *ipScript) routeAdd(words []string, s setting) {
	to, dev, rest := parseRoute(words, setting{s.place, "route", strings.Join(words, " ")})
	if dev == "" {
		p.routes = append(p.routes, to)
		for _, r := range rest {
			p.lost(r, noEqual)
		}
		return
	}
	i := p.iface(dev, s.place)
	i.routes = append(i.routes, to)
	for _, r := range rest {
		i.lost(r, noEqual)
	}
}

// parseRoute reads the arguments of ip route add. rest has no equal.
func parseRoute(words []string, s setting) (to route, dev string, rest []setting) {
	to = route{setting: s}
	a := args{words}
	for len(a.list) > 0 {
		switch w := a.next(); w {
		case "unicast":
		case "via":
			if to.via = a.next(); to.via == "inet" || to.via == "inet6" {
				to.via = a.next()
			}
		case "dev":
			dev = a.next()
		case "metric", "priority", "preference":
			to.metric = a.next()
		case "to":
			to.to = a.next()
		case "table":
			to.inTable(setting{s.place, w, a.next()})
		case "onlink":
			rest = append(rest, setting{s.place, w, ""})
		case "proto", "protocol", "scope", "src", "mtu", "advmss", "realm", "nexthop", "weight", "pref", "rto_min", "initcwnd", "tos":
			rest = append(rest, setting{s.place, w, a.next()})
		default:
			if to.to == "" {
				to.to = w
			} else {
				rest = append(rest, setting{s.place, w, ""})
			}
		}
	}
	return to, dev, rest
}

// loose gives routes without a device to the interface in whose network the
// router is.
func (p *ipScript) loose() {
	for _, to := range p.routes {
		i := slices.IndexFunc(p.interfaces, func(i *iface) bool { return i.reaches(to.via) })
		if i >= 0 {
			p.interfaces[i].routes = append(p.interfaces[i].routes, to)
		} else {
			p.lost(to.setting, "no interface has an address in the router's network")
		}
	}
}
