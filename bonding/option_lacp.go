package bonding

import (
	"net"
	"strconv"

	"bondstack/bonding/lacp"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// LACPOptions are the options of 802.3ad. In every field zero is Linux's default.
type LACPOptions struct {
	// Fast asks the partner for a LACPDU each second and takes 3 s of silence
	// for its loss [lacp_rate fast]. Default: 30 s and 90 s.
	Fast bool
	// Passive is silent until the partner speaks [lacp_active off].
	Passive bool
	// Select is which aggregator is the active one [ad_select]. Default
	// stable.
	Select lacp.Policy
	// SystemPriority is that of this system [ad_actor_sys_prio], 1 to 65535.
	// Default 65535.
	SystemPriority uint16
	// System is the address of this system [ad_actor_system]. Default: the
	// bond's.
	System tcpip.LinkAddress
	// UserKey is the upper ten bits of every port's key [ad_user_port_key], 0
	// to 1023.
	UserKey uint16
	// Independent has a port send only once its partner says that it collects
	// [coupled_control off]. Default: once the partner is in sync.
	Independent bool
	// Strict has no port carry data without a partner [lacp_strict].
	Strict bool
	// BroadcastNeighbor sends ARP and IPv6 neighbour discovery by every port,
	// for partners that are several switches, and announces the addresses
	// whenever a port begins to send [broadcast_neighbor].
	BroadcastNeighbor bool
}

// values adds the fields that are set to options by name.
func (o *LACPOptions) values(v map[string]string) error {
	set := func(name, value string, is bool) {
		if is {
			v[name] = value
		}
	}
	set("lacp_rate", "fast", o.Fast)
	set("lacp_active", "off", o.Passive)
	set("ad_select", strconv.Itoa(int(o.Select)), o.Select != lacp.Stable)
	set("ad_actor_sys_prio", strconv.Itoa(int(o.SystemPriority)), o.SystemPriority != 0)
	set("ad_user_port_key", strconv.Itoa(int(o.UserKey)), o.UserKey != 0)
	set("coupled_control", "off", o.Independent)
	set("lacp_strict", "on", o.Strict)
	set("broadcast_neighbor", "on", o.BroadcastNeighbor)
	if o.System == "" {
		return nil
	}
	v["ad_actor_system"] = o.System.String()
	if err := checkAddress(o.System); err != nil {
		delete(v, "ad_actor_system")
		return &OptionError{"ad_actor_system", o.System.String(), "allowed is a MAC address that is no group's", ErrInvalid}
	}
	return nil
}

// whileDown makes an option one that is set only while no NIC has the bond.
func whileDown(o option) option {
	o.down = true
	return o
}

// lacpSwitch is a switch of 802.3ad. It is kept so that false is the default:
// inverted says that the option is on while the field is false.
func lacpSwitch(name string, n number, field func(*lacpConfig) *bool, inverted bool) option {
	o := numeric(name, n, func(c *config, v uint64) { *field(&c.lacp) = (v == 1) != inverted },
		func(c *config) uint64 { return bit(*field(&c.lacp) != inverted) })
	o.modes = lacpModes
	return o
}

// lacpNumber is a number of 802.3ad, which Linux shows in that mode alone.
func lacpNumber(name string, n number, field func(*lacpConfig) *uint16) option {
	o := numeric(name, n, func(c *config, v uint64) { *field(&c.lacp) = uint16(v) }, nil)
	o.modes = lacpModes
	o.get = func(c *config) string {
		if c.mode != IEEE8023AD {
			return ""
		}
		return strconv.Itoa(int(*field(&c.lacp)))
	}
	return o
}

// setActorSystem reads a MAC address; zero means the bond's.
func setActorSystem(ch *change, text string) error {
	mac, err := net.ParseMAC(firstLine(text))
	if err != nil || len(mac) != header.EthernetAddressSize || mac[0]&1 != 0 {
		return &OptionError{Reason: "allowed is a MAC address that is no group's, such as 02:00:00:00:00:01, or 00:00:00:00:00:00 for the bond's", Err: ErrInvalid}
	}
	ch.lacp.system = tcpip.LinkAddress(mac)
	if ch.lacp.system == header.UnspecifiedEthernetAddress {
		ch.lacp.system = ""
	}
	return nil
}

func showActorSystem(c *config) string {
	switch {
	case c.mode != IEEE8023AD:
		return ""
	case c.lacp.system == "":
		return "00:00:00:00:00:00"
	}
	return c.lacp.system.String()
}

// SetActorPortPriority sets a slave's priority in LACP [actor_port_prio], 1 to
// 65535, also while the bond is up. The partner is told of it, and must agree
// before data flows on.
func (b *Bond) SetActorPortPriority(name string, priority uint16) error {
	if priority == 0 {
		return &SlaveError{"set", name, "actor_port_prio 0: allowed are 1 to 65535", ErrInvalid}
	}
	if b.Mode() != IEEE8023AD {
		return &SlaveError{"set", name, "actor_port_prio is an option of mode " + IEEE8023AD.String(), ErrMode}
	}
	return b.changeSlave(name, func(s *slave, _ instant) { s.actorPortPrio = priority })
}
