package migrate

import (
	"net/netip"
	"slices"
	"strings"
)

func (p *ipScript) addrAdd(words []string, s setting) {
	a := args{words}
	address, dev := "", ""
	var rest []setting
	for len(a.list) > 0 {
		switch w := a.next(); w {
		case "dev":
			dev = a.next()
		case "local":
			address = a.next()
		case "broadcast", "brd":
			a.next() // follows from the address
		case "nodad", "noprefixroute", "mngtmpaddr", "home", "autojoin":
			rest = append(rest, setting{s.place, w, ""})
		case "scope", "label", "peer", "metric", "valid_lft", "preferred_lft", "proto", "anycast":
			rest = append(rest, setting{s.place, w, a.next()})
		default:
			if address != "" {
				rest = append(rest, setting{s.place, w, ""})
				continue
			}
			address = w
		}
	}
	if dev == "" {
		p.lost(s, "it names no device")
		return
	}
	i := p.iface(dev, s.place)
	if !strings.Contains(address, "/") { // as ip takes it
		address = withMask(address, map[bool]string{false: "32", true: "128"}[strings.Contains(address, ":")])
	}
	i.address(address, setting{s.place, "addr", address})
	for _, r := range rest {
		i.lost(r, noEqual)
	}
}

func (p *ipScript) routeAdd(words []string, s setting) {
	to, dev, rest := parseRoute(words, setting{s.place, "route", strings.Join(words, " ")})
	if dev == "" {
		p.routes = append(p.routes, to)
		for _, r := range rest {
			p.lost(r, noEqual)
		}
		return
	}
	i := p.iface(dev, s.place)
	i.routes = append(i.routes, to)
	for _, r := range rest {
		i.lost(r, noEqual)
	}
}

// parseRoute reads the arguments of ip route add. rest has no equal.
func parseRoute(words []string, s setting) (to route, dev string, rest []setting) {
	to = route{setting: s}
	a := args{words}
	for len(a.list) > 0 {
		switch w := a.next(); w {
		case "unicast":
		case "via":
			if to.via = a.next(); to.via == "inet" || to.via == "inet6" {
				to.via = a.next()
			}
		case "dev":
			dev = a.next()
		case "metric", "priority", "preference":
			to.metric = a.next()
		case "to":
			to.to = a.next()
		case "table":
			to.inTable(setting{s.place, w, a.next()})
		case "onlink":
			rest = append(rest, setting{s.place, w, ""})
		case "proto", "protocol", "scope", "src", "mtu", "advmss", "realm", "nexthop", "weight", "pref", "rto_min", "initcwnd", "tos":
			rest = append(rest, setting{s.place, w, a.next()})
		default:
			if to.to == "" {
				to.to = w
			} else {
				rest = append(rest, setting{s.place, w, ""})
			}
		}
	}
	return to, dev, rest
}

// loose gives routes without a device to the interface in whose network the
// router is.
func (p *ipScript) loose() {
	if len(p.routes) == 0 {
		return
	}
	var networks []netip.Prefix
	var of []*iface
	for _, i := range p.interfaces {
		for _, a := range i.addresses {
			if network, err := netip.ParsePrefix(a.value); err == nil {
				networks, of = append(networks, network.Masked()), append(of, i)
			}
		}
	}
	for _, to := range p.routes {
		via, _ := netip.ParseAddr(to.via) // the zero address is in no network
		n := slices.IndexFunc(networks, func(p netip.Prefix) bool { return p.Contains(via) })
		if n < 0 {
			p.lost(to.setting, "no interface has an address in the router's network")
			continue
		}
		of[n].routes = append(of[n].routes, to)
	}
}
