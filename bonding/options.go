package bonding

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"bondstack/bonding/xmithash"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Options are the settings of a new bond. In every field zero means the
// default, and negative means off where a value can be off. Fields that stand
// for an option of Linux have its name in brackets and its range.
type Options struct {
	// Name is the bond's name in status, logs and errors. Default "bond0".
	Name string
	// Mode is the bonding mode [mode]. Default balance-rr, as in Linux.
	Mode Mode

	// MIIMon is how often links are polled [miimon], in whole milliseconds.
	// Default 100 ms, unlike Linux, whose default is not to look at all.
	// Links that tell of changes are heard at once besides. Negative turns
	// monitoring off, with a warning: no slave is ever found to be down.
	MIIMon time.Duration
	// UpDelay is how long a link has to be up before it is used [updelay].
	// It is rounded down to a multiple of MIIMon. Default 0.
	UpDelay time.Duration
	// DownDelay is how long a link has to be down before its slave counts as
	// down [downdelay]. It is rounded down to a multiple of MIIMon. Default 0.
	DownDelay time.Duration

	// MonitorRule is what becomes of a slave when several monitors judge its
	// link [monitor_rule, not in Linux]. Default exclusive: only one of MIIMon
	// and ARPInterval may be set.
	MonitorRule MonitorRule
	// ARPInterval is how often targets are asked whether they are there
	// [arp_interval], in whole milliseconds: the ARP monitor, which finds
	// failures that leave the carrier. Unless MonitorRule lets both run, MIIMon
	// is off then. Default off. Only in balance-rr, active-backup, balance-xor
	// and broadcast.
	ARPInterval time.Duration
	// ARPIPTargets are the IPv4 addresses that are asked [arp_ip_target], at
	// most 16.
	ARPIPTargets []netip.Addr
	// NSIP6Targets are the IPv6 addresses that are asked [ns_ip6_target], at
	// most 16.
	NSIP6Targets []netip.Addr
	// ARPValidate is which received frames are evidence that a link works
	// [arp_validate]. Default none: any frame is.
	ARPValidate ARPValidate
	// ARPAllTargets has a link of active-backup work only while all targets are
	// heard [arp_all_targets all], where frames are validated. Default: any.
	ARPAllTargets bool
	// ARPMissedMax is how many intervals a link may be silent [arp_missed_max],
	// 1 to 255. Default 2.
	ARPMissedMax int

	// Primary is the slave that is active whenever it can be [primary]. It
	// need not be there yet. Only in modes with an active slave.
	Primary string
	// PrimaryReselect is when the primary takes over again
	// [primary_reselect]. Default always.
	PrimaryReselect PrimaryReselect

	// FailOverMAC is what becomes of MAC addresses in a failover
	// [fail_over_mac], in active-backup. Default none: all slaves have the
	// bond's.
	FailOverMAC FailOverMAC

	// XmitHashPolicy is what balance-xor, 802.3ad and balance-tlb hash
	// [xmit_hash_policy]. Default layer2.
	XmitHashPolicy xmithash.Policy
	// XmitHashMap is how that hash chooses a slave [xmit_hash_map, not in
	// Linux]: modulo, as in Linux, or consistent, which moves few flows when
	// slaves go and come. Default modulo.
	XmitHashMap HashMap
	// PacketsPerSlave is how many packets balance-rr sends on one slave before
	// it goes on to the next [packets_per_slave], 1 to 65535. Default 1;
	// negative picks a slave at random for each packet (Linux: 0).
	PacketsPerSlave int

	// NumGratARP is how many times the addresses are announced after a
	// failover [num_grat_arp, num_unsol_na], 1 to 255. Default 1; negative
	// none.
	NumGratARP int
	// PeerNotifDelay is the time between two announcements
	// [peer_notif_delay], rounded down to a multiple of MIIMon. Default: one
	// MIIMon.
	PeerNotifDelay time.Duration

	// ResendIGMP is how many times the stack's multicast memberships are
	// reported after a failover [resend_igmp], 1 to 255: the first about 10 ms
	// after it, then every 200 ms. In balance-rr and the modes with an active
	// slave. Default 1; negative none.
	ResendIGMP int

	// AllSlavesActive delivers what inactive slaves receive
	// [all_slaves_active]. Default off.
	AllSlavesActive bool
	// MinLinks is how many usable ports the active aggregator of 802.3ad must
	// have [min_links]: with fewer the bond has no carrier and sends nothing.
	// Default 0, as 1.
	MinLinks int

	// StaticTLB has balance-tlb choose slaves by XmitHashPolicy alone, whatever
	// they carry [tlb_dynamic_lb off]. Default: by load.
	StaticTLB bool
	// LPInterval is how often balance-tlb and balance-alb tell switches where
	// the slaves' addresses are [lp_interval], in whole seconds. Default 1 s.
	LPInterval time.Duration
	// IPv6ReceiveBalance has balance-alb tell IPv6 neighbours, too, which slave
	// to send to [ipv6_receive_balance, not in Linux]. Default off: only IPv4
	// is balanced.
	IPv6ReceiveBalance bool

	// LACP are the options of 802.3ad alone.
	LACP LACPOptions
	// RxDedup discards the copies that several slaves deliver of one frame
	// [rx_dedup, not in Linux]. Default auto: on in broadcast, off elsewhere.
	RxDedup RxDedup

	// RxReorder restores the order of TCP streams that come by several slaves
	// [rx_reorder, not in Linux]. Default auto: on in balance-rr, off
	// elsewhere.
	RxReorder RxReorder
	// RxReorderHold is how long a stream waits for a link that delivers nothing
	// while others do [rx_reorder_hold, in microseconds], 10 µs to 1 s in whole
	// microseconds. A frame waits four times as long at most. Losses that show
	// otherwise do not wait for it. Default 25 ms.
	RxReorderHold time.Duration
	// RxReorderBytes is how much memory waiting frames may take
	// [rx_reorder_bytes], 64 KiB to 2 GiB - 1. Default 32 MiB.
	RxReorderBytes int
	// RxReorderFlows is how many streams are known at once
	// [rx_reorder_flows], 4 to 65536: two a connection. Default 2048.
	RxReorderFlows int
	// ProbeInterval is the time between the hellos that two bonds exchange on
	// each of their slaves, so as to find a failure in one direction too
	// [probe_interval, not in Linux], 1 ms to 60 s in whole milliseconds;
	// 10 ms is usual. Both need it, and a peer that does not speak is never
	// missed. Default off.
	ProbeInterval time.Duration
	// ProbeMissedMax is how many hellos in a row may be missed
	// [probe_missed_max, not in Linux], 1 to 255. Default 3.
	ProbeMissedMax int

	// FlapBackoff holds back a slave that is lost again and again, while another
	// can serve [flap_backoff, not in Linux]: the second loss in a row for this
	// long, each further one for twice as long as the one before, up to 64
	// times; each 64 times without a loss have one forgotten. In whole
	// milliseconds, up to 10 minutes. Default off.
	FlapBackoff time.Duration

	// LinkAddress is the bond's MAC address. Default: that of the first slave,
	// kept while the bond lives.
	LinkAddress tcpip.LinkAddress
	// MTU is the bond's MTU, 68 to 65535 bytes. Default: that of the first
	// slave, or 1500 while there is none. It is set on every slave.
	MTU uint32

	// Clock drives monitors and delays. Default: the real clock.
	Clock tcpip.Clock
	// Rand returns random numbers, for packets_per_slave 0, made-up addresses
	// and hash seeds. It is called from many goroutines. Default:
	// math/rand/v2.
	Rand func() uint64
	// Logger receives what Linux would log. Default: nothing is logged;
	// warnings are in the status too.
	Logger *slog.Logger
}

