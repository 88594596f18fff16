package migrate

import (
	"slices"
	"strings"

	"bondstack/bonding"
)

// linuxKeys are the names that sysfs and the module's parameters have, for the
// formats that hand options on by them. What Linux gets later is read too.
var linuxKeys = func() map[string]key {
	keys := map[string]key{"num_unsol_na": {"num_grat_arp", nil}}
	for _, name := range bonding.OptionNames() {
		if !slices.Contains(own, name) {
			keys[name] = linuxKey(name)
		}
	}
	return keys
}()

func linuxKey(name string) key {
	switch {
	case isTargets(name):
		return key{name, commas}
	case slices.Contains(switches, name):
		return key{name, switched}
	}
	return key{name, nil}
}

// switches are the options that are on or off.
var switches = []string{"use_carrier", "all_slaves_active", "tlb_dynamic_lb", "lacp_active", "coupled_control",
	"broadcast_neighbor", "lacp_strict"}

// linuxOption sets an option by Linux's name, as sysfs takes it.
func (i *iface) linuxOption(name, value string, s setting) {
	k, ok := linuxKeys[name]
	if !ok {
		i.lost(s, "unknown option")
		return
	}
	i.read(k, s.with(value))
}

// moduleOptions sets options in the form of the module's parameters: words of
// NAME=VALUE.
func (i *iface) moduleOptions(s setting) {
	for _, word := range strings.Fields(s.value) {
		name, value, ok := strings.Cut(word, "=")
		at := setting{s.place, s.key + " " + name, value}
		switch {
		case !ok:
			i.lost(s.with(word), "the form is NAME=VALUE")
		case name == "max_bonds" || name == "tx_queues":
			i.host(at)
		default:
			i.linuxOption(name, value, at)
		}
	}
}
