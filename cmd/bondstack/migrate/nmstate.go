package migrate

import "strings"

// nmstateKeys are those of a bond's options.
var nmstateKeys = map[string]key{
	"ad_actor_sys_prio": {"ad_actor_sys_prio", nil},
	"ad_actor_system":   {"ad_actor_system", nil},
	"ad_select":         {"ad_select", nil},
	"ad_user_port_key":  {"ad_user_port_key", nil},
	"all_slaves_active": {"all_slaves_active", delivered},
	"arp_all_targets":   {"arp_all_targets", nil},
	"arp_interval":      {"arp_interval", nil},
	"arp_ip_target":     {"arp_ip_target", commas},
	"arp_missed_max":    {"arp_missed_max", nil},
	"arp_validate":      {"arp_validate", nil},
	"downdelay":         {"downdelay", nil},
	"fail_over_mac":     {"fail_over_mac", nil},
	"lacp_active":       {"lacp_active", switched},
	"lacp_rate":         {"lacp_rate", nil},
	"lp_interval":       {"lp_interval", nil},
	"miimon":            {"miimon", nil},
	"min_links":         {"min_links", nil},
	"ns_ip6_target":     {"ns_ip6_target", commas},
	"num_grat_arp":      {"num_grat_arp", nil},
	"num_unsol_na":      {"num_grat_arp", nil},
	"packets_per_slave": {"packets_per_slave", nil},
	"primary":           {"primary", nil},
	"primary_reselect":  {"primary_reselect", nil},
	"resend_igmp":       {"resend_igmp", nil},
	"tlb_dynamic_lb":    {"tlb_dynamic_lb", switched},
	"updelay":           {"updelay", nil},
	"use_carrier":       {"use_carrier", switched},
	"xmit_hash_policy":  {"xmit_hash_policy", nil},
}

// nmstateAbsent has neither mode nor queue_id, which stand beside the options.
var nmstateAbsent = absent(noKey, "active_slave", "peer_notif_delay", "coupled_control", "broadcast_neighbor", "lacp_strict")

// delivered reads the words for all_slaves_active.
func delivered(text string) (string, error) {
	switch text {
	case "dropped":
		return "0", nil
	case "delivered":
		return "1", nil
	}
	return switched(text)
}

// readNmstate reads states as nmstatectl shows and applies them.
func readNmstate(r *reader, sources []Source) error {
	for _, s := range sources {
		docs, err := parseYAML(s.Text)
		if err != nil {
			return sourceError(s, err)
		}
		n := nmstate{r, s.Name}
		for _, d := range docs {
			n.top(d)
		}
	}
	return nil
}

type nmstate struct {
	*reader
	source string
}

func (n *nmstate) at(p pair, path string) setting {
	return setting{place{n.source, p.line}, path, p.value.raw()}
}

func (n *nmstate) top(root *node) {
	for _, section := range []string{"interfaces", "routes", "dns-resolver"} { // the others need the interfaces
		for _, p := range root.pairs {
			if p.key != section {
				continue
			}
			switch section {
			case "interfaces":
				for _, item := range p.value.items {
					n.device(item)
				}
			case "routes":
				for _, item := range n.config(p) {
					n.route(item)
				}
			case "dns-resolver":
				n.resolver(p)
			}
		}
	}
	for _, p := range root.pairs {
		if p.key != "interfaces" && p.key != "routes" && p.key != "dns-resolver" {
			n.notBond(place{n.source, p.line}, p.key)
		}
	}
}

// config returns what stands under config; running is what the host found.
func (n *nmstate) config(p pair) []*node {
	var out []*node
	for _, q := range p.value.pairs {
		switch q.key {
		case "config":
			out = append(out, q.value.items...)
		case "running":
			n.notBond(place{n.source, q.line}, p.key+".running")
		default:
			n.lost(n.at(q, p.key+"."+q.key), noEqual)
		}
	}
	return out
}

func (n *nmstate) device(item *node) {
	name, kind := item.get("name").value(), item.get("type").value()
	if item.get("state").value() == "absent" {
		n.lost(setting{place{n.source, item.line}, name + ".state", "absent"}, "it takes the interface away")
		return
	}
	i := n.iface(name, place{n.source, item.line})
	if kind != "" {
		i.kind = kind
	}
	i.bond = i.bond || kind == "bond"
	for _, p := range item.pairs {
		s := n.at(p, name+"."+p.key)
		switch p.key {
		case "name", "type":
		case "state":
			if s.value != "up" {
				i.lost(s, "the bond is up while bondstack runs")
			}
		case "mtu":
			i.replace(&i.mtu, s)
		case "mac-address":
			i.replace(&i.mac, s)
		case "link-aggregation":
			n.aggregation(i, p, s)
		case "ipv4", "ipv6":
			n.family(i, p, s)
		case "vlan":
			n.vlan(i, p, s)
		case "bridge":
			n.bridgePorts(p, s)
		case "description", "profile-name", "wait-ip", "min-mtu", "max-mtu":
			i.host(s)
		default:
			i.lost(s, noEqual)
		}
	}
}