// PrimaryReselect is when the primary slave takes over again.
type PrimaryReselect uint8

// The values of primary_reselect.
const (
	ReselectAlways  PrimaryReselect = 0 // as soon as it is up
	ReselectBetter  PrimaryReselect = 1 // if it is faster than the active slave
	ReselectFailure PrimaryReselect = 2 // only when the active slave fails
)

var reselectNames = []string{"always", "better", "failure"}

// String returns Linux's name.
func (p PrimaryReselect) String() string { return nameOf(reselectNames, uint64(p)) }

// RxDedup is whether copies of a frame are discarded.
type RxDedup uint8

// The values of rx_dedup.
const (
	DedupAuto RxDedup = 0 // on in broadcast
	DedupOff  RxDedup = 1
	DedupOn   RxDedup = 2
)

var dedupNames = []string{"auto", "off", "on"}

// String returns "auto", "off" or "on".
func (d RxDedup) String() string { return nameOf(dedupNames, uint64(d)) }

// RxReorder is whether the order of TCP streams is restored.
type RxReorder uint8

// The values of rx_reorder.
const (
	ReorderAuto RxReorder = 0 // on in balance-rr
	ReorderOff  RxReorder = 1
	ReorderOn   RxReorder = 2
)

var reorderNames = []string{"auto", "off", "on"}

