package migrate

import (
	"path"
	"slices"
	"strings"
)

// ifupdownNames are names of options that differ from Linux's.
var ifupdownNames = map[string]string{
	"ad_sys_priority": "ad_actor_sys_prio",
	"ad_sys_mac_addr": "ad_actor_system",
	"arp_ip_targets":  "arp_ip_target",
}

// readIfupdown reads /etc/network/interfaces of ifupdown, ifupdown2 and
// ifupdown-ng.
func readIfupdown(r *reader, sources []Source) error {
	for _, s := range sources {
		u := ifupdown{reader: r, sources: sources}
		for _, l := range ifupdownLines(s) {
			u.line(l)
		}
	}
	for _, i := range r.interfaces {
		if i.master.given() && len(i.members) == 0 {
			i.handOver(r.iface(i.master.value, i.master.place))
		}
	}
	return nil
}

// handOver gives the bond's options that stand at a slave to the bond.
func (i *iface) handOver(bond *iface) {
	i.bond, bond.bond = false, true
	for _, o := range i.options {
		bond.option(o.name, o.text, o.from)
	}
	i.options = nil
}

// ifupdownLines returns the lines as settings: the first word and the rest. A
// backslash at a line's end joins it with the next.
func ifupdownLines(s Source) []setting {
	var lines []setting
	number, from := 0, 0
	var joined strings.Builder
	for line := range strings.Lines(string(s.Text)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if joined.Len() == 0 {
			from = number
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
		}
		if before, more := strings.CutSuffix(line, "\\"); more {
			joined.WriteString(before + " ")
			continue
		}
		joined.WriteString(line)
		lines = appendLine(lines, place{s.Name, from}, joined.String())
		joined.Reset()
	}
	return appendLine(lines, place{s.Name, from}, joined.String())
}

func appendLine(lines []setting, at place, text string) []setting {
	words := strings.Fields(text)
	if len(words) == 0 {
		return lines
	}
	return append(lines, setting{at, words[0], strings.TrimSpace(strings.TrimSpace(text)[len(words[0]):])})
}

type ifupdown struct {
	*reader
	sources []Source
	current *iface // nil outside of an iface stanza
	foreign bool   // in a stanza that is about something else
	family  string
}

func (u *ifupdown) line(l setting) {
	switch l.key {
	case "iface":
		u.stanza(l)
	case "auto", "no-auto-down", "no-scripts":
		u.start(l)
	case "source", "source-directory":
		u.current = nil
		if !u.sourced(l.value) {
			u.lost(l, "give the file too")
		}
	case "mapping", "template", "rename", "vlan":
		u.current, u.foreign = nil, true
		u.notBond(l.place, l.key+" "+l.value)
	default:
		switch {
		case strings.HasPrefix(l.key, "allow-"):
			u.start(l)
		case u.current == nil && u.foreign: // a part of it
		case u.current == nil:
			u.notBond(l.place, l.key+" "+l.value)
		default:
			u.option(u.current, l)
		}
	}
}

// start reads the lines that say when interfaces are brought up.
func (u *ifupdown) start(l setting) {
	u.current, u.foreign = nil, false
	for _, name := range strings.Fields(l.value) {
		u.iface(name, l.place).host(l.with(name))
	}
}

// sourced reports whether a file that is included was given, if only as a copy in
// a folder of the same name.
func (u *ifupdown) sourced(pattern string) bool {
	return slices.ContainsFunc(u.sources, func(s Source) bool {
		whole, _ := path.Match(pattern, s.Name)
		base, _ := path.Match(path.Base(pattern), path.Base(s.Name))
		return whole || base && path.Base(path.Dir(pattern)) == path.Base(path.Dir(s.Name))
	})
}

func (u *ifupdown) stanza(l setting) {
	words := strings.Fields(l.value)
	if len(words) == 0 {
		u.current = nil
		u.lost(l, "the interface's name is missing")
		return
	}
	name, label, aliased := strings.Cut(words[0], ":")
	u.current = u.iface(name, l.place)
	if aliased && label != "" {
		u.current.lost(l.with(words[0]), "the label is left out, its addresses are carried")
	}
	if base, id, ok := cutVLAN(name); ok && u.current.vlan == nil {
		u.current.vlan = &vlanLink{link: l.with(base), id: l.with(id)}
	}
	u.family, u.foreign = "", false
	for n := 1; n < len(words); n++ {
		switch word := words[n]; word {
		case "inet", "inet6":
			u.family = word
		case "static", "manual", "loopback":
		case "dhcp":
			if u.family == "inet6" {
				u.current.lost(l, noDHCPv6)
			} else {
				u.current.address("dhcp", l)
			}
		case "auto":
			u.current.address("auto", l)
		default:
			u.current.lost(l.with(word), "allowed are inet, inet6 and static, manual, dhcp, auto")
		}
	}
}

