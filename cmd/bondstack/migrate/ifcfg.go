package migrate

import (
	"path"
	"slices"
	"strings"
)

// readIfcfg reads the files ifcfg-NAME and route-NAME of Red Hat and of SUSE.
func readIfcfg(r *reader, sources []Source) error {
	sources = slices.Clone(sources)
	// Routes after the interface that they are of.
	slices.SortStableFunc(sources, func(a, b Source) int { return ifcfgRank(a.Name) - ifcfgRank(b.Name) })
	for _, s := range sources {
		if ifcfgRank(s.Name) == 0 {
			ifcfg{r, s}.read()
		} else {
			ifcfg{r, s}.routes()
		}
	}
	return nil
}

func ifcfgRank(name string) int {
	for _, prefix := range []string{"route-", "route6-", "ifroute-"} {
		if strings.HasPrefix(path.Base(name), prefix) {
			return 1
		}
	}
	return 0
}

type ifcfg struct {
	*reader
	source Source
}

// ifcfgFile is the variables of one file, the last of each name.
type ifcfgFile struct {
	*iface
	vars  []setting
	given map[string]string
}

// variables reads NAME=VALUE, as a shell does.
func (c ifcfg) variables() (vars []setting, others []setting) {
	for _, command := range shellCommands(string(c.source.Text)) {
		words := command.words
		if len(words) > 0 && words[0] == "export" {
			words = words[1:]
		}
		for _, word := range words {
			name, value, ok := strings.Cut(word, "=")
			s := setting{place{c.source.Name, command.line}, name, value}
			switch {
			case !ok:
				others = append(others, s)
			case command.expands:
				c.lost(s, "it holds a variable or a command, which is not known here")
			case command.open:
				c.lost(s, "its quote is not closed")
			default:
				vars = append(vars, s)
			}
		}
	}
	return vars, others
}

func (c ifcfg) read() {
	vars, others := c.variables()
	name := strings.TrimPrefix(path.Base(c.source.Name), "ifcfg-")
	f := ifcfgFile{vars: vars, given: map[string]string{}}
	for _, v := range vars {
		f.given[v.key] = v.value
	}
	if f.given["DEVICE"] != "" {
		name = f.given["DEVICE"]
	}
	f.iface = c.iface(name, place{c.source.Name, 1})
	f.kind = strings.ToLower(f.given["TYPE"])
	if f.kind == "" {
		f.kind = "interface"
	}
	for _, o := range others {
		f.lost(o, "neither NAME=VALUE nor a comment")
	}
	f.tagged()
	for _, v := range vars {
		c.variable(&f, v)
	}
}

// tagged finds out whether the interface is a VLAN device.
func (f *ifcfgFile) tagged() {
	yes, _ := switched(f.given["VLAN"])
	if yes != "1" && f.given["ETHERDEVICE"] == "" && f.kind != "vlan" && f.given["VLAN_ID"] == "" {
		return
	}
	f.vlan = &vlanLink{}
	if base, id, ok := cutVLAN(f.name); ok {
		f.vlan.link, f.vlan.id = setting{f.place, "DEVICE", base}, setting{f.place, "DEVICE", id}
	} else if id, ok := strings.CutPrefix(f.name, "vlan"); ok {
		f.vlan.id = setting{f.place, "DEVICE", id}
	}
}

// cutVLAN splits a name such as bond0.5.
func cutVLAN(name string) (base, id string, ok bool) {
	n := strings.LastIndexByte(name, '.')
	if n < 1 || n+1 == len(name) || strings.Trim(name[n+1:], "0123456789") != "" {
		return "", "", false
	}
	return name[:n], strings.TrimLeft(name[n+1:], "0"), true
}

func (c ifcfg) variable(f *ifcfgFile, v setting) {
	base, suffix := cutNumber(v.key)
	switch v.key {
	case "DEVICE":
	case "TYPE":
		f.bond = f.bond || f.kind == "bond"
		if f.kind != "bond" && f.kind != "ethernet" && f.kind != "vlan" {
			f.lost(v, "allowed are Bond, Ethernet, Vlan")
		}
	case "BONDING_MASTER":
		f.bond = f.yes(v) || f.bond
	case "SLAVE": // MASTER says of what
		if f.yes(v) && f.given["MASTER"] == "" {
			f.lost(v, "there is no MASTER")
		}
	case "MASTER":
		f.replace(&f.master, v)
	case "BONDING_OPTS", "BONDING_MODULE_OPTS":
		f.bond = true
		f.moduleOptions(v)
	case "MTU":
		f.replace(&f.mtu, v)
	case "MACADDR", "LLADDR":
		f.replace(&f.mac, v)
	case "HWADDR":
		f.lost(v, "slaves are found by name")
	case "BRIDGE":
		f.lost(v, noBridges)
	case "VLAN":
		f.yes(v)
	case "PHYSDEV", "ETHERDEVICE", "VLAN_ID", "VLAN_PROTOCOL":
		f.vlanVariable(v)
	case "ONBOOT", "NM_CONTROLLED", "USERCTL", "UUID", "NAME", "STARTMODE", "HOTPLUG", "IPV4_FAILURE_FATAL", "IPV6_FAILURE_FATAL":
		f.host(v)
	default:
		switch {
		case base == "BONDING_SLAVE":
			f.members = append(f.members, v)
		case !f.addressVariable(v, base, suffix):
			f.lost(v, noEqual)
		}
	}
}

