package migrate

import (
	"slices"
	"strings"
)

// dumpNames are names of ip -json that differ from those of its arguments.
var dumpNames = map[string]string{
	"ad_lacp_rate":     "lacp_rate",
	"ad_lacp_active":   "lacp_active",
	"num_peer_notif":   "num_grat_arp",
	"peer_notif_delay": "peer_notify_delay",
}

// dump reads what ip -details -json link show or address show tells. That is a
// state: what was set cannot be told from what is so by default, and defaults are
// left out.
func (r *reader) dump(s Source) error {
	root, err := parseJSON(s.Text)
	if err != nil {
		return err
	}
	for _, item := range root.items {
		if len(item.pairs) > 0 {
			ipDump{r, s.Name}.device(item)
		}
	}
	return nil
}

type ipDump struct {
	*reader
	source string
}

func (d ipDump) at(p pair) setting { return setting{place{d.source, p.line}, p.key, p.value.raw()} }

func (d ipDump) device(item *node) {
	name := item.get("ifname").value()
	info := item.get("linkinfo")
	kind := info.get("info_kind").value()
	i := d.iface(name, place{d.source, item.line})
	i.dump = true
	i.bond = i.bond || kind == "bond"
	if kind != "" {
		i.kind = kind
	}
	if data := info.get("info_data"); data != nil {
		d.data(i, kind, data, item)
	}
	if data := info.get("info_slave_data"); data != nil && info.get("info_slave_kind").value() == "bond" {
		d.port(i, data)
	}
	for _, p := range item.pairs {
		s := d.at(p)
		switch p.key {
		case "master":
			if info.get("info_slave_kind").value() == "bond" || info.get("info_slave_kind") == nil {
				i.replace(&i.master, s)
			} else {
				d.bridged(s.with(name), name)
			}
		case "mtu":
			if kind == "bond" {
				i.mtu = s
			}
		case "address":
			if kind == "bond" {
				i.mac = s
			}
		case "addr_info":
			for _, a := range p.value.items {
				d.address(i, a)
			}
		}
	}
}

// bondState are the keys of a bond that tell what it does, not how it is set.
var bondState = []string{"ad_info", "active_slave", "ad_partner_mac"}

func (d ipDump) data(i *iface, kind string, data, item *node) {
	switch kind {
	case "vlan":
		i.vlan = &vlanLink{}
		for _, p := range append([]pair{{item.line, "link", item.get("link")}}, data.pairs...) {
			switch p.key {
			case "link":
				i.vlan.link = setting{place{d.source, p.line}, "link", p.value.value()}
			case "id":
				i.vlan.id = d.at(p)
			case "protocol":
				i.vlan.protocol = d.at(p)
			case "flags":
			case "egress_qos":
				d.egress(i, p)
			default:
				i.lost(d.at(p), noEqual)
			}
		}
	case "bond":
		for _, p := range data.pairs {
			d.option(i, p)
		}
	}
}

// egress reads a map of priorities, of which that of 0 is the device's.
func (d ipDump) egress(i *iface, p pair) {
	for _, item := range p.value.items {
		s := setting{place{d.source, item.line}, p.key, item.show()}
		if to := item.get("to").value(); item.get("from").value() == "0" && to != "" {
			i.vlan.priority = s.with(to)
		} else {
			i.lost(s, "there is one priority for all frames")
		}
	}
}

func (d ipDump) option(i *iface, p pair) {
	name := p.key
	if other := dumpNames[name]; other != "" {
		name = other
	}
	k, ok := ipKeys[name]
	s := d.at(p)
	switch {
	case slices.Contains(bondState, name):
	case !ok:
		i.lost(s, noEqual)
	case s.value == "null" || s.value == "": // no primary, no target
	case k.option == "ad_actor_system" && s.value == "00:00:00:00:00:00": // the bond's
	default:
		i.read(k, s)
	}
}

// port reads what a slave is set to; the rest tells its state.
func (d ipDump) port(i *iface, data *node) {
	for _, p := range data.pairs {
		option, ok := ipPortKeys[p.key]
		usual := map[string]string{"queue_id": "0", "prio": "0", "actor_port_prio": "255"}[p.key]
		if s := d.at(p); ok && s.value != usual {
			i.portOption(option, s.value, s)
		}
	}
}

func (d ipDump) address(i *iface, a *node) {
	local, length := a.get("local").value(), a.get("prefixlen").value()
	s := setting{place{d.source, a.line}, "addr_info", local + "/" + length}
	dynamic, _ := switched(a.get("dynamic").value())
	switch {
	case len(a.pairs) == 0 || a.get("scope").value() == "link":
	case dynamic == "1" && strings.Contains(local, ":"):
		i.address("auto", s)
	case dynamic == "1":
		i.address("dhcp", s)
	default:
		i.address(s.value, s)
	}
}
