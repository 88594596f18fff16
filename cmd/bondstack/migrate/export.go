package migrate

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/config"
)

// Script is a sequence of commands.
type Script struct {
	// Commands are lines for a shell.
	Commands []string
	// Left are what the commands do not do, and why: KEY: REASON.
	Left []string
}

// ToIP returns the commands by which Linux makes the bonds of a configuration:
// first the bond with its options, while it has no slaves and is down, then its
// slaves, which must be down before they join, then what is on it. What Linux
// does not have is left. The error is of options that a bond refuses.
func ToIP(f *config.File) (*Script, error) {
	e := exporter{}
	for _, left := range []struct {
		key string
		is  bool
	}{{"log", f.Log != config.Log{}}, {"metrics", f.Metrics != ""}, {"web", f.Web != ""}} {
		e.leave(left.is, left.key, notBonding)
	}
	for i := range f.Bonds {
		if err := e.bond(&f.Bonds[i]); err != nil {
			return nil, fmt.Errorf("bond %s: %w", f.Bonds[i].Name, err)
		}
	}
	return &e.Script, nil
}

const notBonding = "a matter of bondstack run"

type exporter struct{ Script }

// run adds a command. Words are quoted where a shell would change them.
func (e *exporter) run(words ...string) {
	for i, w := range words {
		words[i] = quote(w)
	}
	e.Commands = append(e.Commands, strings.Join(words, " "))
}

// leave adds what is not done, where it is asked for.
func (e *exporter) leave(is bool, key, reason string) {
	if is {
		e.Left = append(e.Left, key+": "+reason)
	}
}

// quote makes a word safe for a shell.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.:@%+,-/=", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (e *exporter) bond(b *config.Bond) error {
	words, active, err := e.options(b)
	if err != nil {
		return err
	}
	add := []string{"ip", "link", "add", b.Name}
	if b.HardwareAddress != "" {
		add = append(add, "address", b.HardwareAddress)
	}
	if b.MTU != 0 {
		add = append(add, "mtu", strconv.Itoa(int(b.MTU)))
	}
	e.run(append(append(add, "type", "bond", "mode", b.Mode.String()), words...)...)
	for _, s := range b.Slaves {
		e.slave(b, s)
	}
	e.run("ip", "link", "set", b.Name, "up")
	if active != "" {
		e.run("ip", "link", "set", b.Name, "type", "bond", "active_slave", active)
	}
	e.on(b.Name, b.Addresses, b.Routes)
	e.vlans(b.Name, b.VLANs)
	e.leaveOfBond(b)
	return nil
}

// leaveOfBond adds what a bond has that is not bonding.
func (e *exporter) leaveOfBond(b *config.Bond) {
	for _, left := range []struct {
		key string
		is  bool
	}{
		{"netns", b.NetNS != ""}, {"queues", b.Queues != 0}, {"exclusive", b.Exclusive != nil},
		{"set_hardware_addresses", b.SetAddresses}, {"require_slaves", b.RequireSlaves}, {"serve", len(b.Serve) > 0},
		{"forwards", len(b.Forwards) > 0}, {"socks", b.Socks != ""}, {"control", b.Control != ""}, {"host_name", b.HostName != ""},
		{"socks_users", b.SocksUsers != ""}, {"flow_limit", b.FlowLimit != 0}, {"tcp_idle", b.TCPIdle != 0}, {"udp_idle", b.UDPIdle != 0},
		{"tx_queue", b.TxQueue != 0}, {"user_network", b.UserNetwork != ""},
	} {
		e.leave(left.is, b.Name+": "+left.key, notBonding)
	}
	e.leave(b.DNS != nil, b.Name+": dns", "a matter of the host's resolver")
}

// ipNames are what ip calls the options.
var ipNames = func() map[string]string {
	names := map[string]string{}
	for name, k := range ipKeys {
		if names[k.option] == "" || name == k.option {
			names[k.option] = name
		}
	}
	return names
}()

// options returns the options as ip takes them, in the order of the table, and
// the active slave, which can be chosen only once it is one.
func (e *exporter) options(b *config.Bond) (words []string, active string, err error) {
	values := maps.Clone(map[string]string(b.Options))
	if values == nil {
		values = map[string]string{}
	}
	if alias, ok := values["num_unsol_na"]; ok {
		delete(values, "num_unsol_na")
		values["num_grat_arp"] = alias
	}
	active = values["active_slave"]
	delete(values, "active_slave")
	trial, err := tryOptions(bonding.Mode(b.Mode), values)
	if err != nil {
		return nil, "", err
	}
	defer trial.Close()
	// Linux does not watch the links by itself, bondstack does.
	if _, ok := values["miimon"]; !ok {
		if values["miimon"], err = trial.Option("miimon"); err != nil || values["miimon"] == "0" {
			delete(values, "miimon")
		}
	}
	arp, err := trial.Option("arp_interval")
	if err != nil {
		return nil, "", err
	}
	mii := values["miimon"] != "" && canonical(trial, "miimon", "") != "0"
	for _, option := range bonding.OptionNames() {
		text, ok := values[option]
		switch {
		case !ok:
		case option == "arp_interval" && mii && arp != "0", option == "arp_validate" && mii && ipValue(option, canonical(trial, option, text)) != "none":
			e.leave(true, b.Name+": options."+option, "Linux refuses it beside miimon")
		case slices.Contains(delays, option) && !mii:
			e.leave(true, b.Name+": options."+option, "Linux refuses it without miimon")
		case slices.Contains(own, option):
			e.leave(true, b.Name+": options."+option, ownReason)
		default:
			words = append(words, ipNames[option], ipValue(option, canonical(trial, option, text)))
		}
	}
	return words, active, nil
}

