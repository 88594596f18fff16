package lacp

// UnknownSpeed may be given as a speed that is not known; 0 is as good.
const UnknownSpeed uint32 = 1<<32 - 1

// LinkState is what a port's link knows of itself. A link that knows nothing
// but that it is up, as a virtual one, is LinkState{Up: true}.
type LinkState struct {
	Up    bool
	Speed uint32 // in Mbit/s; 0 or UnknownSpeed where not known
	// Half is whether the link is known to be half duplex. Such a port does
	// not speak LACP and is never aggregated, as in Linux. Where Linux takes
	// an unknown duplex for half, it counts as full here: virtual links have
	// to aggregate.
	Half bool
}

// MaxUserKey is the greatest value of ad_user_port_key.
const MaxUserKey = 1023

// The layout of an operational key, as in Linux.
const (
	keyFullDuplex = 1 << 0
	keySpeedShift = 1
	keyUserShift  = 6
)

// speedCode is the code of a speed in the key, by Linux 6.18. Ports of unknown
// or odd speed have 0 and count as equal.
func speedCode(mbps uint32) uint16 {
	for i, s := range [...]uint32{10, 100, 1000, 2500, 5000, 10000, 14000, 20000, 25000, 40000, 50000,
		56000, 100000, 200000, 400000, 800000} {
		if s == mbps {
			return uint16(i) + 2
		}
	}
	return 0
}

// key is the operational key of a port: user key, speed and duplex. A link that
// is down has neither speed nor duplex.
func (l *LinkState) key(user uint16) uint16 {
	k := user << keyUserShift
	if !l.Up {
		return k
	}
	k |= speedCode(l.Speed) << keySpeedShift
	if !l.Half {
		k |= keyFullDuplex
	}
	return k
}

// bandwidth is the speed for comparisons, 0 where not known.
func (l *LinkState) bandwidth() uint64 {
	if l.Speed == UnknownSpeed {
		return 0
	}
	return uint64(l.Speed)
}
