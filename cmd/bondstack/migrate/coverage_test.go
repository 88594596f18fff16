package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/config"
)

// coverage is what a format has for the options: keys, by the format's names, in
// a file that sample makes, or a whole file where there is more to it, or none.
type coverage struct {
	keys      map[string]key
	sample    func(mode bonding.Mode, key, value string) string
	elsewhere map[string]string // a file by option
	absent    map[string]string
}

func linuxSample(form string) func(bonding.Mode, string, string) string {
	return func(m bonding.Mode, key, value string) string { return fmt.Sprintf(form, m, key, value) }
}

// teamdSample makes nested objects of a key's path.
func teamdSample(m bonding.Mode, key, value string) string {
	runner := map[bonding.Mode]string{bonding.BalanceRR: "roundrobin", bonding.ActiveBackup: "activebackup", bonding.BalanceXOR: "loadbalance",
		bonding.Broadcast: "broadcast", bonding.IEEE8023AD: "lacp"}[m]
	path := strings.Split(key, ".")
	last := path[len(path)-1]
	if !strings.HasPrefix(value, "[") {
		value = `"` + value + `"`
	}
	inner := fmt.Sprintf(`%q: %s`, last, value)
	switch {
	case key == "runner.name":
		return fmt.Sprintf(`{"device": "b", "ports": {"eth1": {}}, "runner": {%s}}`, inner)
	case path[0] == "runner":
		return fmt.Sprintf(`{"device": "b", "ports": {"eth1": {}}, "runner": {"name": %q, %s}}`, runner, inner)
	case path[0] == "link_watch":
		inner = fmt.Sprintf(`"name": %q, %s`, path[1], inner)
	}
	return fmt.Sprintf(`{"device": "b", "ports": {"eth1": {}}, "runner": {"name": %q}, %q: {%s}}`, runner, path[0], inner)
}

const netdev = "[NetDev]\nName=b\nKind=bond\n[Bond]\nMode=%s\n%s=%s\n"

var covered = map[string]coverage{
	"netplan": {netplanKeys, func(m bonding.Mode, key, value string) string {
		head := "network:\n  bonds:\n    b:\n      interfaces: [eth1]\n      parameters:\n"
		if key != "mode" { // YAML has each key once
			head += "        mode: " + m.String() + "\n"
		}
		return head + "        " + key + ": " + value + "\n"
	}, nil, netplanAbsent},
	"networkd": {networkdKeys, linuxSample(netdev), map[string]string{
		"primary":      "[Match]\nName=eth1\n[Network]\nBond=b\nPrimarySlave=yes\n",
		"active_slave": "[Match]\nName=eth1\n[Network]\nBond=b\nActiveSlave=yes\n",
	}, networkdAbsent},
	"ifcfg":    {linuxKeys, linuxSample("DEVICE=b\nBONDING_SLAVE_0=eth1\nBONDING_OPTS='mode=%s %s=%s'\n"), nil, absent(noKey)},
	"ifupdown": {linuxKeys, linuxSample("iface b\n  bond-slaves eth1\n  bond-mode %s\n  bond-%s %s\n"), nil, absent(noKey)},
	"teamd": {teamdKeys, teamdSample, map[string]string{
		"arp_validate":      `{"device": "b", "runner": {"name": "activebackup"}, "link_watch": {"name": "arp_ping", "interval": 100, "validate_active": true}}`,
		"monitor_rule":      `{"device": "b", "runner": {"name": "activebackup"}, "link_watch": [{"name": "ethtool"}, {"name": "arp_ping", "interval": 100}], "link_watch_policy": "all"}`,
		"queue_id":          `{"device": "b", "ports": {"eth1": {"queue_id": 1}}}`,
		"packets_per_slave": `{"device": "b", "runner": {"name": "random"}}`,
	}, teamdAbsent},
	"nmstate": {nmstateKeys, linuxSample("interfaces:\n- name: b\n  type: bond\n  link-aggregation:\n    mode: %s\n    port: [eth1]\n    options: {%s: \"%s\"}\n"), map[string]string{
		"mode":     "interfaces: [{name: b, type: bond, link-aggregation: {mode: 3}}]",
		"queue_id": "interfaces: [{name: b, type: bond, link-aggregation: {ports-config: [{name: eth1, queue-id: 3}]}}]",
	}, nmstateAbsent},
	"ip": {ipKeys, linuxSample("ip link add b type bond\nip link set eth1 master b\nip link set b type bond mode %s %s %s\n"), map[string]string{
		"queue_id": "ip link add b type bond\nip link set eth1 master b\nip link set eth1 type bond_slave queue_id 1\n",
	}, ipAbsent},
}

