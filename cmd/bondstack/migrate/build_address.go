package migrate

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"slices"

	"bondstack/cmd/bondstack/config"
)

func (b *builder) mac(s setting) string {
	if !s.given() {
		return ""
	}
	mac, err := net.ParseMAC(s.value)
	switch {
	case err != nil || len(mac) != 6:
		b.lost(s, "no MAC address, such as 02:00:00:00:00:01")
	case mac[0]&1 != 0 || mac.String() == "00:00:00:00:00:00":
		b.lost(s, "no interface can have this address")
	default:
		return mac.String()
	}
	return ""
}

func (b *builder) mtu(s setting) uint32 {
	if !s.given() {
		return 0
	}
	v, err := number(s.value, 68, math.MaxUint16)
	if err != nil {
		b.lost(s, err.Error())
	}
	return uint32(v)
}

// addresses makes those of a device, whose path is that of its VLANs.
func (b *builder) addresses(i *iface, path string) []string {
	var out []string
	for _, a := range i.addresses {
		text := a.value
		if text != "dhcp" && text != "auto" {
			p, err := netip.ParsePrefix(text)
			if err != nil || p.Addr().Zone() != "" {
				b.lost(a, "no address with the length of its prefix, such as 10.0.0.2/24")
				continue
			}
			text = p.String()
		}
		if _, twice := b.origin[path+" "+text]; twice {
			continue
		}
		if len(out) == maxEntries {
			b.lost(a, tooMany)
			continue
		}
		out = append(out, text)
		b.origin[path+" "+text] = a
	}
	return out
}

func (b *builder) routes(i *iface, path string) []config.Route {
	var out []config.Route
	for _, to := range i.routes {
		made, reason := makeRoute(to)
		if to.table.given() {
			reason = "it is in table " + to.table.value + ", and there is one table of routes"
		}
		origin := path + " " + routeID(made)
		if _, twice := b.origin[origin]; twice && reason == "" {
			continue
		}
		if reason == "" && len(out) == maxEntries {
			reason = tooMany
		}
		if reason != "" {
			b.lost(to.setting, reason)
			continue
		}
		out = append(out, made)
		b.origin[origin] = to.setting
	}
	return out
}

func routeID(r config.Route) string { return fmt.Sprintf("%s %s %d", r.To, r.Via, r.Metric) }

// makeRoute returns why a route cannot be, "" where it can.
func makeRoute(to route) (out config.Route, reason string) {
	if to.via != "" {
		via, err := netip.ParseAddr(to.via)
		if err != nil || via.Zone() != "" || via.IsUnspecified() {
			return out, "no address of a router: " + shorten(to.via)
		}
		out.Via = via.String()
	}
	if to.metric != "" {
		v, err := number(to.metric, 0, math.MaxUint32)
		if err != nil {
			return out, "metric " + shorten(to.metric) + ": " + err.Error()
		}
		out.Metric = uint32(v)
	}
	prefix, err := netip.ParsePrefix(to.to)
	if a, one := netip.ParseAddr(to.to); one == nil && a.Zone() == "" {
		prefix, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case to.to == "default", to.to == "any", err == nil && prefix.Bits() == 0:
		if out.Via == "" {
			return out, "a default route needs a router"
		}
		out.To = "default"
	case err != nil:
		return out, "no network: " + shorten(to.to)
	default:
		out.To = prefix.Masked().String()
	}
	return out, ""
}

var domain = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?)*\.?$`)

// dns adds to the name servers of a bond.
func (b *builder) dns(out *config.DNS, i *iface) *config.DNS {
	if out == nil {
		out = &config.DNS{}
	}
	for _, s := range i.servers {
		switch a, err := netip.ParseAddr(s.value); {
		case err != nil || a.Zone() != "":
			b.lost(s, "no IP address")
		case slices.Contains(out.Servers, a.String()):
		case len(out.Servers) == maxServers:
			b.lost(s, fmt.Sprintf("at most %d are possible", maxServers))
		default:
			out.Servers = append(out.Servers, a.String())
		}
	}
	for _, s := range i.search {
		switch {
		case !domain.MatchString(s.value) || len(s.value) > 253:
			b.lost(s, "no domain name")
		case slices.Contains(out.Search, s.value):
		case len(out.Search) == maxSearch:
			b.lost(s, fmt.Sprintf("at most %d are possible", maxSearch))
		default:
			out.Search = append(out.Search, s.value)
		}
	}
	if len(out.Servers)+len(out.Search) == 0 {
		return nil
	}
	return out
}
