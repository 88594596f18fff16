package bonding

import (
	"fmt"
	"strconv"
	"strings"
)

// Mode is a bonding mode. The numbers are Linux's, and zero is its default.
type Mode uint8

// The bonding modes.
const (
	BalanceRR    Mode = 0 // frames in turn over all slaves
	ActiveBackup Mode = 1 // one slave carries all, another takes over
	BalanceXOR   Mode = 2 // the slave is chosen by a hash of the frame
	Broadcast    Mode = 3 // every frame on every slave
	IEEE8023AD   Mode = 4 // link aggregation by LACP
	BalanceTLB   Mode = 5 // unicast IP over all slaves by load, reception on one
	BalanceALB   Mode = 6 // as balance-tlb, and reception on all slaves
)

// modeInfo is what is fixed for a mode.
type modeInfo struct {
	name string
	long string // as /proc/net/bonding names it
	// primary: the mode has a meaningful active slave.
	primary bool
	// hash: slaves are chosen by xmit_hash_policy.
	hash bool
	// arp: the ARP monitor is permitted.
	arp bool
}

var modes = [...]modeInfo{
	BalanceRR:    {name: "balance-rr", long: "load balancing (round-robin)", arp: true},
	ActiveBackup: {name: "active-backup", long: "fault-tolerance (active-backup)", primary: true, arp: true},
	BalanceXOR:   {name: "balance-xor", long: "load balancing (xor)", hash: true, arp: true},
	Broadcast:    {name: "broadcast", long: "fault-tolerance (broadcast)", arp: true},
	IEEE8023AD:   {name: "802.3ad", long: "IEEE 802.3ad Dynamic link aggregation", hash: true},
	BalanceTLB:   {name: "balance-tlb", long: "transmit load balancing", primary: true},
	BalanceALB:   {name: "balance-alb", long: "adaptive load balancing", primary: true},
}

func (m Mode) valid() bool     { return int(m) < len(modes) }
func (m Mode) info() *modeInfo { return &modes[m] }

// writer returns the function that sends packets by the mode. It is resolved
// when a snapshot is built.
func (m Mode) writer() writeFunc {
	return [len(modes)]writeFunc{
		BalanceRR:    writeBalanceRR,
		ActiveBackup: writeActiveBackup,
		BalanceXOR:   writeBalanceXOR,
		Broadcast:    writeBroadcast,
		IEEE8023AD:   writeBalanceXOR, // over the ports that distribute; see config.writer
		BalanceTLB:   writeBalanceTLB,
		BalanceALB:   writeBalanceALB,
	}[m]
}

// String returns Linux's name of the mode.
func (m Mode) String() string {
	if !m.valid() {
		return "mode " + strconv.Itoa(int(m))
	}
	return modes[m].name
}

// ParseMode reads a mode by Linux's name or number. The error lists what is
// allowed.
func ParseMode(text string) (Mode, error) {
	for i := range modes {
		if text == modes[i].name || text == strconv.Itoa(i) {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("mode %q: allowed are %s", text, strings.Join(ModeNames(), ", "))
}

// ModeNames returns the names of the seven modes in the order of their
// numbers.
func ModeNames() []string {
	names := make([]string, len(modes))
	for i := range modes {
		names[i] = fmt.Sprintf("%s (%d)", modes[i].name, i)
	}
	return names
}

// MarshalText writes the mode's name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a mode's name or number.
func (m *Mode) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMode(string(text))
	return err
}

// AvailableModes returns the modes that this version can run: all seven.
func AvailableModes() []Mode {
	list := make([]Mode, len(modes))
	for i := range list {
		list[i] = Mode(i)
	}
	return list
}
