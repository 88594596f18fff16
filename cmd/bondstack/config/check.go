package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bondstack/bonding"
	"bondstack/link/tap"
	"bondstack/stack"
)

// Checks are what Check asks of the program, beside what packages say.
type Checks struct {
	// Service and Forward say what is wrong with an entry of serve and forwards,
	// and Slave with a slave. Default: only the form is looked at.
	Service, Forward func(text string) error
	Slave            func(Slave) error
}

// Read is Parse and Check: all faults of a file at once. Of what could not be read
// no more is told than that.
func Read(data []byte, c Checks) (*File, Faults) {
	f, faults := Parse(data)
	if f == nil {
		return nil, faults
	}
	form := faults
	for _, fault := range f.Check(c) {
		if !slices.ContainsFunc(form, func(of Fault) bool { return follows(fault, of) }) {
			faults = append(faults, fault)
		}
	}
	faults.sort()
	return f, faults
}

// follows reports whether a fault of meaning may come of one of form: of the same
// value, of what is in it or holds it, or of what depends on the mode.
func follows(f, form Fault) bool {
	inside := func(a, b string) bool {
		return len(a) == len(b) && a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(a, b+"[")
	}
	bond, isMode := strings.CutSuffix(form.Key, ".mode")
	return f.Line == form.Line && f.Column == form.Column || inside(f.Key, form.Key) || inside(form.Key, f.Key) ||
		isMode && (inside(f.Key, bond+".options") || inside(f.Key, bond+".slaves"))
}

// Check finds every fault that the form does not show: what a bond refuses of its
// options and mode, a stack of its addresses and routes; names that are taken
// twice; keys that have no meaning beside others. It does what the start does, but
// opens nothing.
func (f *File) Check(c Checks) Faults {
	ck := &checker{list: list{at: f.at}, Checks: c, taken: map[string]string{}}
	for i := range f.Bonds {
		ck.bond(fmt.Sprintf("bonds[%d]", i), &f.Bonds[i])
	}
	ck.unique("metrics", "the listener", withHost(f.Metrics))
	ck.unique("web", "the listener", withHost(f.Web))
	ck.faults.sort()
	return ck.faults
}

type checker struct {
	list
	Checks
	taken map[string]string // the keys that have what may be there once
}

// unique wants a value at one key alone.
func (c *checker) unique(key, what, value string) {
	if value == "" {
		return
	}
	id := what + " " + value
	if other, twice := c.taken[id]; twice {
		c.add(key, "%s %s is that of %s already", what, shorten(value), other)
		return
	}
	c.taken[id] = key
}

func (c *checker) bond(key string, b *Bond) {
	c.unique(join(key, "name"), "the name", b.Name)
	c.unique(join(key, "control"), "the socket", b.Control)
	c.unique(join(key, "socks"), "the listener", withHost(b.Socks))
	if b.SocksUsers != "" && b.Socks == "" {
		c.add(join(key, "socks_users"), "there is no proxy that they could use: socks is missing")
	}
	if b.UserNetwork != "" && !slices.ContainsFunc(b.Slaves, func(s Slave) bool { return s.Kind == "user" }) {
		c.warn(join(key, "user_network"), "no slave is of kind user yet")
	}
	names := c.slaves(join(key, "slaves"), b)
	c.options(join(key, "options"), b, names)
	if b.Tap() {
		c.tap(key, b)
	} else {
		c.stack(key, b)
	}
	for i, text := range b.Serve {
		c.ask(fmt.Sprintf("%s.serve[%d]", key, i), text, c.Service)
	}
	for i, text := range b.Forwards {
		c.ask(fmt.Sprintf("%s.forwards[%d]", key, i), text, c.Forward)
	}
	c.addresses(key, b.Name, b.Addresses, b.Routes)
	c.vlans(key, b.Name, b.VLANs, 1)
}

// ask asks the program about a text.
func (c *checker) ask(key, text string, check func(string) error) {
	if check == nil {
		return
	}
	if err := check(text); err != nil {
		c.add(key, "%s: %v", shorten(text), err)
	}
}

