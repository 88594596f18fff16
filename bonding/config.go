package bonding

import (
	"time"

	"bondstack/bonding/lacp"
	"bondstack/bonding/reorder"
	"bondstack/bonding/xmithash"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// config is every option of a bond, resolved. It is a plain value: a change is
// made on a copy, checked as a whole, and taken over or thrown away.
//
// Delays are counts of monitor passes, as in Linux: they are given in
// milliseconds, rounded down, and scale when miimon changes.
type config struct {
	mode      Mode
	miimon    time.Duration // 0: off
	updelay   uint32        // passes
	downdelay uint32        // passes

	rule MonitorRule
	arp  arpConfig

	primary     string
	reselect    PrimaryReselect
	failOverMAC FailOverMAC

	policy          xmithash.Policy
	hashMap         HashMap
	packetsPerSlave uint32 // 0: random

	numPeerNotif   uint32
	peerNotifDelay uint32 // passes

	allSlavesActive bool
	minLinks        uint32
	resendIGMP      uint32
	lpInterval      uint32 // seconds
	tlbStatic       bool   // tlb_dynamic_lb off
	ipv6Receive     bool   // ipv6_receive_balance
	adSelect        uint8
	rxDedup         RxDedup
	rxReorder       RxReorder
	reorderLimits   reorderLimits
	flapBackoff     time.Duration // 0: off
	probeInterval   time.Duration // 0: off
	probeMissedMax  uint32
	lacp            lacpConfig
}

// lacpConfig are the options of 802.3ad alone.
type lacpConfig struct {
	passive     bool              // lacp_active off
	fast        bool              // lacp_rate
	sysPrio     uint16            // ad_actor_sys_prio
	system      tcpip.LinkAddress // ad_actor_system; empty: the bond's address
	userKey     uint16            // ad_user_port_key
	independent bool              // coupled_control off
	strict      bool              // lacp_strict
	// broadcastNeighbor is broadcast_neighbor.
	broadcastNeighbor bool
}

// defaults returns the options of a new bond: Linux's, but for miimon.
func defaults() config {
	return config{
		miimon:          100 * time.Millisecond,
		packetsPerSlave: 1,
		numPeerNotif:    1,
		resendIGMP:      1,
		lpInterval:      1,
		probeMissedMax:  3,
		arp:             arpConfig{missedMax: defaultMissedMax},
		reorderLimits:   reorderLimits{hold: reorder.DefaultHold, bytes: reorder.DefaultBytes, flows: reorder.DefaultFlows},
		lacp:            lacpConfig{sysPrio: lacp.DefaultSystemPriority},
	}
}

// dedup reports whether copies are to be discarded.
func (c *config) dedup() bool {
	return c.rxDedup == DedupOn || c.rxDedup == DedupAuto && c.mode == Broadcast
}

// longest is the longest delay: the greatest count of passes at the greatest
// miimon is more than a Duration holds.
const longest = time.Duration(1 << 62)

// passes returns how long n passes of miimon last.
func (c *config) passes(n uint32) time.Duration { return times(n, c.miimon) }

// times returns n times d, or the longest delay.
func times(n uint32, d time.Duration) time.Duration {
	if n != 0 && d > longest/time.Duration(n) {
		return longest
	}
	return time.Duration(n) * d
}
