package migrate

import (
	"slices"
	"strings"
)

// args are the arguments of a command, which are taken off one by one.
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