// values are enough that each option has one among them that is not its default.
var values = []string{"0", "1", "2", "3", "100", "fast", "any", "all", "failure", "active", "10.9.9.9", "fd00::9", "02:00:00:00:00:99",
	"eth1", "eth1:1", "bandwidth", "by_active", `["eth", "ip", "l4"]`, "balance-xor", "broadcast", "off", "off"}

// carries reports whether a file has an option at another value than its default.
func carries(format, text, option string) bool {
	sources := []Source{{"b.x", []byte(text)}}
	if format == "networkd" && !strings.Contains(text, "[NetDev]") {
		sources = append(sources, Source{"a.x", fmt.Appendf(nil, netdev, "1", "MIIMonitorSec", "1")})
	}
	r, err := Import(format, sources)
	if err != nil || len(r.Config.Bonds) != 1 {
		return false
	}
	b := r.Config.Bonds[0]
	switch option {
	case "mode":
		return b.Mode != 0
	case "queue_id":
		return slices.ContainsFunc(b.Slaves, func(s config.Slave) bool { return s.QueueID != 0 })
	case "active_slave":
		return b.Options[option] == "eth1"
	case "use_carrier": // which has one value
		return b.Options[option] == "1"
	}
	text, ok := b.Options[option]
	return ok && !isDefault(bonding.Mode(b.Mode), option, text)
}

// Every option of the table is carried from every format, or the format has no
// key for it, for a reason. An option that is new in the table fails here until
// somebody decides.
func TestEveryOptionOfEveryFormat(t *testing.T) {
	for format := range formats {
		c, ok := covered[format]
		if !ok {
			t.Errorf("format %s is not covered", format)
		}
		for _, option := range bonding.OptionNames() {
			reason, absent := c.absent[option]
			keys := 0
			for name, k := range c.keys {
				if k.option != option {
					continue
				}
				keys++
				if !carriesSome(format, c, name, option) {
					t.Errorf("%s: key %s does not carry %s", format, name, option)
				}
			}
			if text, ok := c.elsewhere[option]; ok {
				keys++
				if !carries(format, text, option) {
					t.Errorf("%s: %s is not carried from\n%s", format, option, text)
				}
			}
			switch {
			case keys == 0 && reason == "":
				t.Errorf("%s: %s has neither a key nor a reason why not", format, option)
			case keys > 0 && absent:
				t.Errorf("%s: %s has a key, and a reason why not: %s", format, option, reason)
			}
		}
		for option := range c.absent {
			if !slices.Contains(bonding.OptionNames(), option) {
				t.Errorf("%s: there is no option %s", format, option)
			}
		}
	}
}

func carriesSome(format string, c coverage, key, option string) bool {
	good := goodFor(option)
	// A format with words of its own takes other values.
	return slices.ContainsFunc(append(slices.Clone(good.values), values...), func(v string) bool {
		return carries(format, c.sample(good.mode, key, v), option)
	})
}

// good is a mode in which an option can be set, and values that are not its
// default.
type good struct {
	mode   bonding.Mode
	values []string
}

var goods = map[string]good{}

func goodFor(option string) good {
	g, ok := goods[option]
	for _, m := range bonding.AvailableModes() {
		if ok {
			break
		}
		g.mode = m
		for _, v := range values {
			if accepts(m, option, v) && !isDefault(m, option, v) {
				g.values = append(g.values, v)
			}
		}
		ok = len(g.values) > 0
	}
	goods[option] = g
	return g
}

// accepts reports whether a bond takes a value; what names slaves it takes by the
// mode.
func accepts(m bonding.Mode, option, value string) bool {
	b, err := tryOptions(m, map[string]string{option: value})
	if err == nil {
		b.Close()
	}
	return err == nil || (option == "active_slave" || option == "queue_id") && !errors.Is(err, bonding.ErrMode)
}

// An option is Linux's, which ip has a name for, or bondstack's own.
func TestOwnOrLinux(t *testing.T) {
	for _, option := range bonding.OptionNames() {
		_, linux := ipNames[option]
		if linux = linux || option == "queue_id"; linux == slices.Contains(own, option) {
			t.Errorf("%s: is it Linux's (%t) or bondstack's own?", option, linux)
		}
	}
}
