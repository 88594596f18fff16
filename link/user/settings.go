package user

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// SettingsText is the form of the text that Options.Set reads, for help texts.
const SettingsText = "gateway=IP, gateway6=IP, dns=IP[:PORT], loopback=on|off, mtu=N"

// Set reads settings from text, such as "loopback=on,dns=192.0.2.1": pairs of a
// name and a value, with commas between them. What the text does not name stays
// as it is. An error says what is allowed; then nothing is set.
func (o *Options) Set(text string) error {
	next := *o
	for _, pair := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q: allowed are %s", pair, SettingsText)
		}
		if err := next.set(name, value); err != nil {
			return fmt.Errorf("%s: %w", pair, err)
		}
	}
	filled := next
	filled.setDefaults()
	if err := filled.validate(); err != nil {
		return err
	}
	*o = next
	return nil
}

func (o *Options) set(name, value string) (err error) {
	switch name {
	case "gateway":
		o.Gateway, err = netip.ParseAddr(value)
	case "gateway6":
		o.Gateway6, err = netip.ParseAddr(value)
	case "dns":
		o.DNS, err = parseServer(value)
	case "loopback":
		if value != "on" && value != "off" {
			return fmt.Errorf("allowed are on and off")
		}
		o.Loopback = value == "on"
	case "mtu":
		var mtu uint64
		mtu, err = strconv.ParseUint(value, 10, 32)
		o.MTU = uint32(mtu)
	default:
		return fmt.Errorf("there is no setting %q, allowed are %s", name, SettingsText)
	}
	return err
}

// parseServer reads the address of a name server, with or without a port.
func parseServer(text string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(a, dnsPort), nil
	}
	return netip.ParseAddrPort(text)
}
