package config

import (
	"net/netip"
	"slices"

	"bondstack/bonding"
	"bondstack/stack"
)

// Keep gives b, the new text of a running bond, the values of old that cannot
// change while it runs, and returns the keys of those that differ.
func (b *Bond) Keep(old *Bond) (kept []string) {
	keep := func(key string, same bool, restore func()) {
		if !same {
			kept = append(kept, key)
			restore()
		}
	}
	keep("device", b.Tap() == old.Tap(), func() { b.Device = old.Device })
	keep("netns", b.NetNS == old.NetNS, func() { b.NetNS = old.NetNS })
	keep("queues", max(b.Queues, 1) == max(old.Queues, 1), func() { b.Queues = old.Queues })
	keep("hardware_address", b.BondOptions().LinkAddress == old.BondOptions().LinkAddress, func() { b.HardwareAddress = old.HardwareAddress })
	keep("mtu", b.MTU == old.MTU || b.MTU != 0, func() { b.MTU = old.MTU })
	keep("exclusive", b.KeepsFrames() == old.KeepsFrames(), func() { b.Exclusive = old.Exclusive })
	keep("set_hardware_addresses", b.SetAddresses == old.SetAddresses, func() { b.SetAddresses = old.SetAddresses })
	keep("host_name", b.HostName == old.HostName, func() { b.HostName = old.HostName })
	keep("dns", b.DNS.same(old.DNS), func() { b.DNS = old.DNS })
	keep("flow_limit", b.FlowLimit == old.FlowLimit, func() { b.FlowLimit = old.FlowLimit })
	keep("tcp_idle", b.TCPIdle == old.TCPIdle, func() { b.TCPIdle = old.TCPIdle })
	keep("udp_idle", b.UDPIdle == old.UDPIdle, func() { b.UDPIdle = old.UDPIdle })
	keep("tx_queue", b.TxQueue == old.TxQueue, func() { b.TxQueue = old.TxQueue })
	keep("user_network", b.UserNetwork == old.UserNetwork, func() { b.UserNetwork = old.UserNetwork })
	keep("control", b.Control == old.Control, func() { b.Control = old.Control })
	keep("addresses (dhcp, auto)", slices.Equal(told(b.Addresses), told(old.Addresses)), func() {
		b.Addresses = append(slices.DeleteFunc(slices.Clone(b.Addresses), isTold), told(old.Addresses)...)
	})
	if b.Tap() { // whoever uses the device may have changed them
		keep("addresses", slices.Equal(b.Addresses, old.Addresses), func() { b.Addresses = old.Addresses })
	}
	keep("vlans", sameVLANs(b.VLANs, old.VLANs), func() { b.VLANs = old.VLANs })
	for i := range b.Slaves {
		s := &b.Slaves[i]
		for j := range old.Slaves {
			if o := &old.Slaves[j]; o.Name == s.Name {
				keep("slaves: kind of "+s.Name, s.KindOrDefault() == o.KindOrDefault(), func() { s.Kind = o.Kind })
			}
		}
	}
	return kept
}

// isTold reports whether the network tells the address.
func isTold(address string) bool { return address == AddressDHCP || address == AddressAuto }

func told(addresses []string) []string {
	list := slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return !isTold(a) })
	slices.Sort(list)
	return list
}

func (d *DNS) same(o *DNS) bool {
	if d == nil || o == nil {
		return d == o
	}
	return slices.Equal(d.Servers, o.Servers) && slices.Equal(d.Search, o.Search)
}

// sameVLANs reports whether the devices are the same. Their addresses and routes
// count: they are not changed while the bond runs.
func sameVLANs(a, b []VLAN) bool {
	return slices.EqualFunc(a, b, func(a, b VLAN) bool {
		return a.ID == b.ID && a.ProtocolOrDefault() == b.ProtocolOrDefault() && a.Priority == b.Priority &&
			slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.Routes, b.Routes) && sameVLANs(a.VLANs, b.VLANs)
	})
}

// Change is what is in one list and not in another.
type Change[T comparable] struct{ Add, Remove []T }

// changeOf returns what has to be added to and removed from old to have want.
func changeOf[T comparable](old, want []T) (c Change[T]) {
	for _, v := range want {
		if !slices.Contains(old, v) {
			c.Add = append(c.Add, v)
		}
	}
	for _, v := range old {
		if !slices.Contains(want, v) {
			c.Remove = append(c.Remove, v)
		}
	}
	return c
}

// Proxy is a SOCKS proxy, and the file of who may use it, "" for everybody.
type Proxy struct{ Address, Users string }

// proxies are those of a bond: one or none.
func (b *Bond) proxies() []Proxy {
	if b.Socks == "" {
		return nil
	}
	return []Proxy{{b.Socks, b.SocksUsers}}
}

// HostChange is what changes of a stack.
type HostChange struct {
	Addresses Change[netip.Prefix]
	Routes    Change[stack.Route]
	Serve     Change[string]
	Forwards  Change[string]
	Socks     Change[Proxy]
}

// HostChange returns what of the stack has to change for old to be b.
func (b *Bond) HostChange(old *Bond) HostChange {
	return HostChange{
		Addresses: changeOf(Static(old.Addresses), Static(b.Addresses)),
		Routes:    changeOf(Routes(old.Routes), Routes(b.Routes)),
		Serve:     changeOf(old.Serve, b.Serve),
		Forwards:  changeOf(old.Forwards, b.Forwards),
		Socks:     changeOf(old.proxies(), b.proxies()),
	}
}

// OptionChange returns the options that have to be set on a running bond for it to
// have those of the file, its own defaults for those that are not there, and the
// names of those that cannot be set while the bond runs. old is the text before.
func (b *Bond) OptionChange(running *bonding.Bond, old *Bond) (set map[string]string, kept []string, err error) {
	model, err := bonding.New(b.BondOptions())
	if err != nil {
		return nil, nil, err
	}
	defer model.Close()
	if err := model.SetOptions(b.Early()); err != nil {
		return nil, nil, err
	}
	set = map[string]string{}
	newMode := running.Mode() != model.Mode()
	for _, o := range bonding.OptionTable() {
		if o.Name == activeSlave || slices.Contains(bySlave, o.Name) {
			continue
		}
		want, _ := model.Option(o.Name)
		have, _ := running.Option(o.Name)
		_, named := b.Options[o.Name]
		switch {
		case o.Name == "mode":
			if newMode {
				set[o.Name] = model.Mode().String()
			}
		case !slices.Contains(o.Modes, model.Mode()) || want == have && !(newMode && named):
		case (o.WhileEmpty || o.WhileDown) && !newMode:
			kept = append(kept, "options."+o.Name)
		default:
			set[o.Name] = want
		}
	}
	if name, ok := b.Options[activeSlave]; ok && name != old.Options[activeSlave] {
		set[activeSlave] = name
	}
	return set, kept, nil
}