// option reads a line of a stanza.
func (u *ifupdown) option(i *iface, l setting) {
	name := strings.ReplaceAll(l.key, "-", "_")
	switch name {
	case "slaves", "bond_slaves", "bond_members":
		u.slaves(i, l)
	case "bond_master":
		i.replace(&i.master, l)
	case "bond_give_a_chance":
		i.host(l)
	case "bond_primary":
		i.bond = true
		first, more, _ := strings.Cut(l.value, " ")
		if more != "" {
			i.lost(l.with(more), "one slave is the primary; prio ranks several")
		}
		i.linuxOption("primary", first, l)
	default:
		if option, ok := strings.CutPrefix(name, "bond_"); ok {
			if linux := ifupdownNames[option]; linux != "" {
				option = linux
			}
			i.bond = true
			i.linuxOption(option, l.value, l)
			return
		}
		u.addressOption(i, name, l)
	}
}

func (u *ifupdown) slaves(i *iface, l setting) {
	i.bond = true
	words := strings.Fields(l.value)
	if len(words) > 0 && (words[0] == "glob" || words[0] == "regex" || words[0] == "all") {
		i.lost(l, "slaves are named one by one, not by a pattern")
		return
	}
	for _, w := range words {
		if w != "none" {
			i.members = append(i.members, l.with(w))
		}
	}
}

func (u *ifupdown) addressOption(i *iface, name string, l setting) {
	switch name {
	case "address":
		i.address(l.value, l)
	case "netmask":
		if n := len(i.addresses) - 1; n >= 0 && i.addresses[n].key == "address" {
			i.addresses[n].value = withMask(i.addresses[n].value, l.value)
		} else {
			i.lost(l, "there is no address before it")
		}
	case "gateway":
		i.gateway(l.value, "", l)
	case "metric":
		if n := len(i.routes) - 1; n >= 0 {
			i.routes[n].metric = l.value
		} else {
			i.lost(l, "there is no gateway before it")
		}
	case "network", "broadcast":
		i.rest = append(i.rest, l.notice(Changed, "it follows from the address"))
	case "dns_nameservers", "dns_nameserver":
		for _, w := range strings.Fields(l.value) {
			i.servers = append(i.servers, l.with(w))
		}
	case "dns_search", "dns_domain":
		for _, w := range strings.Fields(l.value) {
			i.search = append(i.search, l.with(w))
		}
	case "hwaddress":
		i.replace(&i.mac, l.with(strings.TrimSpace(strings.TrimPrefix(l.value, "ether"))))
	case "mtu":
		i.replace(&i.mtu, l)
	case "autoconf", "accept_ra":
		u.autoconf(i, l)
	default:
		u.otherOption(i, name, l)
	}
}

func (u *ifupdown) autoconf(i *iface, l setting) {
	if l.key == "accept_ra" && l.value == "2" { // also when forwarding
		l.value = "1"
	}
	i.dynamic("auto", l)
}

func (u *ifupdown) otherOption(i *iface, name string, l setting) {
	switch name {
	case "vlan_raw_device", "vlan_id", "vlan_protocol":
		if i.vlan == nil {
			i.vlan = &vlanLink{}
		}
		field := map[string]*setting{"vlan_raw_device": &i.vlan.link, "vlan_id": &i.vlan.id, "vlan_protocol": &i.vlan.protocol}[name]
		*field = l
		if id, ok := strings.CutPrefix(i.name, "vlan"); ok && !i.vlan.id.given() {
			i.vlan.id = l.with(strings.TrimLeft(id, "0"))
		}
	case "bridge_ports":
		for _, port := range strings.Fields(l.value) {
			u.bridged(l.with(port), port)
		}
	case "pre_up", "up", "post_up", "pre_down", "down", "post_down":
		i.lost(l, "commands are not run")
	default:
		i.lost(l, noEqual)
	}
}