// String returns "auto", "off" or "on".
func (r RxReorder) String() string { return nameOf(reorderNames, uint64(r)) }

func nameOf(names []string, n uint64) string {
	if n < uint64(len(names)) {
		return names[n]
	}
	return strconv.FormatUint(n, 10)
}

// values returns the fields that are set as options by name, so that Go and
// text settings pass the same checks.
func (o *Options) values() (map[string]string, error) {
	v := map[string]string{"mode": strconv.Itoa(int(o.Mode))}
	var errs []error
	ms := func(name string, d time.Duration, off bool) {
		switch {
		case d == 0:
		case d < 0 && off:
			v[name] = "0"
		case d < 0 || d%time.Millisecond != 0:
			errs = append(errs, &OptionError{name, d.String(), "a positive number of whole milliseconds", ErrInvalid})
		default:
			v[name] = strconv.FormatInt(d.Milliseconds(), 10)
		}
	}
	count := func(name string, n int, off bool) {
		switch {
		case n == 0:
		case n < 0 && off:
			v[name] = "0"
		default:
			v[name] = strconv.Itoa(n)
		}
	}
	ms("miimon", o.MIIMon, true)
	ms("updelay", o.UpDelay, false)
	ms("downdelay", o.DownDelay, false)
	ms("flap_backoff", o.FlapBackoff, true)
	ms("probe_interval", o.ProbeInterval, true)
	count("probe_missed_max", o.ProbeMissedMax, false)
	ms("peer_notif_delay", o.PeerNotifDelay, false)
	ms("arp_interval", o.ARPInterval, false)
	count("monitor_rule", int(o.MonitorRule), false)
	count("arp_validate", int(o.ARPValidate), false)
	count("arp_missed_max", o.ARPMissedMax, false)
	if len(o.ARPIPTargets) > 0 {
		v["arp_ip_target"] = strings.Join(addressTexts(o.ARPIPTargets), ",")
	}
	if len(o.NSIP6Targets) > 0 {
		v["ns_ip6_target"] = strings.Join(addressTexts(o.NSIP6Targets), ",")
	}
	if o.ARPAllTargets {
		v["arp_all_targets"] = "all"
	}
	count("packets_per_slave", o.PacketsPerSlave, true)
	count("num_grat_arp", o.NumGratARP, true)
	count("resend_igmp", o.ResendIGMP, true)
	count("min_links", o.MinLinks, false)
	count("primary_reselect", int(o.PrimaryReselect), false)
	count("fail_over_mac", int(o.FailOverMAC), false)
	count("xmit_hash_policy", int(o.XmitHashPolicy), false)
	count("xmit_hash_map", int(o.XmitHashMap), false)
	count("rx_dedup", int(o.RxDedup), false)
	count("rx_reorder", int(o.RxReorder), false)
	count("rx_reorder_bytes", o.RxReorderBytes, false)
	count("rx_reorder_flows", o.RxReorderFlows, false)
	switch d := o.RxReorderHold; {
	case d == 0:
	case d < 0 || d%time.Microsecond != 0:
		errs = append(errs, &OptionError{"rx_reorder_hold", d.String(), "a positive number of whole microseconds", ErrInvalid})
	default:
		v["rx_reorder_hold"] = strconv.FormatInt(d.Microseconds(), 10)
	}
	if o.Primary != "" {
		v["primary"] = o.Primary
	}
	errs = append(errs, o.LACP.values(v))
	o.addBalance(v, &errs)
	if o.AllSlavesActive {
		v["all_slaves_active"] = "1"
	}
	return v, errors.Join(errs...)
}

// config resolves o over the defaults, with all faults in one error.
func (o *Options) config() (config, error) {
	values, err := o.values()
	errs := []error{err}
	ch := change{config: defaults()}
	if o.ARPInterval > 0 && o.MonitorRule == MonitorExclusive {
		ch.miimon = 0 // unless it is set, which is refused
	}
	errs = append(errs, ch.apply(values))
	if o.MTU != 0 && (o.MTU < minMTU || o.MTU > maxMTU) {
		errs = append(errs, fmt.Errorf("MTU %d: %w: allowed are %d to %d", o.MTU, ErrMTU, minMTU, maxMTU))
	}
	if a := o.LinkAddress; a != "" {
		errs = append(errs, checkAddress(a))
	}
	if err := CheckName(o.Name); err != nil && o.Name != "" {
		errs = append(errs, fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	return ch.config, errors.Join(errs...)
}