func (f *ifcfgFile) vlanVariable(v setting) {
	switch {
	case f.vlan == nil:
		f.lost(v, "the interface is no VLAN device")
	case v.key == "VLAN_ID":
		f.vlan.id = v
	case v.key == "VLAN_PROTOCOL":
		f.vlan.protocol = v
	default:
		f.vlan.link = v
	}
}

// cutNumber splits IPADDR1 and IPADDR_1 into IPADDR and the rest.
func cutNumber(key string) (name, suffix string) {
	name = strings.TrimSuffix(strings.TrimRight(key, "0123456789"), "_")
	return name, key[len(name):]
}

// addressVariable reads the variables of addresses, routers and name servers.
func (f *ifcfgFile) addressVariable(v setting, base, suffix string) bool {
	switch {
	case base == "IPADDR":
		mask := f.given["PREFIX"+suffix]
		for _, key := range []string{"NETMASK", "PREFIXLEN"} {
			if mask == "" {
				mask = f.given[key+suffix]
			}
		}
		f.address(withMask(v.value, mask), v)
	case base == "PREFIX" || base == "NETMASK" || base == "PREFIXLEN":
		if _, ok := f.given["IPADDR"+suffix]; !ok {
			f.lost(v, "there is no IPADDR"+suffix)
		}
	case base == "GATEWAY" || v.key == "IPV6_DEFAULTGW":
		f.gateway(v.value, f.given["METRIC"], v)
	case v.key == "METRIC" && (f.given["GATEWAY"] != "" || f.given["IPV6_DEFAULTGW"] != ""):
	case v.key == "IPV6ADDR" || v.key == "IPV6ADDR_SECONDARIES":
		for _, a := range strings.Fields(v.value) {
			f.address(withMask(a, "64"), v)
		}
	case base == "DNS":
		f.servers = append(f.servers, v)
	case v.key == "DOMAIN":
		for _, d := range strings.Fields(v.value) {
			f.search = append(f.search, v.with(d))
		}
	case v.key == "BOOTPROTO":
		f.bootproto(v)
	case v.key == "IPV6_AUTOCONF":
		f.dynamic("auto", v)
	case v.key == "IPV6INIT":
		f.yes(v)
	case v.key == "DHCPV6C":
		if f.yes(v) {
			f.lost(v, noDHCPv6)
		}
	case v.key == "NETWORK" || v.key == "BROADCAST":
		f.rest = append(f.rest, v.notice(Changed, "it follows from the address"))
	default:
		return false
	}
	return true
}

func (f *ifcfgFile) bootproto(v setting) {
	for _, word := range strings.Split(strings.ToLower(v.value), "+") {
		switch word {
		case "", "none", "static":
		case "dhcp", "dhcp4":
			f.address("dhcp", v)
		case "auto6":
			f.address("auto", v)
		case "dhcp6":
			f.lost(v, noDHCPv6)
		default:
			f.lost(v, "allowed are none, static, dhcp, dhcp4, auto6")
		}
	}
}

// routes reads a file route-NAME: lines as ip route takes them, of SUSE's (four
// columns), or ADDRESS0, NETMASK0, GATEWAY0.
func (c ifcfg) routes() {
	_, name, _ := strings.Cut(path.Base(c.source.Name), "-")
	i := c.iface(name, place{c.source.Name, 1})
	vars, _ := c.variables()
	given := map[string]string{}
	for _, v := range vars {
		given[v.key] = v.value
	}
	for _, v := range vars {
		base, suffix := cutNumber(v.key)
		switch base {
		case "ADDRESS":
			i.routes = append(i.routes, route{setting: v, to: withMask(v.value, given["NETMASK"+suffix]), via: given["GATEWAY"+suffix], metric: given["METRIC"+suffix]})
		case "NETMASK", "GATEWAY", "METRIC":
			if _, ok := given["ADDRESS"+suffix]; !ok {
				i.lost(v, "there is no ADDRESS"+suffix)
			}
		default:
			i.lost(v, noEqual)
		}
	}
	for _, command := range shellCommands(string(c.source.Text)) {
		w := command.words
		if len(w) == 0 || strings.Contains(w[0], "=") {
			continue
		}
		at := setting{place{c.source.Name, command.line}, "route", strings.Join(w, " ")}
		if suse := len(w) >= 2 && !slices.Contains(w, "via") && !slices.Contains(w, "dev"); suse {
			c.suseRoute(i, w, at)
			continue
		}
		to, dev, rest := parseRoute(w, at)
		if dev != "" && dev != name {
			i.lost(at, "it is of "+dev)
			continue
		}
		for _, s := range rest {
			i.lost(s, noEqual)
		}
		i.routes = append(i.routes, to)
	}
}

// suseRoute reads DESTINATION GATEWAY NETMASK INTERFACE, with - for nothing.
func (c ifcfg) suseRoute(i *iface, w []string, at setting) {
	column := func(n int) string {
		if n >= len(w) || w[n] == "-" {
			return ""
		}
		return w[n]
	}
	for n := 4; n < len(w); n++ {
		i.lost(at.with(w[n]), noEqual)
	}
	if dev := column(3); dev != "" && dev != i.name {
		i.lost(at, "it is of "+dev)
		return
	}
	i.routes = append(i.routes, route{setting: at, to: withMask(column(0), column(2)), via: column(1)})
}
