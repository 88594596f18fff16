package user

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// dnsPort is that of name servers, on TCP and UDP (RFC 1035, section 4.2).
const dnsPort = 53

// What may not be reached, and why.
var (
	errLoopback = errors.New("the gateway leads to the host only with loopback on")
	errDenied   = errors.New("the address is one of the host alone, of a link or of a group")
)

// isGateway reports whether an address is the stack itself.
func (o *Options) isGateway(a netip.Addr) bool {
	return a == o.Gateway || a == o.Gateway6 || a == linkLocalGateway
}

// permitted returns why a flow to an address may not be, nil where it may. It is
// asked for each datagram.
func (o *Options) permitted(to netip.AddrPort) error {
	a := to.Addr().Unmap()
	switch {
	case o.isGateway(a) && !o.Loopback && to.Port() != dnsPort:
		return errLoopback
	case !o.isGateway(a) && !reachable(a):
		return errDenied
	}
	return nil
}

// target returns where on the host a flow to an address leads.
func (o *Options) target(to netip.AddrPort) (netip.AddrPort, error) {
	if err := o.permitted(to); err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s: %w", to, err)
	}
	a := to.Addr().Unmap()
	switch {
	case !o.isGateway(a):
		return netip.AddrPortFrom(a, to.Port()), nil
	case to.Port() != dnsPort:
		return netip.AddrPortFrom(loopbackOf(a), to.Port()), nil
	case o.DNS.IsValid():
		return o.DNS, nil
	}
	return hostResolver(resolvConf)
}

func loopbackOf(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}

// Linux takes connections to 0.0.0.0/8's first address as ones to itself.
var thisHost = netip.MustParsePrefix("0.0.0.0/8")

// Addresses of IPv6 that carry one of IPv4, in their last four bytes: a host with
// a translator would send them on to that.
var carriesIPv4 = []netip.Prefix{
	netip.MustParsePrefix("::/96"),          // RFC 4291, section 2.5.5.1
	netip.MustParsePrefix("64:ff9b::/96"),   // RFC 6052
	netip.MustParsePrefix("64:ff9b:1::/48"), // RFC 8215
}

// sixToFour has the address of IPv4 behind its prefix (RFC 3056, section 2).
var sixToFour = netip.MustParsePrefix("2002::/16")

// Where clouds keep what their machines may know, besides link-local addresses:
// those of AWS, Google and Oracle in IPv6, of Alibaba and Azure in IPv4.
var clouds = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"),
}

// reachable reports whether the host may be asked for an address, which has been
// unmapped.
func reachable(a netip.Addr) bool {
	for _, p := range carriesIPv4 {
		if p.Contains(a) {
			b := a.As16()
			a = netip.AddrFrom4([4]byte(b[12:]))
		}
	}
	if sixToFour.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[2:]))
	}
	if slices.Contains(clouds, a) {
		return false
	}
	return a.IsGlobalUnicast() && !thisHost.Contains(a) && (a.Is6() || a.As4()[0] < 240)
}

const resolvConf = "/etc/resolv.conf"

// hostResolver returns the first name server of a resolver's configuration.
func hostResolver(path string) (netip.AddrPort, error) {
	f, err := os.Open(path)
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		words := strings.Fields(s.Text())
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil {
			return netip.AddrPortFrom(a, dnsPort), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("%s names no name server", path)
}
