package bonding

import (
	"fmt"

	"bondstack/link"
)

// Status is the state of a bond at one moment: what Linux shows of one, and the
// counters. The JSON form is stable: fields are added, never changed.
type Status struct {
	Name            string            `json:"name"`
	Mode            Mode              `json:"mode"`
	MACAddress      string            `json:"mac_address"`
	MTU             uint32            `json:"mtu"`
	Up              bool              `json:"up"`      // a NIC has the bond
	Carrier         bool              `json:"carrier"` // the link of a slave is up
	SpeedMbps       *uint32           `json:"speed_mbps"`
	Duplex          string            `json:"duplex"`
	ActiveSlave     string            `json:"active_slave"`
	Primary         string            `json:"primary"` // by name, there or not
	PrimaryReselect string            `json:"primary_reselect"`
	XmitHashPolicy  string            `json:"xmit_hash_policy"`
	MIIMonMs        uint64            `json:"miimon_ms"`
	UpDelayMs       uint64            `json:"updelay_ms"`
	DownDelayMs     uint64            `json:"downdelay_ms"`
	PeerNotifMs     uint64            `json:"peer_notif_delay_ms"`
	MonitorRule     string            `json:"monitor_rule"`
	ARPIntervalMs   uint64            `json:"arp_interval_ms"` // 0: no ARP monitor
	ARPMissedMax    uint32            `json:"arp_missed_max"`
	ARPValidate     string            `json:"arp_validate"`
	ARPIPTargets    []string          `json:"arp_ip_targets"`
	NSIP6Targets    []string          `json:"ns_ip6_targets"`
	Options         map[string]string `json:"options"` // all, as SetOption reads them
	Counters        Counters          `json:"counters"`
	Slaves          []SlaveStatus     `json:"slaves"`   // in the order of enslaving
	Warnings        []string          `json:"warnings"` // what looks odd at this moment
	LACP            *LACPStatus       `json:"lacp,omitempty"`
	Failovers       []Failover        `json:"failovers"` // the last 64, the oldest first
	FailoverTotals  FailoverTotals    `json:"failover_totals"`
	Reorder         *ReorderStatus    `json:"reorder,omitempty"`
	Balance         *BalanceStatus    `json:"balance,omitempty"`

	showsHash    bool
	showsPrimary bool
	primaryHere  bool
	policy       uint8
	longMode     string
}

// SlaveStatus is the state of one slave.
type SlaveStatus struct {
	Name             string            `json:"name"`
	State            string            `json:"state"`      // active or backup
	MIIStatus        string            `json:"mii_status"` // up, going down, down or going back
	Usable           bool              `json:"usable"`     // the link itself says that frames can pass
	Enabled          bool              `json:"enabled"`    // not disabled by hand
	SpeedMbps        *uint32           `json:"speed_mbps"` // null where unknown
	Duplex           string            `json:"duplex"`
	LinkFailureCount uint32            `json:"link_failure_count"`
	PermHWAddr       string            `json:"perm_hwaddr"`
	MACAddress       string            `json:"mac_address"`
	MTU              uint32            `json:"mtu"`
	Priority         int32             `json:"prio"`
	QueueID          uint16            `json:"queue_id"`
	Weight           uint32            `json:"weight"`          // 0: by speed
	Receives         bool              `json:"receives"`        // frames from it are delivered
	Monitors         map[string]string `json:"monitors"`        // what each says: up, going_down, down, going_back or unknown
	ARP              *ARPSlave         `json:"arp,omitempty"`   // while the ARP monitor runs
	Draining         bool              `json:"draining"`        // Drain was called
	Silenced         bool              `json:"silenced"`        // by Cut
	FlapLosses       uint32            `json:"flap_losses"`     // losses that flap_backoff counts
	FlapHoldMs       uint64            `json:"flap_hold_ms"`    // for how long it is held back yet
	StandsBack       bool              `json:"stands_back"`     // drained or held back, while others serve
	Probe            *ProbeStatus      `json:"probe,omitempty"` // with probe_interval
	Counters         Counters          `json:"counters"`
	LACP             *LACPPort         `json:"lacp,omitempty"`
	Balance          *SlaveBalance     `json:"balance,omitempty"`
}

// Counters count frames and bytes with their Ethernet headers, and drops by
// reason. A GSO packet counts as one frame. They only grow: those of a bond are
// the sums over its slaves, the released ones too. RxDropped counts frames that
// were lost; those that were not for the bond, or not by this slave (rx_inactive,
// rx_own, rx_other_host, rx_copy), are in Drops alone.
type Counters struct {
	TxPackets   uint64            `json:"tx_packets"`
	TxBytes     uint64            `json:"tx_bytes"`
	RxPackets   uint64            `json:"rx_packets"`
	RxBytes     uint64            `json:"rx_bytes"`
	RxMulticast uint64            `json:"rx_multicast"`
	TxDropped   uint64            `json:"tx_dropped"`
	RxDropped   uint64            `json:"rx_dropped"`
	Drops       map[string]uint64 `json:"drops"`
}

