package migrate

import (
	"path"
	"slices"
	"strings"
)

// networkdKeys are those of the section [Bond].
var networkdKeys = map[string]key{
	"Mode":                         {"mode", nil},
	"TransmitHashPolicy":           {"xmit_hash_policy", nil},
	"LACPTransmitRate":             {"lacp_rate", nil},
	"MIIMonitorSec":                {"miimon", secondsToMillis},
	"PeerNotifyDelaySec":           {"peer_notif_delay", secondsToMillis},
	"UpDelaySec":                   {"updelay", secondsToMillis},
	"DownDelaySec":                 {"downdelay", secondsToMillis},
	"LearnPacketIntervalSec":       {"lp_interval", secondsToSeconds},
	"AdSelect":                     {"ad_select", nil},
	"AdActorSystemPriority":        {"ad_actor_sys_prio", nil},
	"AdUserPortKey":                {"ad_user_port_key", nil},
	"AdActorSystem":                {"ad_actor_system", nil},
	"FailOverMACPolicy":            {"fail_over_mac", nil},
	"ARPValidate":                  {"arp_validate", nil},
	"ARPIntervalSec":               {"arp_interval", secondsToMillis},
	"ARPIPTargets":                 {"arp_ip_target", commas},
	"ARPAllTargets":                {"arp_all_targets", nil},
	"ARPMissedMax":                 {"arp_missed_max", nil},
	"PrimaryReselectPolicy":        {"primary_reselect", nil},
	"ResendIGMP":                   {"resend_igmp", nil},
	"PacketsPerSlave":              {"packets_per_slave", nil},
	"GratuitousARP":                {"num_grat_arp", nil},
	"AllSlavesActive":              {"all_slaves_active", switched},
	"DynamicTransmitLoadBalancing": {"tlb_dynamic_lb", switched},
	"MinLinks":                     {"min_links", nil},
}

// networkdAbsent has neither primary nor active_slave, which a slave's .network
// has.
var networkdAbsent = absent(noKey, "use_carrier", "ns_ip6_target", "lacp_active", "coupled_control", "broadcast_neighbor",
	"lacp_strict", "queue_id")

// readNetworkd reads .netdev files, then .network files, each in the order of
// their base names: of several .network files that match an interface only the
// first counts.
func readNetworkd(r *reader, sources []Source) error {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b Source) int { return strings.Compare(path.Base(a.Name), path.Base(b.Name)) })
	n := networkd{reader: r, matched: map[string]place{}}
	var networks [][]*iniSection
	for _, s := range sources {
		sections, wrong := readINI(s.Name, string(s.Text))
		for _, w := range wrong {
			n.lost(w, "neither a section nor KEY=VALUE")
		}
		if len(sections) == 0 {
			continue
		}
		isDevice := func(s *iniSection) bool { return s.name == "NetDev" || s.name == "Bond" }
		if path.Ext(s.Name) == ".netdev" || slices.ContainsFunc(sections, isDevice) {
			n.netdev(sections)
		} else {
			networks = append(networks, sections)
		}
	}
	for _, sections := range networks {
		n.network(sections)
	}
	return nil
}

type networkd struct {
	*reader
	matched map[string]place
}

// section returns the first section of a name, an empty one where there is none.
func section(list []*iniSection, name string) *iniSection {
	for _, s := range list {
		if s.name == name {
			return s
		}
	}
	return &iniSection{}
}

func (n *networkd) netdev(sections []*iniSection) {
	netdev := section(sections, "NetDev")
	name, kind := netdev.get("Name"), netdev.get("Kind")
	i := n.iface(name, sections[0].place)
	i.kind, i.bond = kind, kind == "bond"
	if kind == "vlan" && i.vlan == nil {
		i.vlan = &vlanLink{}
	}
	for _, s := range sections {
		for _, e := range s.entries {
			e.key = s.name + "." + e.key
			switch {
			case e.key == "NetDev.Name", e.key == "NetDev.Kind":
			case e.key == "NetDev.MTUBytes":
				i.replace(&i.mtu, e)
			case e.key == "NetDev.MACAddress":
				i.replace(&i.mac, e)
			case s.name == "Bond":
				n.bondKey(i, e)
			case s.name == "VLAN" && i.vlan != nil:
				i.vlan.read(i, e)
			default:
				networkdRest(i, e)
			}
		}
	}
}

func (n *networkd) bondKey(i *iface, e setting) {
	k, ok := networkdKeys[strings.TrimPrefix(e.key, "Bond.")]
	switch {
	case !ok:
		i.lost(e, "unknown key")
	case e.value != "": // an empty one resets
		i.read(k, e)
	}
}

func (v *vlanLink) read(i *iface, e setting) {
	switch e.key {
	case "VLAN.Id":
		i.replace(&v.id, e)
	case "VLAN.Protocol":
		i.replace(&v.protocol, e)
	default:
		i.lost(e, noEqual)
	}
}