// slaves checks the slaves and returns their names.
func (c *checker) slaves(key string, b *Bond) []string {
	var names []string
	queues := map[uint16]string{}
	consistent := b.Options["xmit_hash_map"] == "consistent" || b.Options["xmit_hash_map"] == "1"
	for i := range b.Slaves {
		s := &b.Slaves[i]
		at := fmt.Sprintf("%s[%d]", key, i)
		names = append(names, s.Name)
		if s.Kind == "user" { // no interface
			c.unique(at, "in "+b.Name+" the slave", s.Name)
		} else {
			c.unique(at, "the slave", s.Name)
		}
		if other, twice := queues[s.QueueID]; twice && s.QueueID != 0 {
			c.add(join(at, "queue_id"), "%d is that of %s already", s.QueueID, other)
		}
		queues[s.QueueID] = s.Name
		mode := bonding.Mode(b.Mode)
		switch {
		case s.ActorPortPrio != 0 && mode != bonding.IEEE8023AD:
			c.add(join(at, "actor_port_prio"), "%d is for mode %s; the mode is %s", s.ActorPortPrio, bonding.IEEE8023AD, mode)
		case s.Prio != 0 && mode != bonding.ActiveBackup && mode != bonding.BalanceTLB && mode != bonding.BalanceALB:
			c.warn(join(at, "prio"), "%d does nothing in mode %s", s.Prio, mode)
		}
		if s.Weight != 0 && !consistent {
			c.warn(join(at, "weight"), "%d does nothing without option xmit_hash_map consistent", s.Weight)
		}
		if b.KeepsFrames() && !s.mayKeepFrames() {
			c.add(at, "kind %s cannot keep frames from the host, which exclusive asks for; packet and xdp can", s.KindOrDefault())
		}
		if b.SetAddresses && s.KindOrDefault() != DefaultKind {
			c.add(at, "kind %s cannot set the interface's address, which set_hardware_addresses asks for; %s can", s.KindOrDefault(), DefaultKind)
		}
		if c.Slave != nil {
			if err := c.Slave(*s); err != nil {
				c.add(at, "%v", err)
			}
		}
	}
	return names
}

// bySlave are the options that slaves have keys for.
var bySlave = []string{"queue_id", "weight"}

// options sets the options on a bond, as the start does, and tells what that bond
// refuses.
func (c *checker) options(key string, b *Bond, slaves []string) {
	early := b.Early()
	for _, name := range append(bySlave, "mode") {
		if value, ok := early[name]; ok {
			where := "key " + name + " of the slave"
			if name == "mode" {
				where = "key mode of the bond"
			}
			c.add(join(key, name), "%s is not set here, but by %s", shorten(value), where)
			delete(early, name)
		}
	}
	for _, name := range []string{"primary", activeSlave} {
		if value := b.Options[name]; value != "" && !slices.Contains(slaves, value) {
			c.add(join(key, name), "%s is no slave; the slaves are %s", shorten(value), strings.Join(slaves, ", "))
		}
	}
	probe, err := bonding.New(b.BondOptions())
	if err != nil {
		return // its fields have their faults
	}
	defer probe.Close()
	faults := flatten(probe.SetOptions(early))
	for _, err := range flatten(probe.SetOptions(b.Late())) {
		if errors.Is(err, bonding.ErrMode) { // others are of the state
			faults = append(faults, err)
		}
	}
	refused := map[string]bool{}
	for _, err := range faults {
		var o *bonding.OptionError
		if !errors.As(err, &o) {
			c.add(key, "%v", err)
			continue
		}
		refused[o.Option] = true
		c.add(join(key, printable(o.Option)), "%s: %v: %s", shorten(o.Value), o.Err, o.Reason)
	}
	for _, o := range bonding.OptionTable() {
		for _, name := range []string{o.Name, o.Alias} {
			if _, given := b.Options[name]; given && name != "" && !refused[name] && !slices.Contains(o.Used, bonding.Mode(b.Mode)) {
				c.warn(join(key, name), "%s does nothing in mode %s; it is for %s", shorten(b.Options[name]), b.Mode, modeNames(o.Used))
			}
		}
	}
}

func modeNames(modes []bonding.Mode) string {
	var names []string
	for _, m := range modes {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

// flatten returns the errors that errors.Join has joined.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, e := range joined.Unwrap() {
		list = append(list, flatten(e)...)
	}
	return list
}