func (t *totals) counters() Counters {
	c := Counters{TxPackets: t.txPackets, TxBytes: t.txBytes, RxPackets: t.rxPackets, RxBytes: t.rxBytes,
		RxMulticast: t.rxMulticast, Drops: t.dropMap()}
	for i, n := range t.drops {
		switch r := dropReason(i); {
		case r < dropRxShort:
			c.TxDropped += n
		case r.inError():
			c.RxDropped += n
		}
	}
	return c
}

// Status returns the bond's present state.
func (b *Bond) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, mode, now := &b.config, b.config.mode.info(), b.now()
	sum := b.retired
	sum.addDrops(&b.drops)
	for _, s := range b.leaving {
		sum.add(s)
	}
	st := Status{
		Name: b.Name(), Mode: c.mode, MACAddress: b.mac.String(), MTU: b.MTU(),
		Up: b.dispatcher != nil, Carrier: b.carrier,
		Primary: c.primary, PrimaryReselect: c.reselect.String(), XmitHashPolicy: c.policy.String(),
		MIIMonMs: ms(c.miimon), UpDelayMs: ms(c.passes(c.updelay)), DownDelayMs: ms(c.passes(c.downdelay)),
		PeerNotifMs: ms(c.passes(c.peerNotifDelay)),
		MonitorRule: c.rule.String(), ARPIntervalMs: ms(c.arp.interval), ARPMissedMax: c.arp.missedMax, ARPValidate: c.arp.validate.String(),
		ARPIPTargets: addressTexts(c.arp.targets.V4), NSIP6Targets: addressTexts(c.arp.targets.V6),
		Options: map[string]string{}, Warnings: b.warnings(),
		Failovers: b.failovers.show(b.lostFrames(b.slaves)),
		Slaves:    make([]SlaveStatus, 0, len(b.slaves)),
		showsHash: mode.hash || c.mode.balances() && c.tlbStatic, showsPrimary: mode.primary, primaryHere: b.primary != nil,
		policy: uint8(c.policy), longMode: c.longMode(),
	}
	st.FailoverTotals = b.failovers.totals(st.Failovers)
	if mode.primary {
		st.ActiveSlave = b.active.displayName("")
	}
	for i := range optionTable {
		if o := &optionTable[i]; o.get != nil {
			st.Options[o.name] = o.get(c)
		}
	}
	for _, s := range b.slaves {
		sum.add(s)
		st.Slaves = append(st.Slaves, s.status(now))
		st.Slaves[len(st.Slaves)-1].Probe = b.probeStatus(s, now)
		st.Slaves[len(st.Slaves)-1].Monitors = b.verdictWords(s)
		st.Slaves[len(st.Slaves)-1].ARP = b.arpStatus(s, b.now())
	}
	if c.mode == IEEE8023AD {
		b.addLACPStatus(&st)
	}
	if c.mode.balances() {
		b.addBalanceStatus(&st)
	}
	st.Counters = sum.counters()
	st.Reorder = b.reorderStatus()
	state := b.linkState()
	st.SpeedMbps, st.Duplex = knownSpeed(state), state.Duplex.String()
	return st
}

func (s *slave) status(now instant) SlaveStatus {
	var t totals
	t.add(s)
	st := SlaveStatus{
		Name: s.name, State: "active", MIIStatus: s.link.String(),
		Usable: s.state.Usable(), Enabled: !s.disabled,
		SpeedMbps: knownSpeed(s.state), Duplex: s.state.Duplex.String(),
		LinkFailureCount: s.failures, PermHWAddr: s.permMAC.String(), MACAddress: s.ep.LinkAddress().String(),
		MTU: s.ep.MTU(), Priority: s.prio, QueueID: s.queueID, Weight: s.weight, Receives: !s.rxInactive || s.graceUntil != 0,
		Counters: t.counters(),
	}
	s.flap.forget(now, s.bond.config.flapBackoff)
	st.Draining, st.StandsBack, st.Silenced = s.draining, s.standsBack, s.silenced
	st.FlapLosses, st.FlapHoldMs = s.flap.losses, ms(s.flap.left(now))
	if s.backup {
		st.State = "backup"
	}
	return st
}

func knownSpeed(s link.State) *uint32 {
	if s.Speed == link.SpeedUnknown {
		return nil
	}
	return &s.Speed
}

// warnings lists what looks odd in the present state, for people.
func (b *Bond) warnings() []string {
	list := []string{}
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	c := &b.config
	switch targets := &c.arp.targets; {
	case c.monitors() == 0:
		add(unmonitored)
	case c.arp.interval > 0 && len(targets.V4)+len(targets.V6) == 0:
		add("arp_interval is set, but neither arp_ip_target nor ns_ip6_target: no slave can be found to work")
	}
	if c.mode.info().primary && c.primary != "" && b.primary == nil {
		add("primary %s is not among the slaves; it is taken when it is enslaved", c.primary)
	}
	if int(c.minLinks) > len(b.slaves) && c.minLinks > 0 {
		add("min_links is %d, but there are %d slaves", c.minLinks, len(b.slaves))
	}
	return list
}
