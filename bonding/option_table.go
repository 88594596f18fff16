package bonding

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"bondstack/bonding/reorder"
	"bondstack/bonding/xmithash"
)

// option is one row of the option table: an option of Linux bonding by name,
// and where it may be set.
type option struct {
	name  string
	alias string
	// modes are those in which it may be set; nil means all.
	modes []Mode
	// empty and down: only without slaves, only while no NIC has the bond.
	empty, down bool
	// set changes ch. It returns nil, an error kind, or an *OptionError of
	// which only Reason and Err need be set.
	set func(ch *change, text string) error
	// get returns the present value as Linux's sysfs shows it; nil for an
	// option that only acts.
	get func(c *config) string
	// values are those of an option that is a number or a word for one; else nil.
	values *number
}

// change is a set of options under way: the configuration as it will be, what
// the options ask for beside it, and what of the bond they depend on.
type change struct {
	config
	up     bool // a NIC has the bond
	slaves []*slave
	active *slave

	activate     *string           // active_slave; "" means none
	queues       map[string]uint16 // queue_id by slave
	weights      map[string]uint32 // weight by slave
	primaryAgain bool              // primary was set: it takes over once
	warnings     []string
}

// optionTable is in the order in which Linux applies the attributes of one
// netlink message; the order matters where one option needs another.
var optionTable = []option{
	{name: "mode", empty: true, down: true, values: &modeNumber, set: setMode, get: func(c *config) string { return modeNumber.show(uint64(c.mode)) }},
	keyword("monitor_rule", keywords(monitorRuleNames...), func(c *config) *uint8 { return (*uint8)(&c.rule) }),
	{name: "active_slave", modes: primaryModes, set: setActiveSlave},
	numeric("miimon", fromZero(int31, 100), (*config).setMIIMon, func(c *config) uint64 { return ms(c.miimon) }),
	delay("updelay", int31, func(c *config) *uint32 { return &c.updelay }),
	delay("downdelay", int31, func(c *config) *uint32 { return &c.downdelay }),
	delay("peer_notif_delay", 300000, func(c *config) *uint32 { return &c.peerNotifDelay }),
	unavailable("use_carrier", number{least: 1, greatest: 1, names: []named{{"on", 1}}}, nil, 1),
	arpInterval(),
	arpIPTarget(),
	nsIP6Target(),
	arpValidate(),
	arpAllTargets(),
	{name: "primary", modes: primaryModes, set: setPrimary, get: func(c *config) string { return c.primary }},
	keyword("primary_reselect", keywords(reselectNames...), func(c *config) *uint8 { return (*uint8)(&c.reselect) }),
	whileEmpty(keyword("fail_over_mac", keywords(failOverMACNames...), func(c *config) *uint8 { return (*uint8)(&c.failOverMAC) })),
	keyword("xmit_hash_policy", keywords(policyNames()...), func(c *config) *uint8 { return (*uint8)(&c.policy) }),
	counter("resend_igmp", fromZero(255, 1), func(c *config) *uint32 { return &c.resendIGMP }),
	numPeerNotif(),
	numeric("all_slaves_active", onOff(0), func(c *config, v uint64) { c.allSlavesActive = v == 1 },
		func(c *config) uint64 { return bit(c.allSlavesActive) }),
	counter("min_links", fromZero(int31, 0), func(c *config) *uint32 { return &c.minLinks }),
	counter("lp_interval", number{least: 1, greatest: int31, names: []named{minval(1), maxval(int31), byDefault(1)}}, func(c *config) *uint32 { return &c.lpInterval }),
	packetsPerSlave(),
	whileDown(lacpSwitch("lacp_active", number{greatest: 1, names: onOff(1).names, words: true}, func(c *lacpConfig) *bool { return &c.passive }, true)),
	whileDown(lacpSwitch("lacp_rate", number{greatest: 1, names: []named{{"slow", 0}, {"fast", 1}}, words: true}, func(c *lacpConfig) *bool { return &c.fast }, false)),
	whileDown(keyword("ad_select", keywords("stable", "bandwidth", "count", "actor_port_prio"), func(c *config) *uint8 { return &c.adSelect })),
	lacpNumber("ad_actor_sys_prio", number{least: 1, greatest: 65535, names: []named{minval(1), maxval(65535)}}, func(c *lacpConfig) *uint16 { return &c.sysPrio }),
	whileDown(lacpNumber("ad_user_port_key", number{greatest: 1023, names: []named{minval(0), maxval(1023)}}, func(c *lacpConfig) *uint16 { return &c.userKey })),
	{name: "ad_actor_system", modes: lacpModes, set: setActorSystem, get: showActorSystem},
	tlbDynamic(),
	arpMissedMax(),
	whileDown(lacpSwitch("coupled_control", onOff(1), func(c *lacpConfig) *bool { return &c.independent }, true)),
	lacpSwitch("broadcast_neighbor", onOff(0), func(c *lacpConfig) *bool { return &c.broadcastNeighbor }, false),
	lacpSwitch("lacp_strict", onOff(0), func(c *lacpConfig) *bool { return &c.strict }, false),
	{name: "queue_id", set: setQueueID},
	keyword("xmit_hash_map", keywords(hashMapNames...), func(c *config) *uint8 { return (*uint8)(&c.hashMap) }),
	{name: "weight", set: setWeight},
	numeric("probe_interval", fromZero(maxProbeInterval, 0), func(c *config, v uint64) {
		c.probeInterval = time.Duration(v) * time.Millisecond
	}, func(c *config) uint64 { return ms(c.probeInterval) }),
	counter("probe_missed_max", number{least: 1, greatest: 255, names: []named{minval(1), maxval(255), byDefault(3)}},
		func(c *config) *uint32 { return &c.probeMissedMax }),
	numeric("flap_backoff", fromZero(maxFlapBackoff, 0), func(c *config, v uint64) {
		c.flapBackoff = time.Duration(v) * time.Millisecond
	}, func(c *config) uint64 { return ms(c.flapBackoff) }),
	ipv6Receive(),
	keyword("rx_dedup", keywords(dedupNames...), func(c *config) *uint8 { return (*uint8)(&c.rxDedup) }),
	keyword("rx_reorder", keywords(reorderNames...), func(c *config) *uint8 { return (*uint8)(&c.rxReorder) }),
	numeric("rx_reorder_hold", number{least: 10, greatest: 1000000, names: []named{minval(10), maxval(1000000), byDefault(uint64(reorder.DefaultHold / time.Microsecond))}},
		func(c *config, v uint64) { c.reorderLimits.hold = time.Duration(v) * time.Microsecond },
		func(c *config) uint64 { return uint64(c.reorderLimits.hold / time.Microsecond) }),
	counter("rx_reorder_bytes", number{least: 1 << 16, greatest: int31, names: []named{minval(1 << 16), maxval(int31), byDefault(reorder.DefaultBytes)}},
		func(c *config) *uint32 { return &c.reorderLimits.bytes }),
	counter("rx_reorder_flows", number{least: 4, greatest: reorder.MaxFlows, names: []named{minval(4), maxval(reorder.MaxFlows), byDefault(reorder.DefaultFlows)}},
		func(c *config) *uint32 { return &c.reorderLimits.flows }),
}