// tap tells of what a device of the kernel does not have.
func (c *checker) tap(key string, b *Bond) {
	for _, k := range []struct {
		key   string
		given bool
	}{{"vlans", len(b.VLANs) > 0}, {"serve", len(b.Serve) > 0}, {"forwards", len(b.Forwards) > 0}, {"socks", b.Socks != ""}, {"tx_queue", b.TxQueue != 0}, {"dns", b.DNS != nil}, {"host_name", b.HostName != ""}, {"routes", len(b.Routes) > 0}} {
		if k.given {
			c.add(join(key, k.key), "this is for device %s; what uses a %s device sets up its own", DeviceStack, DeviceTAP)
		}
	}
	if b.MTU > tap.MaxMTU {
		c.add(join(key, "mtu"), "%d is more than a TAP device takes, allowed are 68 to %d", b.MTU, tap.MaxMTU)
	}
	for i, a := range b.Addresses {
		if a == AddressDHCP || a == AddressAuto {
			c.add(fmt.Sprintf("%s.addresses[%d]", key, i), "%s is for device %s; on a %s device a client of the kernel's does it", a, DeviceStack, DeviceTAP)
		}
	}
}

// stack tells of what only a device of the kernel has.
func (c *checker) stack(key string, b *Bond) {
	if b.NetNS != "" {
		c.add(join(key, "netns"), "%s is for device %s", shorten(b.NetNS), DeviceTAP)
	}
	if b.Queues != 0 {
		c.add(join(key, "queues"), "%d is for device %s", b.Queues, DeviceTAP)
	}
	if len(b.Addresses) == 0 && len(b.VLANs) == 0 {
		c.add(join(key, "addresses"), "the key is missing: a stack needs an address, on the bond or on a VLAN")
	}
}

// stackFault is how package stack names an entry of a list.
var stackFault = regexp.MustCompile(`^stack: (Addresses|Routes)\[(\d+)\]: (.*)`)

// addresses has the stack check the addresses and routes of an interface.
func (c *checker) addresses(key, name string, addresses []string, routes []Route) {
	o := stack.HostOptions{Name: name}
	var at, routeAt []string
	told := false // by the network, so that routers may be anywhere
	for i, text := range addresses {
		if p, err := netip.ParsePrefix(text); err == nil {
			o.Addresses = append(o.Addresses, p)
			at = append(at, fmt.Sprintf("%s.addresses[%d]", key, i))
		} else {
			told = true
		}
	}
	if told {
		o.Addresses, at = nil, nil
	}
	seen := map[string]string{}
	for i := range routes {
		here := fmt.Sprintf("%s.routes[%d]", key, i)
		r, ok := routes[i].stack()
		if routes[i].To == "default" && !ok {
			c.add(here, "default needs via, a router")
		}
		id := fmt.Sprint(r.Destination, routes[i].Metric)
		if other, twice := seen[id]; ok && twice {
			c.add(here, "%s goes there with metric %d already", other, routes[i].Metric)
		}
		seen[id] = here
		if ok && !told {
			o.Routes, routeAt = append(o.Routes, r), append(routeAt, here)
		}
	}
	for _, err := range flatten(o.Validate()) {
		m := stackFault.FindStringSubmatch(err.Error())
		if m == nil {
			continue // the name has its own fault
		}
		i, _ := strconv.Atoi(m[2])
		if m[1] == "Addresses" {
			c.add(at[i], "%s", m[3])
		} else {
			c.add(routeAt[i], "%s", m[3])
		}
	}
}

// vlans checks the devices on a link of this name.
func (c *checker) vlans(key, name string, vlans []VLAN, depth int) {
	seen := map[uint16]bool{}
	for i := range vlans {
		v := &vlans[i]
		at := fmt.Sprintf("%s.vlans[%d]", key, i)
		own := name + "." + strconv.Itoa(int(v.ID))
		switch {
		case seen[v.ID]:
			c.add(at, "VLAN %d is there twice, and %s is one name", v.ID, own)
		case len(own) > 15:
			c.add(at, "the device's name %s has %d bytes, allowed are 1 to 15", own, len(own))
		case depth == 2 && len(v.VLANs) > 0:
			c.add(join(at, "vlans"), "a device with three tags is not possible, at most 2 are")
		case !v.Interface() && len(v.Routes) > 0:
			c.add(join(at, "routes"), "there are no addresses, so it is no interface that has routes")
		}
		seen[v.ID] = true
		c.addresses(at, own, v.Addresses, v.Routes)
		if depth == 1 {
			c.vlans(at, own, v.VLANs, depth+1)
		}
	}
}
