package migrate

import (
	"fmt"
	"strings"
)

// place is where in the files something stands.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// setting is a key with its value.
type setting struct {
	place
	key, value string
}

func (s setting) given() bool { return s.key != "" }

func (s setting) notice(kind Kind, reason string) Notice {
	return Notice{kind, s.file, s.line, s.key, shorten(s.value), reason}
}

// with returns the setting with another value: what a reader made of it.
func (s setting) with(value string) setting {
	s.value = value
	return s
}

// optionSetting is a setting that is an option of bonding.
type optionSetting struct {
	name string // Linux's
	text string // as Linux takes it
	from setting
}

// iface is what files say of an interface, whatever it is. Which of them are
// bonds, slaves of one or VLANs on one is known once all is read.
type iface struct {
	place
	name string
	// kind is what the interface is, in the format's words, for people.
	kind string
	bond bool
	// dump: the options are a listing of all, defaults included.
	dump bool

	options []optionSetting
	// members are the slaves that a bond names, master the bond that a slave
	// names, port what is set for it as a slave.
	members []setting
	master  setting
	port    []optionSetting

	vlan *vlanLink

	mac, mtu  setting
	addresses []setting // CIDR, or dhcp or auto
	routes    []route
	servers   []setting
	search    []setting

	// pattern: name stands for several interfaces that are not known here.
	pattern bool

	// rest cannot be carried whatever the interface is.
	rest []Notice
}

// vlanLink says that an interface is a VLAN device.
type vlanLink struct {
	link, id, protocol, priority setting
}

// route is one route. to is a prefix or default.
type route struct {
	setting
	to, via, metric string
	// table is that of routes, if it is not the usual one.
	table setting
}

// inTable notes the table of a route.
func (to *route) inTable(s setting) {
	if s.value != "main" && s.value != "254" && s.value != "0" && s.value != "" {
		to.table = s
	}
}

// reader collects what the files of one format say.
type reader struct {
	interfaces []*iface
	byName     map[string]*iface
	notices    []Notice
	mentions   []mention
}

// mention is a part that is lost if it names a bond or a slave, and otherwise is
// about something else.
type mention struct {
	setting
	names  []string
	reason string
	// listed: the something else is listed by itself already.
	listed bool
}

// bridged lists a port of a bridge, which is lost if it is a bond.
func (r *reader) bridged(s setting, port string) {
	r.mentions = append(r.mentions, mention{s, []string{port}, noBridges, true})
}

// iface returns an interface by name, made where it was not named yet.
func (r *reader) iface(name string, at place) *iface {
	if i := r.byName[name]; i != nil {
		return i
	}
	i := &iface{place: at, name: name, kind: "interface"}
	r.interfaces = append(r.interfaces, i)
	if r.byName == nil {
		r.byName = map[string]*iface{}
	}
	r.byName[name] = i
	return i
}

// lost lists a setting that has no equal, whatever it is of.
func (r *reader) lost(s setting, reason string) {
	r.notices = append(r.notices, s.notice(Lost, reason))
}

// notBond lists a part about something else.
func (r *reader) notBond(at place, what string) {
	r.notices = append(r.notices, Notice{Kind: NotBond, File: at.file, Line: at.line, Key: shorten(what)})
}

// lost lists a setting of the interface that has no equal, if the interface is
// a bond's matter.
func (i *iface) lost(s setting, reason string) {
	i.rest = append(i.rest, s.notice(Lost, reason))
}

// host lists a setting that is the host's matter.
func (i *iface) host(s setting) { i.rest = append(i.rest, s.notice(Host, "")) }

// replace puts s in place of an earlier setting.
func (i *iface) replace(old *setting, s setting) {
	if old.given() && old.value != s.value {
		i.rest = append(i.rest, old.notice(Overridden, "set again at "+s.place.String()))
	}
	*old = s
}

// option sets an option of the bond. A later one overrides; a list that begins
// with + adds.
func (i *iface) option(name, text string, from setting) {
	i.options = i.set(i.options, optionSetting{name, text, from})
}

// portOption sets an option of the interface as a slave.
func (i *iface) portOption(name, text string, from setting) {
	i.port = i.set(i.port, optionSetting{name, text, from})
}

func (i *iface) set(options []optionSetting, o optionSetting) []optionSetting {
	for n := range options {
		old := &options[n]
		switch {
		case old.name != o.name:
		case isTargets(o.name) && strings.HasPrefix(o.text, "+"):
			old.text += "," + o.text
			return options
		default:
			i.replace(&setting{old.from.place, old.from.key, old.text}, o.from.with(o.text))
			*old = o
			return options
		}
	}
	return append(options, o)
}

func isTargets(option string) bool { return option == "arp_ip_target" || option == "ns_ip6_target" }

// address adds an address; of, the setting it comes from.
func (i *iface) address(text string, of setting) {
	i.addresses = append(i.addresses, of.with(text))
}

// gateway adds a default route.
func (i *iface) gateway(via, metric string, of setting) {
	i.routes = append(i.routes, route{setting: of, to: "default", via: via, metric: metric})
}

// dynamic adds dhcp or auto where a switch is on.
func (i *iface) dynamic(word string, of setting) {
	switch on, _ := switched(of.value); on {
	case "1":
		i.address(word, of)
	case "0", "":
	default:
		i.lost(of, "neither true nor false")
	}
}

// yes reads a switch. What is neither on nor off is lost.
func (i *iface) yes(s setting) bool {
	on, _ := switched(s.value)
	if on != "1" && on != "0" {
		i.lost(s, "neither yes nor no")
	}
	return on == "1"
}

// read sets the option of a key.
func (i *iface) read(k key, s setting) {
	text, err := k.text(s.value)
	if err != nil {
		i.lost(s, err.Error())
		return
	}
	i.option(k.option, text, s)
}

// items returns a list's items. What is no list is lost.
func (i *iface) items(v *node, s setting) []*node {
	if v.kind != list && (v.kind != scalar || v.text != "") {
		i.lost(s, "a list is expected")
	}
	return v.items
}

// fields returns a table's pairs. What is no table is lost.
func (i *iface) fields(v *node, s setting) []pair {
	if v.kind != table && (v.kind != scalar || v.text != "") {
		i.lost(s, "keys with values are expected")
	}
	return v.pairs
}