var (
	primaryModes = []Mode{ActiveBackup, BalanceTLB, BalanceALB}
	lbModes      = []Mode{BalanceTLB, BalanceALB}
	lacpModes    = []Mode{IEEE8023AD}
	arpModes     = []Mode{BalanceRR, ActiveBackup, BalanceXOR, Broadcast}
)

func policyNames() []string {
	names := make([]string, xmithash.VLANSrcMAC+1)
	for i := range names {
		names[i] = xmithash.Policy(i).String()
	}
	return names
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func ms(d time.Duration) uint64 { return uint64(d / time.Millisecond) }

// numeric is an option that is a number, or a word for one.
func numeric(name string, n number, set func(*config, uint64), get func(*config) uint64) option {
	return option{name: name, values: &n,
		set: func(ch *change, text string) error {
			v, ok := n.parse(text)
			if !ok {
				return &OptionError{Reason: "allowed are " + n.allowed(), Err: ErrInvalid}
			}
			set(&ch.config, v)
			return nil
		},
		get: func(c *config) string { return n.show(get(c)) },
	}
}

func counter(name string, n number, field func(*config) *uint32) option {
	return numeric(name, n, func(c *config, v uint64) { *field(c) = uint32(v) },
		func(c *config) uint64 { return uint64(*field(c)) })
}

// keyword is an option that is a name, shown as the name and the number.
func keyword(name string, n number, field func(*config) *uint8) option {
	return numeric(name, n, func(c *config, v uint64) { *field(c) = uint8(v) },
		func(c *config) uint64 { return uint64(*field(c)) })
}

// whileEmpty makes an option one that is set only while there are no slaves.
func whileEmpty(o option) option {
	o.empty = true
	return o
}

// delay is an option in milliseconds that is kept in passes of miimon.
func delay(name string, greatest uint64, field func(*config) *uint32) option {
	n := fromZero(greatest, 0)
	return option{name: name, values: &n,
		set: func(ch *change, text string) error {
			v, ok := n.parse(text)
			if !ok {
				return &OptionError{Reason: "allowed are " + n.allowed() + " (milliseconds)", Err: ErrInvalid}
			}
			if ch.miimon == 0 {
				return &OptionError{Reason: "miimon is 0, and the delay counts its passes", Err: ErrPrecondition}
			}
			passes := v / ms(ch.miimon)
			if rounded := passes * ms(ch.miimon); rounded != v {
				ch.warn("%s %d is not a multiple of miimon %d: rounded down to %d", name, v, ms(ch.miimon), rounded)
			}
			*field(&ch.config) = uint32(passes)
			return nil
		},
		get: func(c *config) string { return strconv.FormatUint(ms(c.passes(*field(c))), 10) },
	}
}

// numPeerNotif is one variable with two names.
func numPeerNotif() option {
	o := counter("num_grat_arp", fromZero(255, 1),
		func(c *config) *uint32 { return &c.numPeerNotif })
	o.alias = "num_unsol_na"
	return o
}

func packetsPerSlave() option {
	o := counter("packets_per_slave", number{greatest: 65535, names: []named{byDefault(1), maxval(65535)}},
		func(c *config) *uint32 { return &c.packetsPerSlave })
	o.modes = []Mode{BalanceRR}
	return o
}

// unavailable is an option of Linux that this version refuses, at any value but
// its default, instead of taking it and doing nothing. Linux itself knows
// use_carrier at one value only.
func unavailable(name string, n number, in []Mode, value uint64) option {
	o := numeric(name, n, nil, func(*config) uint64 { return value })
	o.modes = in
	o.set = func(ch *change, text string) error {
		v, ok := n.parse(text)
		switch {
		case !ok:
			return &OptionError{Reason: "allowed are " + n.allowed(), Err: ErrInvalid}
		case v != value:
			return &OptionError{Reason: "only " + n.name(value) + " for now", Err: ErrUnavailable}
		}
		return nil
	}
	return o
}

func (ch *change) warn(format string, args ...any) {
	ch.warnings = append(ch.warnings, fmt.Sprintf(format, args...))
}

// OptionNames returns the names of all options, in the order in which several
// are applied.
func OptionNames() []string {
	names := make([]string, len(optionTable))
	for i := range optionTable {
		names[i] = optionTable[i].name
	}
	return names
}

// findOption returns the row of an option by name.
func findOption(name string) *option {
	i := slices.IndexFunc(optionTable, func(o option) bool { return o.name == name || o.alias == name && name != "" })
	if i < 0 {
		return nil
	}
	return &optionTable[i]
}
