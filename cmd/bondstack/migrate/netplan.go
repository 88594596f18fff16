package migrate

import (
	"path"
	"slices"
	"strings"
)

// netplanKeys are the parameters of a bond.
var netplanKeys = map[string]key{
	"mode":                    {"mode", nil},
	"lacp-rate":               {"lacp_rate", nil},
	"mii-monitor-interval":    {"miimon", millisToMillis},
	"min-links":               {"min_links", nil},
	"transmit-hash-policy":    {"xmit_hash_policy", nil},
	"ad-select":               {"ad_select", nil},
	"all-members-active":      {"all_slaves_active", switched},
	"all-slaves-active":       {"all_slaves_active", switched},
	"arp-interval":            {"arp_interval", millisToMillis},
	"arp-ip-targets":          {"arp_ip_target", commas},
	"arp-validate":            {"arp_validate", nil},
	"arp-all-targets":         {"arp_all_targets", nil},
	"up-delay":                {"updelay", millisToMillis},
	"down-delay":              {"downdelay", millisToMillis},
	"fail-over-mac-policy":    {"fail_over_mac", nil},
	"gratuitous-arp":          {"num_grat_arp", nil},
	"gratuitious-arp":         {"num_grat_arp", nil}, // as the first versions had it
	"packets-per-member":      {"packets_per_slave", nil},
	"packets-per-slave":       {"packets_per_slave", nil},
	"primary-reselect-policy": {"primary_reselect", nil},
	"resend-igmp":             {"resend_igmp", nil},
	"learn-packet-interval":   {"lp_interval", secondsToSeconds},
	"primary":                 {"primary", nil},
}

const noKey = "the format has no key for it"

var netplanAbsent = absent(noKey, "active_slave", "peer_notif_delay", "use_carrier", "ns_ip6_target", "lacp_active",
	"ad_actor_sys_prio", "ad_user_port_key", "ad_actor_system", "tlb_dynamic_lb", "arp_missed_max", "coupled_control",
	"broadcast_neighbor", "lacp_strict", "queue_id")

// readNetplan reads files in netplan's order, that of their base names. Later
// ones override scalars and add to lists.
func readNetplan(r *reader, sources []Source) error {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b Source) int { return strings.Compare(path.Base(a.Name), path.Base(b.Name)) })
	n := netplan{reader: r, identities: map[string]string{}}
	var trees []netplanFile
	for _, s := range sources {
		docs, err := parseYAML(s.Text)
		if err != nil {
			return sourceError(s, err)
		}
		for _, d := range docs {
			trees = append(trees, netplanFile{s.Name, d})
		}
	}
	// What other sections call an interface is known from its own one.
	for _, t := range trees {
		n.identify(t.tree.get("network"))
	}
	for _, t := range trees {
		n.file(t)
	}
	return nil
}

type netplanFile struct {
	name string
	tree *node
}

type netplan struct {
	*reader
	source     string
	identities map[string]string // names of interfaces by netplan's IDs
}

// identify notes the names that set-name gives.
func (n *netplan) identify(network *node) {
	for _, section := range []string{"ethernets", "modems", "wifis"} {
		if devices := network.get(section); devices != nil {
			for _, d := range devices.pairs {
				if name := d.value.get("set-name").value(); name != "" {
					n.identities[d.key] = name
				}
			}
		}
	}
}

// name returns the name of the interface with an ID.
func (n *netplan) name(id string) string {
	if name, ok := n.identities[id]; ok {
		return name
	}
	return id
}

func (n *netplan) file(f netplanFile) {
	n.source = f.name
	for _, top := range f.tree.pairs {
		if top.key != "network" {
			n.lost(n.setting(top, top.key), "unknown key")
			continue
		}
		for _, p := range top.value.pairs {
			switch p.key {
			case "version":
				if p.value.text != "2" {
					n.lost(n.setting(p, "version"), "only version 2 is known")
				}
			case "bonds", "vlans", "ethernets":
				for _, d := range p.value.pairs {
					n.device(p.key, d)
				}
			case "renderer":
				n.notices = append(n.notices, n.setting(p, p.key).notice(Host, ""))
			case "bridges":
				for _, d := range p.value.pairs {
					n.bridge(d)
				}
			default:
				n.others(p)
			}
		}
	}
}

// others lists what a section has that is no bond's.
func (n *netplan) others(p pair) {
	if len(p.value.pairs) == 0 {
		n.notBond(n.at(p.line), p.key)
	}
	for _, d := range p.value.pairs {
		n.notBond(n.at(d.line), strings.TrimSuffix(p.key, "s")+" "+d.key)
	}
}

func (n *netplan) at(line int) place { return place{n.source, line} }

func (n *netplan) setting(p pair, path string) setting {
	return setting{n.at(p.line), path, p.value.raw()}
}

// bridge lists a bridge; a port of it that is a bond is lost there.
func (n *netplan) bridge(d pair) {
	n.notBond(n.at(d.line), "bridge "+d.key)
	if ports := d.value.get("interfaces"); ports != nil {
		for _, p := range ports.items {
			name := n.name(p.text)
			n.bridged(setting{n.at(p.line), "bridges." + d.key + ".interfaces", name}, name)
		}
	}
}

