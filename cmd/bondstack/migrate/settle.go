package migrate

import (
	"fmt"
	"strconv"

	"bondstack/cmd/bondstack/config"
)

// settle takes out of a bond what config's own check refuses, and lists it with
// the check's reason, so that what is left can be run. A bond without any address
// becomes a device of the kernel, as the original is.
func (b *builder) settle(i *iface, out *config.Bond) {
	if len(out.Addresses) == 0 && len(out.VLANs) == 0 {
		b.addressless(i, out)
	}
	for {
		f := config.File{Version: config.Version, Bonds: []config.Bond{*out}}
		p := pruner{builder: b, bond: i, faults: map[string]string{}}
		for _, fault := range f.Check(config.Checks{}).Errors() {
			p.faults[fault.Key] = fault.Message
		}
		if p.prune(out); !p.pruned {
			return
		}
	}
}

func (b *builder) addressless(i *iface, out *config.Bond) {
	out.Device = config.DeviceTAP
	b.notices = append(b.notices, setting{i.place, "bond", i.name}.notice(Changed, "it has no address, and becomes a device of the kernel (device: tap)"))
	for _, to := range i.routes {
		b.lost(to.setting, "the routes of a device of the kernel are the host's")
	}
	for _, s := range append(i.servers, i.search...) {
		b.lost(s, "the name servers of a device of the kernel are the host's")
	}
	out.Routes, out.DNS = nil, nil
}

// pruner takes out what has faults. The keys are those of the check.
type pruner struct {
	*builder
	bond   *iface
	faults map[string]string
	pruned bool
}

// faulty reports whether a key has a fault, and lists what it comes from.
func (p *pruner) faulty(key, origin string) bool {
	reason, ok := p.faults["bonds[0]."+key]
	if !ok {
		return false
	}
	p.pruned = true
	s := p.origin[origin]
	if !s.given() {
		s = setting{p.bond.place, "bond", p.bond.name}
	}
	p.lost(s, reason)
	return true
}

func (p *pruner) prune(out *config.Bond) {
	if p.faulty("mtu", "mtu") {
		out.MTU = 0
	}
	for name := range out.Options {
		if p.faulty("options."+name, "options."+name) {
			delete(out.Options, name)
		}
	}
	slaves := out.Slaves
	out.Slaves = []config.Slave{}
	for n, s := range slaves {
		key := fmt.Sprintf("slaves[%d]", n)
		if p.faulty(key, "slave "+s.Name) {
			continue
		}
		if p.faulty(key+".queue_id", s.Name+" queue_id") {
			s.QueueID = 0
		}
		if p.faulty(key+".actor_port_prio", s.Name+" actor_port_prio") {
			s.ActorPortPrio = 0
		}
		out.Slaves = append(out.Slaves, s)
	}
	out.Addresses, out.Routes = p.interfaceParts("", "", out.Addresses, out.Routes)
	out.VLANs = p.vlans("vlans", "", out.VLANs)
}

// interfaceParts prunes addresses and routes of a device.
func (p *pruner) interfaceParts(key, path string, addresses []string, routes []config.Route) (a []string, r []config.Route) {
	for n, text := range addresses {
		if !p.faulty(fmt.Sprintf("%saddresses[%d]", key, n), path+" "+text) {
			a = append(a, text)
		}
	}
	for n, to := range routes {
		origin := path + " " + routeID(to)
		// All routes of a list may have one fault together.
		if !p.faulty(fmt.Sprintf("%sroutes[%d]", key, n), origin) && !p.faulty(key+"routes", origin) {
			r = append(r, to)
		}
	}
	return a, r
}

func (p *pruner) vlans(key, path string, list []config.VLAN) (out []config.VLAN) {
	for n, v := range list {
		at, name := fmt.Sprintf("%s[%d]", key, n), path+"."+strconv.Itoa(int(v.ID))
		if p.faulty(at, name) {
			continue
		}
		v.Addresses, v.Routes = p.interfaceParts(at+".", name, v.Addresses, v.Routes)
		if p.faulty(at+".vlans", name) {
			v.VLANs = nil
		}
		v.VLANs = p.vlans(at+".vlans", name, v.VLANs)
		out = append(out, v)
	}
	return out
}
