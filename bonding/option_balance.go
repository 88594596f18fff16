package bonding

import (
	"strconv"
	"time"
)

// addBalance adds the fields of the adaptive modes to options by name.
func (o *Options) addBalance(v map[string]string, errs *[]error) {
	if o.StaticTLB {
		v["tlb_dynamic_lb"] = "0"
	}
	if o.IPv6ReceiveBalance {
		v["ipv6_receive_balance"] = "1"
	}
	switch d := o.LPInterval; {
	case d == 0:
	case d < 0 || d%time.Second != 0:
		*errs = append(*errs, &OptionError{"lp_interval", d.String(), "a positive number of whole seconds", ErrInvalid})
	default:
		v["lp_interval"] = strconv.FormatInt(int64(d/time.Second), 10)
	}
}

// tlbDynamic is whether flows are placed by load, or by the hash alone.
func tlbDynamic() option {
	o := numeric("tlb_dynamic_lb", onOff(1), func(c *config, v uint64) { c.tlbStatic = v == 0 },
		func(c *config) uint64 { return bit(!c.tlbStatic) })
	o.modes = lbModes
	return o
}

// ipv6Receive is whether IPv6 clients are given slaves as IPv4 clients are.
func ipv6Receive() option {
	o := numeric("ipv6_receive_balance", onOff(0), func(c *config, v uint64) { c.ipv6Receive = v == 1 },
		func(c *config) uint64 { return bit(c.ipv6Receive) })
	o.modes = []Mode{BalanceALB}
	return o
}
