package migrate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/config"
)

// What a configuration has at most.
const (
	maxBonds   = 64
	maxEntries = 4096 // slaves, addresses, routes
	maxServers = 16
	maxSearch  = 32
)

var tooMany = fmt.Sprintf("at most %d are possible", maxEntries)

// builder makes a configuration of what was read.
type builder struct {
	*reader
	slaveOf map[string]string // bonds by slave
	vlansOn map[string][]*iface
	// mastered are those that name a bond as theirs.
	mastered map[string][]*iface
	done     map[*iface]bool
	// origin is where parts of the bond under way come from: see settle.
	origin map[string]setting
}

// build makes the configuration, and lists what is not in it.
func (r *reader) build() *config.File {
	b := builder{reader: r, slaveOf: map[string]string{}, vlansOn: map[string][]*iface{}, mastered: map[string][]*iface{}, done: map[*iface]bool{}}
	for _, i := range slices.Clone(r.interfaces) {
		if i.master.given() && r.byName[i.master.value] == nil {
			r.iface(i.master.value, i.master.place).bond = true
			r.lost(i.master, "the files say nothing else of the bond")
		}
		b.mastered[i.master.value] = append(b.mastered[i.master.value], i)
		if i.vlan != nil && i.vlan.link.value != i.name {
			b.vlansOn[i.vlan.link.value] = append(b.vlansOn[i.vlan.link.value], i)
		}
	}
	f := &config.File{Version: config.Version}
	for _, i := range r.interfaces {
		switch {
		case !i.bond:
		case len(f.Bonds) == maxBonds:
			b.done[i] = true
			r.lost(setting{i.place, "bond", i.name}, fmt.Sprintf("at most %d bonds are possible", maxBonds))
		default:
			b.bond(f, i)
		}
	}
	for _, i := range r.interfaces {
		switch {
		case b.done[i]:
		case b.slaveOf[i.name] != "":
			b.slaveRest(i)
		default:
			r.notBond(i.place, i.kind+" "+i.name)
		}
	}
	for _, m := range r.mentions {
		if slices.ContainsFunc(m.names, func(name string) bool { return b.slaveOf[name] != "" || r.byName[name] != nil && r.byName[name].bond }) {
			r.lost(m.setting, m.reason)
		} else if !m.listed {
			r.notBond(m.place, strings.TrimSpace(m.key+" "+m.value))
		}
	}
	return f
}

func (b *builder) bond(f *config.File, i *iface) {
	b.done[i] = true
	b.notices = append(b.notices, i.rest...)
	if reason := badName(i.name); reason != "" {
		b.lost(setting{i.place, "bond", i.name}, reason)
		return
	}
	out := config.Bond{Name: i.name, Slaves: []config.Slave{}}
	b.origin = map[string]setting{"mtu": i.mtu}
	if i.master.given() {
		b.lost(i.master, "a bond is no slave of another here")
	}
	options := i.options
	for _, s := range b.slavesOf(i) {
		b.origin["slave "+s.value] = s
		slave, chosen := b.slave(i, s)
		out.Slaves = append(out.Slaves, slave)
		for _, o := range chosen {
			i.option(o.name, o.text, o.from)
		}
		options = i.options
	}
	if len(out.Slaves) == 0 {
		b.lost(setting{i.place, "bond", i.name}, "no slave of it is named: name them in the file")
	}
	mode, options := b.mode(options)
	out.Mode = config.Mode(mode)
	names := make([]string, len(out.Slaves))
	for n, s := range out.Slaves {
		names[n] = s.Name
	}
	options = b.queues(options, out.Slaves)
	for _, o := range options {
		b.origin["options."+o.name] = o.from
	}
	out.Options = b.check(i, mode, options, names)
	if len(out.Options) == 0 {
		out.Options = nil
	}
	out.HardwareAddress = b.mac(i.mac)
	out.MTU = b.mtu(i.mtu)
	out.Addresses = b.addresses(i, "")
	out.Routes = b.routes(i, "")
	out.DNS = b.dns(nil, i)
	out.VLANs = b.vlans(i, &out, "", 0)
	b.settle(i, &out)
	f.Bonds = append(f.Bonds, out)
}

// badName says what is wrong with the name of an interface, "" for nothing.
func badName(name string) string {
	switch {
	case name == "" || len(name) > 15 || name == "." || name == ".." || strings.ContainsAny(name, "/: \t\n\v\f\r"):
		return "no name of an interface: 1 to 15 bytes without slash, colon and white space"
	}
	return ""
}

// slavesOf returns the slaves that the bond names, and those that name it.
func (b *builder) slavesOf(i *iface) []setting {
	var list []setting
	add := func(s setting) {
		reason := badName(s.value)
		switch of := b.slaveOf[s.value]; {
		case reason != "":
		case of == i.name: // said twice
			return
		case of != "":
			reason = "it is a slave of " + of
		case b.byName[s.value] != nil && b.byName[s.value].bond:
			reason = "a bond is no slave of another here"
		case len(list) == maxEntries:
			reason = tooMany
		}
		if reason != "" {
			b.lost(s, reason)
			return
		}
		b.slaveOf[s.value] = i.name
		list = append(list, s)
	}
	for _, m := range i.members {
		add(m)
	}
	for _, other := range b.mastered[i.name] {
		if other.pattern {
			b.lost(other.master.with(other.name), "slaves are named one by one, not by a pattern")
			b.done[other] = true
			b.slaveRest(other)
			continue
		}
		add(other.master.with(other.name))
	}
	return list
}