const noBridges = "there are no bridges"

// device reads an entry of bonds, vlans or ethernets.
func (n *netplan) device(section string, d pair) {
	name := d.key
	if section == "ethernets" {
		name = n.name(d.key)
	}
	i := n.iface(name, n.at(d.line))
	i.kind = strings.TrimSuffix(section, "s")
	switch section {
	case "bonds":
		i.bond = true
	case "vlans":
		if i.vlan == nil {
			i.vlan = &vlanLink{}
		}
	}
	for _, p := range d.value.pairs {
		n.deviceKey(i, section, section+"."+d.key+".", p)
	}
}

func (n *netplan) deviceKey(i *iface, section, prefix string, p pair) {
	s := n.setting(p, prefix+p.key)
	switch {
	case p.key == "interfaces" && section == "bonds":
		for _, m := range i.items(p.value, s) {
			i.members = append(i.members, setting{n.at(m.line), s.key, n.name(m.raw())})
		}
	case p.key == "parameters" && section == "bonds":
		for _, o := range i.fields(p.value, s) {
			n.parameter(i, o, n.setting(o, s.key+"."+o.key))
		}
	case p.key == "link" && section == "vlans":
		i.replace(&i.vlan.link, s.with(n.name(s.value)))
	case p.key == "id" && section == "vlans":
		i.replace(&i.vlan.id, s)
	case p.key == "set-name" && section == "ethernets": // the interface's name here
	case p.key == "match" && section == "ethernets":
		if n.identities[strings.Split(prefix, ".")[1]] == "" {
			i.lost(s, "slaves are found by name: give the interface's name as the slave's, or set-name")
		} else {
			i.lost(s, "slaves are found by name, and renaming the interface is left to the host")
		}
	default:
		n.addressKey(i, p, s)
	}
}

func (n *netplan) parameter(i *iface, o pair, s setting) {
	k, ok := netplanKeys[o.key]
	if !ok {
		i.lost(s, "unknown key")
		return
	}
	if k.option == "primary" { // a member, by its ID
		s.value = n.name(s.value)
	}
	i.read(k, s)
}

// addressKey reads the keys that all kinds of interfaces have.
func (n *netplan) addressKey(i *iface, p pair, s setting) {
	switch p.key {
	case "addresses":
		for _, a := range i.items(p.value, s) {
			n.address(i, a, s.key)
		}
	case "dhcp4":
		i.dynamic("dhcp", s)
	case "accept-ra":
		i.dynamic("auto", s)
	case "dhcp6":
		if on, _ := switched(s.value); on != "0" {
			i.lost(s, noDHCPv6)
		}
	case "gateway4", "gateway6":
		i.gateway(s.value, "", s)
	case "routes":
		for _, item := range i.items(p.value, s) {
			n.route(i, item, s.key)
		}
	case "nameservers":
		for _, q := range i.fields(p.value, s) {
			n.nameserver(i, q, n.setting(q, s.key+"."+q.key))
		}
	case "mtu":
		i.replace(&i.mtu, s)
	case "macaddress":
		i.replace(&i.mac, s)
	case "optional", "optional-addresses", "critical", "ignore-carrier", "activation-mode", "renderer":
		i.host(s)
	default:
		i.lost(s, noEqual)
	}
}

const (
	noDHCPv6 = "there is no DHCPv6 client; SLAAC is auto among the addresses"
	noEqual  = "there is no equal"
)

func (n *netplan) address(i *iface, a *node, key string) {
	s := setting{n.at(a.line), key, a.raw()}
	if a.kind != table {
		i.address(s.value, s)
		return
	}
	for _, p := range a.pairs { // {ADDRESS: {label: ..., lifetime: ...}}
		i.address(p.key, s)
		for _, q := range p.value.pairs {
			i.lost(n.setting(q, key+"."+p.key+"."+q.key), noEqual)
		}
	}
}

func (n *netplan) route(i *iface, item *node, key string) {
	to := route{setting: setting{n.at(item.line), key, item.show()}, to: "default"}
	for _, p := range i.fields(item, to.setting) {
		s := n.setting(p, key+"."+p.key)
		switch p.key {
		case "to":
			to.to = s.value
		case "via":
			to.via = s.value
		case "metric":
			to.metric = s.value
		case "table":
			to.inTable(s)
		case "on-link":
			if on, _ := switched(s.value); on != "0" {
				i.lost(s, noEqual)
			}
		default:
			i.lost(s, noEqual)
		}
	}
	i.routes = append(i.routes, to)
}

func (n *netplan) nameserver(i *iface, p pair, s setting) {
	for _, item := range i.items(p.value, s) {
		at := setting{n.at(item.line), s.key, item.raw()}
		switch p.key {
		case "addresses":
			i.servers = append(i.servers, at)
		case "search":
			i.search = append(i.search, at)
		default:
			i.lost(at, noEqual)
		}
	}
}