// ipValue returns a value in the words of ip, which has its own for switches.
func ipValue(option, text string) string {
	on, _ := switched(text)
	switch option {
	case "use_carrier", "all_slaves_active", "tlb_dynamic_lb":
		return on
	case "lacp_active", "coupled_control", "broadcast_neighbor", "lacp_strict":
		return map[string]string{"0": "off", "1": "on"}[on]
	}
	return text
}

func (e *exporter) slave(b *config.Bond, s config.Slave) {
	e.run("ip", "link", "set", s.Name, "down")
	e.run("ip", "link", "set", s.Name, "master", b.Name)
	key := b.Name + ": slave " + s.Name + ": "
	var port []string
	for _, o := range []struct {
		name  string
		value int
		modes []bonding.Mode // in which Linux takes it; nil: all
	}{
		{"prio", int(s.Prio), []bonding.Mode{bonding.ActiveBackup, bonding.BalanceTLB, bonding.BalanceALB}},
		{"queue_id", int(s.QueueID), nil},
		{"actor_port_prio", int(s.ActorPortPrio), []bonding.Mode{bonding.IEEE8023AD}},
	} {
		switch allowed := o.modes == nil || slices.Contains(o.modes, bonding.Mode(b.Mode)); {
		case o.value != 0 && allowed:
			port = append(port, o.name, strconv.Itoa(o.value))
		case o.value != 0:
			e.leave(true, key+o.name, "Linux refuses it in mode "+b.Mode.String())
		}
	}
	if len(port) > 0 {
		e.run(append([]string{"ip", "link", "set", s.Name, "type", "bond_slave"}, port...)...)
	}
	e.leave(s.Kind != "" && s.Kind != config.DefaultKind, key+"kind "+s.Kind, "a matter of bondstack run")
	e.leave(s.Weight != 0, key+"weight", ownReason)
	e.leave(s.Disabled, key+"disabled", ownReason)
}

// on adds addresses and routes of a device.
func (e *exporter) on(device string, addresses []string, routes []config.Route) {
	for _, a := range addresses {
		switch a {
		case "dhcp":
			e.leave(true, device+": addresses dhcp", "run a DHCP client on the device")
		case "auto":
			e.leave(true, device+": addresses auto", "Linux does so where net.ipv6.conf.NAME.accept_ra is on")
		default:
			e.run("ip", "addr", "add", a, "dev", device)
		}
	}
	for _, r := range routes {
		words := []string{"ip", "route", "add", r.To}
		if of6(r) {
			words = []string{"ip", "-6", "route", "add", r.To}
		}
		if r.Via != "" {
			words = append(words, "via", r.Via)
		}
		words = append(words, "dev", device)
		if r.Metric != 0 {
			words = append(words, "metric", strconv.FormatUint(uint64(r.Metric), 10))
		}
		e.run(words...)
	}
}

// of6 reports whether a route is of IPv6.
func of6(r config.Route) bool {
	for _, text := range []string{r.Via, strings.Split(r.To, "/")[0]} {
		if a, err := netip.ParseAddr(text); err == nil {
			return a.Is6()
		}
	}
	return false
}

func (e *exporter) vlans(on string, list []config.VLAN) {
	for _, v := range list {
		name := on + "." + strconv.Itoa(int(v.ID))
		words := []string{"ip", "link", "add", "link", on, "name", name, "type", "vlan"}
		if v.Protocol != "" {
			words = append(words, "protocol", v.Protocol)
		}
		words = append(words, "id", strconv.Itoa(int(v.ID)))
		if v.Priority != 0 {
			words = append(words, "egress-qos-map", "0:"+strconv.Itoa(int(v.Priority)))
		}
		e.run(words...)
		e.leave(len(name) > 15, name, "the name is too long for Linux: give another")
		e.run("ip", "link", "set", name, "up")
		e.on(name, v.Addresses, v.Routes)
		e.vlans(name, v.VLANs)
	}
}

// usualPortPrio is what Linux and bondstack begin with.
const usualPortPrio = 255

// FromStatus makes the configuration of a running bond from its status, which
// has no addresses, routes, VLAN devices and services. Options that have their
// defaults are left out.
func FromStatus(st *bonding.Status) *config.File {
	b := config.Bond{Name: st.Name, Mode: config.Mode(st.Mode), HardwareAddress: st.MACAddress, MTU: st.MTU, Options: config.Options{}}
	for name, text := range st.Options {
		fields := strings.Fields(text)
		switch {
		case name == "mode" || len(fields) == 0:
			continue
		case isTargets(name):
			text = strings.Join(fields, ",")
		default:
			text = fields[0]
		}
		if !isDefault(st.Mode, name, text) {
			b.Options[name] = text
		}
	}
	for _, s := range st.Slaves {
		slave := config.Slave{Name: s.Name, Prio: s.Priority, QueueID: s.QueueID, Weight: s.Weight, Disabled: !s.Enabled}
		if s.LACP != nil && s.LACP.Actor.PortPriority != usualPortPrio {
			slave.ActorPortPrio = s.LACP.Actor.PortPriority
		}
		b.Slaves = append(b.Slaves, slave)
	}
	return &config.File{Version: config.Version, Bonds: []config.Bond{b}}
}