// networkdRest lists what has no equal.
func networkdRest(i *iface, e setting) {
	section, name, _ := strings.Cut(e.key, ".")
	switch {
	case section == "Match", name == "Description", name == "RequiredForOnline", name == "RequiredFamilyForOnline",
		name == "ConfigureWithoutCarrier", name == "IgnoreCarrierLoss", name == "ActivationPolicy":
		i.host(e)
	default:
		i.lost(e, noEqual)
	}
}

// network reads a .network, for each interface that it names.
func (n *networkd) network(sections []*iniSection) {
	match := section(sections, "Match")
	names := n.expand(strings.Fields(match.get("Name")))
	at := sections[0].place
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		if before, twice := n.matched[name]; twice {
			i := n.iface(name, at)
			for _, s := range sections {
				for _, e := range s.entries {
					e.key = s.name + "." + e.key
					i.rest = append(i.rest, e.notice(Overridden, "the file of "+before.String()+" matches "+name+" first"))
				}
			}
			continue
		}
		if name != "" {
			n.matched[name] = at
		}
		n.networkOf(name, at, sections)
	}
}

// expand puts the devices of .netdev files in place of patterns that match them.
func (n *networkd) expand(names []string) []string {
	var out []string
	for _, name := range names {
		found := false
		for _, i := range n.interfaces {
			if ok, _ := path.Match(name, i.name); ok && (i.bond || i.vlan != nil) && i.name != name {
				out, found = append(out, i.name), true
			}
		}
		if !found {
			out = append(out, name)
		}
	}
	return out
}

func (n *networkd) networkOf(name string, at place, sections []*iniSection) {
	label := name
	if label == "" {
		label = "[Match] without Name"
	}
	i := n.iface(label, at)
	for _, s := range sections {
		switch s.name {
		case "Route":
			n.route(i, s)
			continue
		case "Address":
			n.addressSection(i, s)
			continue
		}
		for _, e := range s.entries {
			e.key = s.name + "." + e.key
			n.networkKey(i, e)
		}
	}
	i.pattern = name == "" || strings.ContainsAny(name, "*?[!")
}

func (n *networkd) networkKey(i *iface, e setting) {
	switch e.key {
	case "Match.Name":
	case "Network.Bond":
		i.replace(&i.master, e)
	case "Network.PrimarySlave", "Network.ActiveSlave":
		n.chosen(i, e)
	case "Network.Address":
		i.address(e.value, e)
	case "Network.Gateway":
		i.gateway(e.value, "", e)
	case "Network.DNS":
		for _, d := range strings.Fields(e.value) {
			i.servers = append(i.servers, e.with(d))
		}
	case "Network.Domains":
		for _, d := range strings.Fields(e.value) {
			i.search = append(i.search, e.with(d))
		}
	case "Network.DHCP":
		n.dhcp(i, e)
	case "Network.IPv6AcceptRA":
		i.dynamic("auto", e)
	case "Network.VLAN":
		for _, v := range strings.Fields(e.value) {
			d := n.iface(v, e.place)
			if d.vlan == nil {
				d.vlan = &vlanLink{}
			}
			d.replace(&d.vlan.link, e.with(i.name))
		}
	case "Link.MTUBytes":
		i.replace(&i.mtu, e)
	case "Link.MACAddress":
		i.replace(&i.mac, e)
	default:
		networkdRest(i, e)
	}
}

// chosen reads PrimarySlave and ActiveSlave, which make an option of the bond's.
func (n *networkd) chosen(i *iface, e setting) {
	option := map[string]string{"Network.PrimarySlave": "primary", "Network.ActiveSlave": "active_slave"}[e.key]
	switch on, _ := switched(e.value); on {
	case "1":
		i.portOption(option, i.name, e)
	case "0":
	default:
		i.lost(e, "neither true nor false")
	}
}

func (n *networkd) dhcp(i *iface, e setting) {
	switch word := strings.ToLower(e.value); word {
	case "ipv4":
		i.address("dhcp", e)
	case "ipv6":
		i.lost(e, noDHCPv6)
	case "both":
		i.lost(e, noDHCPv6)
		i.address("dhcp", e)
	default:
		on, _ := switched(word)
		if on == "1" {
			i.lost(e, noDHCPv6)
		}
		i.dynamic("dhcp", e)
	}
}

func (n *networkd) route(i *iface, s *iniSection) {
	to := route{setting: setting{s.place, "Route", s.show()}, to: "default"}
	for _, e := range s.entries {
		full := setting{e.place, "Route." + e.key, e.value}
		switch e.key {
		case "Destination":
			to.to = e.value
		case "Gateway":
			to.via = e.value
		case "Metric":
			to.metric = e.value
		case "Table":
			to.inTable(full)
		default:
			i.lost(full, noEqual)
		}
	}
	i.routes = append(i.routes, to)
}

func (n *networkd) addressSection(i *iface, s *iniSection) {
	for _, e := range s.entries {
		key := e.key
		e.key = "Address." + key
		if key == "Address" {
			i.address(e.value, e)
		} else {
			i.lost(e, noEqual)
		}
	}
}