// slave makes a slave with what was set for it. chosen are options of the bond.
func (b *builder) slave(bond *iface, s setting) (out config.Slave, chosen []optionSetting) {
	out.Name = s.value
	i := b.byName[s.value]
	if i == nil {
		return out, nil
	}
	for _, o := range i.port {
		b.origin[s.value+" "+o.name] = o.from
		v, err := int64(0), error(nil)
		switch o.name {
		case "prio":
			v, err = number(o.text, math.MinInt32, math.MaxInt32)
			out.Prio = int32(v)
		case "queue_id":
			v, err = number(o.text, 0, maxQueueID)
			out.QueueID = uint16(v)
		case "actor_port_prio":
			v, err = number(o.text, 1, math.MaxUint16)
			out.ActorPortPrio = uint16(v)
		default:
			chosen = append(chosen, o)
		}
		if err != nil {
			b.lost(o.from, err.Error())
		}
	}
	// The bond gives its slaves its MTU anyway.
	if bond.mtu.given() && bond.mtu.value == i.mtu.value {
		i.mtu = setting{}
	}
	return out, chosen
}

// maxQueueID is bonding's.
const maxQueueID = 16

// queues takes SLAVE:ID out of the options of a bond, and sets it at the slaves.
func (b *builder) queues(options []optionSetting, slaves []config.Slave) []optionSetting {
	var rest []optionSetting
	for _, o := range options {
		if o.name != "queue_id" {
			rest = append(rest, o)
			continue
		}
		for _, word := range splitList(o.text) {
			name, text, _ := strings.Cut(word, ":")
			n := slices.IndexFunc(slaves, func(s config.Slave) bool { return s.Name == name })
			id, err := number(text, 0, maxQueueID)
			switch {
			case n < 0:
				b.lost(o.from.with(word), "no slave has the name")
			case err != nil:
				b.lost(o.from.with(word), err.Error())
			default:
				slaves[n].QueueID = uint16(id)
				b.origin[name+" queue_id"] = o.from.with(word)
			}
		}
	}
	return rest
}

// slaveRest lists what cannot be carried of a slave.
func (b *builder) slaveRest(i *iface) {
	b.notices = append(b.notices, i.rest...)
	for _, s := range append([]setting{i.mac, i.mtu}, append(i.servers, i.search...)...) {
		if s.given() {
			b.lost(s, "a slave has none of its own: it is the bond's matter")
		}
	}
	for _, a := range i.addresses {
		b.lost(a, "the addresses of slaves are the host's")
	}
	for _, to := range i.routes {
		b.lost(to.setting, "the routes of slaves are the host's")
	}
	if i.vlan != nil { // its own tag is the host's matter
		b.notBond(i.place, i.kind+" "+i.name)
	}
}

// mode takes the mode out of the options.
func (b *builder) mode(options []optionSetting) (mode bonding.Mode, rest []optionSetting) {
	for _, o := range options {
		if o.name != "mode" {
			rest = append(rest, o)
			continue
		}
		m, err := bonding.ParseMode(o.text)
		if err != nil {
			b.lost(o.from, "allowed are "+strings.Join(bonding.ModeNames(), ", "))
		}
		mode = m
	}
	return mode, rest
}

// maxTags is how many tags the frames of a VLAN device have at most.
const maxTags = 2

// vlans makes the VLAN devices on an interface; their name servers are the
// bond's.
func (b *builder) vlans(on *iface, bond *config.Bond, path string, depth int) []config.VLAN {
	var out []config.VLAN
	seen := map[uint16]bool{}
	for _, i := range b.vlansOn[on.name] {
		if b.done[i] || b.slaveOf[i.name] != "" {
			continue
		}
		b.done[i] = true
		v, ok := b.vlan(i)
		if ok && seen[v.ID] {
			b.lost(i.vlan.id, "the VLAN is there already")
			ok = false
		}
		if depth == maxTags && ok {
			b.lost(i.vlan.link, "at most two tags are possible")
			ok = false
		}
		b.notices = append(b.notices, i.rest...)
		if !ok {
			continue
		}
		seen[v.ID] = true
		name := path + "." + strconv.Itoa(int(v.ID))
		if i.name != bond.Name+name {
			b.notices = append(b.notices, setting{i.place, i.kind, i.name}.notice(Changed, "the device is named "+bond.Name+name))
		}
		for _, s := range []setting{i.mac, i.mtu} {
			if s.given() && s.value != on.mtu.value {
				b.lost(s, "a VLAN device has the bond's")
			}
		}
		b.origin[name] = setting{i.place, i.kind, i.name}
		v.Addresses = b.addresses(i, name)
		v.Routes = b.routes(i, name)
		bond.DNS = b.dns(bond.DNS, i)
		v.VLANs = b.vlans(i, bond, name, depth+1)
		out = append(out, v)
	}
	return out
}

// vlan makes a VLAN device without what is on it.
func (b *builder) vlan(i *iface) (out config.VLAN, ok bool) {
	id, err := number(i.vlan.id.value, 1, 4094)
	if err != nil {
		s := i.vlan.id
		if !s.given() {
			s = setting{i.place, i.kind, i.name}
		}
		b.lost(s, "the number of the VLAN: "+err.Error())
		return out, false
	}
	out.ID = uint16(id)
	switch p := i.vlan.protocol; strings.ToLower(p.value) {
	case "", "802.1q":
	case "802.1ad":
		out.Protocol = "802.1ad"
	default:
		b.lost(p, "allowed are 802.1Q, 802.1ad")
	}
	if p := i.vlan.priority; p.given() {
		v, err := number(p.value, 0, 7)
		if err != nil {
			b.lost(p, err.Error())
		}
		out.Priority = uint8(v)
	}
	return out, true
}
