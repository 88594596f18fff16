package bonding

import "slices"

// OptionInfo describes an option, for documentation, schemas and completion.
type OptionInfo struct {
	Name  string // Linux's
	Alias string // another name of it; "" for none
	// Doc says in a sentence what the option does.
	Doc string
	// Unit is that of a number: "ms", "us", "s", "bytes" or "".
	Unit string
	// Modes are those in which it may be set; all where it may be set in all.
	Modes []Mode
	// Used are the modes in which it does something.
	Used []Mode
	// WhileEmpty and WhileDown say that it is set only while the bond has no
	// slaves, or while no NIC has it. With a change of the mode it always is.
	WhileEmpty, WhileDown bool
	// Number says that the option is a number from Least to Greatest, or one of
	// Words. Others are texts: names, addresses, lists.
	Number          bool
	Least, Greatest uint64
	// Words are the names of values.
	Words []string
	// List says that it is a list of addresses, as text with commas between them.
	List bool
	// Default is the value of a new bond, as Linux's sysfs shows it.
	Default string
}

// optionDocs are a sentence for each option, its unit, and where it is used, nil
// for wherever it may be set.
var optionDocs = map[string]struct {
	doc  string
	unit string
	used []Mode
}{
	"mode":                 {"How frames are spread over the slaves.", "", nil},
	"monitor_rule":         {"What becomes of a slave when several monitors judge its link: only one may run (exclusive), any that says up, or all have to. Not in Linux.", "", nil},
	"active_slave":         {"The slave that is active now; the selection goes on from there.", "", nil},
	"miimon":               {"How often links are polled; 0 is never.", "ms", nil},
	"updelay":              {"How long a link has to be up before it is used, rounded down to a multiple of miimon.", "ms", nil},
	"downdelay":            {"How long a link has to be down before its slave is, rounded down to a multiple of miimon.", "ms", nil},
	"peer_notif_delay":     {"The time between two announcements after a failover, rounded down to a multiple of miimon.", "ms", primaryModes},
	"use_carrier":          {"Obsolete in Linux: only on is left.", "", nil},
	"arp_interval":         {"How often the targets are asked whether they are there; 0 is never.", "ms", nil},
	"arp_ip_target":        {"The IPv4 addresses that the ARP monitor asks, at most 16.", "", arpModes},
	"ns_ip6_target":        {"The IPv6 addresses that the ARP monitor asks, at most 16.", "", arpModes},
	"arp_validate":         {"Which received frames are evidence for the ARP monitor that a link works.", "", nil},
	"arp_all_targets":      {"Whether any target that is heard is enough for a link, or all have to be.", "", []Mode{ActiveBackup}},
	"primary":              {"The slave that is active whenever it can be.", "", nil},
	"primary_reselect":     {"When the primary takes over again.", "", primaryModes},
	"fail_over_mac":        {"What becomes of MAC addresses in a failover.", "", []Mode{ActiveBackup}},
	"xmit_hash_policy":     {"Which fields of a frame the hash is over that chooses its slave.", "", []Mode{BalanceXOR, IEEE8023AD, BalanceTLB}},
	"resend_igmp":          {"How many times multicast memberships are reported after a failover.", "", []Mode{BalanceRR, ActiveBackup, BalanceTLB, BalanceALB}},
	"num_grat_arp":         {"How many times addresses are announced after a failover.", "", primaryModes},
	"all_slaves_active":    {"Whether what inactive slaves receive is delivered.", "", nil},
	"min_links":            {"How many ports the active aggregator needs for the bond to have a carrier.", "", lacpModes},
	"lp_interval":          {"How often switches are told where the slaves' addresses are.", "s", lbModes},
	"packets_per_slave":    {"How many packets go out by one slave before the next is taken; 0 is a random slave for each.", "", nil},
	"lacp_active":          {"Whether LACPDUs are sent before the partner does.", "", nil},
	"lacp_rate":            {"How often the partner is to send LACPDUs: each 30 s (slow) or each second (fast).", "", nil},
	"ad_select":            {"Which aggregator is the active one.", "", lacpModes},
	"ad_actor_sys_prio":    {"The system's priority in LACP.", "", nil},
	"ad_user_port_key":     {"The upper ten bits of the ports' keys in LACP.", "", nil},
	"ad_actor_system":      {"The system's address in LACP; zero is the bond's.", "", nil},
	"tlb_dynamic_lb":       {"Whether flows are placed by load, or by the hash alone.", "", nil},
	"arp_missed_max":       {"How many intervals of the ARP monitor a link may be silent.", "", nil},
	"coupled_control":      {"Whether a port sends as soon as its partner is in sync, without waiting until it collects.", "", nil},
	"broadcast_neighbor":   {"Whether ARP and neighbour discovery go out by every port, for partners that are several switches.", "", nil},
	"lacp_strict":          {"Whether a port without a partner carries no data.", "", nil},
	"queue_id":             {"A slave's queue, as SLAVE:ID; shown in the status.", "", nil},
	"xmit_hash_map":        {"How the hash chooses a slave: as in Linux (modulo), or so that few flows move when slaves come and go (consistent). Not in Linux.", "", []Mode{BalanceXOR, IEEE8023AD, BalanceTLB}},
	"weight":               {"A slave's weight in xmit_hash_map consistent, as SLAVE:WEIGHT. Not in Linux.", "", nil},
	"probe_interval":       {"The time between hellos that two bonds exchange on each slave; 0 is none. Not in Linux.", "ms", nil},
	"probe_missed_max":     {"How many hellos in a row may be missed. Not in Linux.", "", nil},
	"flap_backoff":         {"How long a slave that is lost again is held back, at first; 0 is never. Not in Linux.", "ms", nil},
	"ipv6_receive_balance": {"Whether IPv6 neighbours, too, are told which slave to send to. Not in Linux.", "", nil},
	"rx_dedup":             {"Whether copies of a frame that several slaves deliver are discarded; auto is on in broadcast. Not in Linux.", "", nil},
	"rx_reorder":           {"Whether the order of TCP streams is restored; auto is on in balance-rr. Not in Linux.", "", nil},
	"rx_reorder_hold":      {"How long a stream waits for a link that delivers nothing while others do. Not in Linux.", "us", nil},
	"rx_reorder_bytes":     {"How much memory frames that wait for their order may take. Not in Linux.", "bytes", nil},
	"rx_reorder_flows":     {"How many streams whose order is restored are known at once. Not in Linux.", "", nil},
}

// OptionTable describes all options, in the order in which several are applied.
func OptionTable() []OptionInfo {
	all := AvailableModes()
	usual := defaults()
	table := make([]OptionInfo, len(optionTable))
	for i := range optionTable {
		o := &optionTable[i]
		d := optionDocs[o.name]
		info := OptionInfo{Name: o.name, Alias: o.alias, Doc: d.doc, Unit: d.unit, Modes: all, WhileEmpty: o.empty, WhileDown: o.down}
		if o.modes != nil {
			info.Modes = slices.Clone(o.modes)
		}
		info.Used = info.Modes
		if d.used != nil {
			info.Used = slices.Clone(d.used)
		}
		if n := o.values; n != nil {
			info.Number, info.Least, info.Greatest = true, n.least, n.greatest
			for _, w := range n.names {
				info.Words = append(info.Words, w.name)
			}
		}
		info.List = o.name == "arp_ip_target" || o.name == "ns_ip6_target"
		if len(o.modes) > 0 {
			usual.mode = o.modes[0] // some show nothing in others
		} else {
			usual.mode = 0
		}
		if o.get != nil {
			info.Default = o.get(&usual)
		}
		table[i] = info
	}
	return table
}