func (n *nmstate) aggregation(i *iface, p pair, s setting) {
	for _, q := range i.fields(p.value, s) {
		at := n.at(q, s.key+"."+q.key)
		switch q.key {
		case "mode":
			i.option("mode", at.value, at)
		case "port", "ports", "slaves":
			for _, m := range i.items(q.value, at) {
				i.members = append(i.members, setting{place{n.source, m.line}, at.key, m.raw()})
			}
		case "options":
			for _, o := range i.fields(q.value, at) {
				n.option(i, n.at(o, at.key+"."+o.key), o.key)
			}
		case "ports-config":
			for _, c := range i.items(q.value, at) {
				n.portConfig(i, c, at)
			}
		default:
			i.lost(at, noEqual)
		}
	}
}

func (n *nmstate) option(i *iface, s setting, name string) {
	if k, ok := nmstateKeys[name]; ok {
		i.read(k, s)
	} else {
		i.lost(s, noEqual)
	}
}

func (n *nmstate) portConfig(i *iface, c *node, list setting) {
	name := c.get("name").value()
	port := n.iface(name, place{n.source, c.line})
	i.members = append(i.members, setting{port.place, list.key, name})
	for _, p := range i.fields(c, list) {
		s := n.at(p, list.key+"."+p.key)
		switch p.key {
		case "name":
		case "priority":
			port.portOption("prio", s.value, s)
		case "queue-id":
			port.portOption("queue_id", s.value, s)
		default:
			port.lost(s, noEqual)
		}
	}
}

func (n *nmstate) vlan(i *iface, p pair, s setting) {
	i.vlan = &vlanLink{}
	for _, q := range i.fields(p.value, s) {
		at := n.at(q, s.key+"."+q.key)
		switch q.key {
		case "base-iface":
			i.vlan.link = at
		case "id":
			i.vlan.id = at
		case "protocol":
			i.vlan.protocol = at
		default:
			i.lost(at, noEqual)
		}
	}
}

func (n *nmstate) bridgePorts(p pair, s setting) {
	for _, key := range []string{"port", "ports"} {
		if list := p.value.get(key); list != nil {
			for _, item := range list.items {
				name := item.get("name").value()
				n.bridged(setting{place{n.source, item.line}, s.key + "." + key, name}, name)
			}
		}
	}
}

// family reads what an interface has of IPv4 or IPv6.
func (n *nmstate) family(i *iface, p pair, s setting) {
	off, _ := switched(p.value.get("enabled").value())
	for _, q := range i.fields(p.value, s) {
		at := n.at(q, s.key+"."+q.key)
		switch on, _ := switched(at.value); {
		case q.key == "enabled":
			i.yes(at)
		case off == "0":
			i.rest = append(i.rest, at.notice(Overridden, "the family is not enabled"))
		case q.key == "address" || q.key == "addresses":
			for _, a := range i.items(q.value, at) {
				n.address(i, a, at)
			}
		case q.key == "dhcp" && p.key == "ipv4":
			i.dynamic("dhcp", at)
		case q.key == "autoconf" && p.key == "ipv6":
			i.dynamic("auto", at)
		case q.key == "dhcp" && on == "0":
		case q.key == "dhcp":
			i.lost(at, noDHCPv6)
		case strings.HasPrefix(q.key, "auto-") && on == "1" && q.key != "auto-route-table-id" && q.key != "auto-route-metric": // as always
		default:
			i.lost(at, noEqual)
		}
	}
}

func (n *nmstate) address(i *iface, a *node, list setting) {
	s := setting{place{n.source, a.line}, list.key, a.show()}
	for _, p := range i.fields(a, s) {
		if p.key != "ip" && p.key != "prefix-length" {
			i.lost(n.at(p, list.key+"."+p.key), noEqual)
		}
	}
	if a.kind == table {
		i.address(a.get("ip").value()+"/"+a.get("prefix-length").value(), s)
	}
}

func (n *nmstate) route(item *node) {
	to := route{setting: setting{place{n.source, item.line}, "routes.config", item.show()},
		to: item.get("destination").value(), via: item.get("next-hop-address").value(), metric: item.get("metric").value()}
	if to.metric == "-1" { // the host's default
		to.metric = ""
	}
	device := item.get("next-hop-interface").value()
	if device == "" {
		n.lost(to.setting, "it has no next-hop-interface")
		return
	}
	i := n.iface(device, to.place)
	for _, p := range item.pairs {
		s := n.at(p, "routes.config."+p.key)
		switch p.key {
		case "destination", "next-hop-address", "next-hop-interface", "metric":
		case "state":
			i.lost(to.setting, "its state is "+shorten(s.value)+", and only routes that are added are read")
			return
		case "table-id":
			to.inTable(s)
		default:
			i.lost(s, noEqual)
		}
	}
	i.routes = append(i.routes, to)
}

// resolver gives the name servers to all bonds that have addresses.
func (n *nmstate) resolver(p pair) {
	for _, q := range p.value.pairs {
		if q.key == "running" {
			n.notBond(place{n.source, q.line}, "dns-resolver.running")
			continue
		}
		for _, o := range q.value.pairs {
			s := n.at(o, "dns-resolver."+q.key+"."+o.key)
			for _, item := range o.value.items {
				at := setting{place{n.source, item.line}, s.key, item.raw()}
				for _, i := range n.interfaces {
					switch {
					case !i.bond || len(i.addresses) == 0:
					case o.key == "server":
						i.servers = append(i.servers, at)
					case o.key == "search":
						i.search = append(i.search, at)
					}
				}
			}
			if o.key != "server" && o.key != "search" || o.value.kind != list {
				n.lost(s, noEqual)
			}
		}
	}
}
