package bonding

import (
	"encoding/binary"

	"bondstack/bonding/flowmap"
	"bondstack/bonding/reorder"
	"bondstack/bonding/xmithash"
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// snapshot is everything that the data path reads. Bond.publish builds it on
// the control side and stores it with one atomic operation; nobody changes it
// afterwards. It is read by WritePackets inside a read section, and by the
// slaves' ports.
type snapshot struct {
	// What reception looks at for each frame is together, so that it lies in few
	// cache lines.
	mac48      uint64
	dispatcher stack.NetworkDispatcher // nil while no NIC has the bond
	list       link.ListDispatcher     // the dispatcher where it takes lists
	// receivers is indexed by slave.slot.
	receivers []receiver
	// own are the packed addresses besides mac that frames are received for.
	own    []uint64
	copies *copies // nil: copies are not discarded
	// reorder is nil where frames are delivered as they come.
	reorder *reorder.Stage
	// lb is what balance-tlb and balance-alb need besides; nil in other modes.
	lb *balanceView
	// arp has ARP and IPv6 frames looked at by the ARP monitor.
	arp    *arpWatch
	hellos *hellos // nil: hellos are ordinary frames
	// first looks for the first frames after a failover, with unmarked as the
	// mode's write function; nil at most times.
	first *firstFrames
	// slow has slow-protocol frames given to LACP.
	slow bool
	// promiscuous takes unicast frames for other addresses too.
	promiscuous bool

	mac   tcpip.LinkAddress
	write writeFunc
	// active is Linux's curr_active_slave, in every mode.
	active   *slave
	unmarked writeFunc

	hash            xmithash.Func
	flows           *flowmap.Table // to usable; nil: modulo
	packetsPerSlave uint32
	// bond holds what outlives a snapshot: the turn's counter, counters of
	// drops, the source of randomness.
	bond *Bond

	// usable are those that may transmit, in the order of enslaving (Linux's
	// usable array): the hash and the turn pick from these.
	usable []*slave
	// turn maps a number of balance-rr to a slave: its own, or the next one
	// that may transmit. It is empty where none may.
	turn []*slave
	// all are the slaves in the order of enslaving.
	all []*slave
	// up are those of all that broadcast uses: link up, whatever the role.
	up []*slave
	// standby are the slaves that take over, best first, when the active
	// one's link turns out to be gone while a packet is sent.
	standby []*slave

	// reserve are the slaves that stand back: a write that finds the link of all
	// others gone still has these. Not in 802.3ad, where the partner would not
	// listen.
	reserve []*slave
	// serving are the slaves whose loss is a failover.
	serving []*slave
}

// receiver is how frames from one slave are received.
type receiver struct {
	slave    *slave // nil: no slave has the slot
	inactive bool
	lingers  bool // an inactive one still takes what is for the bond's address
	// own48 is the packed address that a lingering slave takes frames for
	// besides: its own, which the bond had until now. 0: none.
	own48 uint64
}

// receiver returns how a member's frames are received.
func (b *Bond) receiver(s *slave) receiver {
	return receiver{slave: s, inactive: s.rxInactive, lingers: s.graceUntil != 0, own48: b.lingerMAC(s)}
}

// writeFunc sends a list by a mode. It returns how many packets slaves took.
type writeFunc func(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error)

// build makes a snapshot of the control side's present state.
func (b *Bond) build() *snapshot {
	s := &snapshot{
		write:           b.config.writer(),
		mac:             b.mac,
		mac48:           mac48([]byte(b.mac)),
		dispatcher:      b.dispatcher,
		list:            listDispatcher(b.dispatcher),
		all:             append([]*slave(nil), b.slaves...),
		active:          b.active,
		hash:            b.config.policy.Func(xmithash.VLAN),
		packetsPerSlave: b.config.packetsPerSlave,
		bond:            b,
		copies:          b.copies,
		reorder:         b.reordering.stage,
		slow:            b.lag != nil,
		own:             b.packedOwn(),
		promiscuous:     b.promiscuous,
		arp:             b.watch(),
	}
	for _, sl := range s.all {
		for len(s.receivers) <= sl.slot {
			s.receivers = append(s.receivers, receiver{})
		}
		s.receivers[sl.slot] = b.receiver(sl)
		if sl.link == linkUp && sl.usable() {
			switch {
			case !sl.standsBack:
				s.up = append(s.up, sl)
			case b.config.mode != IEEE8023AD:
				s.reserve = append(s.reserve, sl)
			}
		}
		if sl.canTransmit() && !b.belowMinLinks() && !b.sharesMAC(sl) {
			s.usable = append(s.usable, sl)
		}
	}
	s.flows = b.flowTable(b.config.hashMap, s.usable)
	s.turn = turns(s.all)
	if b.config.mode.balances() {
		s.lb = b.balanceView(s.usable)
	}
	s.standby = standby(s.up, s.active)
	if b.hellos != nil {
		s.hellos = b.hellos.hellos
	}
	s.serving = s.serves(b.config.mode.info())
	s.tapped(b.captures)
	return s
}

// turns maps each index to the slave that sends for it: the first at or after
// it that may transmit, else the first before it.
func turns(all []*slave) []*slave {
	turn := make([]*slave, len(all))
	var next *slave
	for range 2 { // the second round wraps
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].canTransmit() {
				next = all[i]
			}
			turn[i] = next
		}
	}
	if next == nil {
		return nil
	}
	return turn
}

// standby orders the slaves that are up, but for the active one, by priority;
// equals stay in the order of enslaving.
func standby(up []*slave, active *slave) []*slave {
	var list []*slave
	for _, s := range up {
		if s == active {
			continue
		}
		i := len(list)
		for i > 0 && list[i-1].prio < s.prio {
			i--
		}
		list = append(list, nil)
		copy(list[i+1:], list[i:])
		list[i] = s
	}
	return list
}

// addresses packs both addresses of an Ethernet header, as mac48 does.
func addresses(eth []byte) (dst, src uint64) {
	return binary.BigEndian.Uint64(eth) >> 16, binary.BigEndian.Uint64(eth[4:]) & (1<<48 - 1)
}

// mac48 packs an Ethernet address, so that comparing two is one instruction.
// addr has at least six bytes, or the result is zero.
func mac48(addr []byte) uint64 {
	if len(addr) < 6 {
		return 0
	}
	return uint64(addr[0])<<40 | uint64(addr[1])<<32 | uint64(addr[2])<<24 |
		uint64(addr[3])<<16 | uint64(addr[4])<<8 | uint64(addr[5])
}
