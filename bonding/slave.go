package bonding

import (
	"fmt"
	"sync/atomic"

	"bondstack/bonding/flowmap"
	"bondstack/bonding/tlb"
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// SlaveOptions are the settings of one slave. Zero is the default of each.
type SlaveOptions struct {
	// Priority ranks the slaves in modes with an active one [prio]: the
	// greatest that is up is preferred. Default 0.
	Priority int32
	// ActorPortPriority is the priority of the port in LACP [actor_port_prio],
	// 1 to 65535. Default 255. Only in 802.3ad.
	ActorPortPriority uint16
	// QueueID is shown in the status [queue_id], 0 to 16. gVisor's packets
	// carry no queue mapping, so none is ever matched. Default 0.
	QueueID uint16
	// Weight is the slave's weight in xmit_hash_map consistent [weight, not in
	// Linux], 1 to 1000000000. Default 0: its speed in Mbit/s, and the greatest
	// of the others' where it does not know it.
	Weight uint32
	// Disabled keeps the slave out of use whatever its link says, until
	// SetSlaveEnabled.
	Disabled bool
	// Listener receives the frames of this slave that the bond does not take
	// because the slave is inactive, as a packet socket on a Linux slave
	// would: LLDP and other link-local control frames among them. It is
	// called as the bond's own dispatcher would be. Default: none; the frames
	// are counted and dropped.
	Listener stack.NetworkDispatcher
}

// maxQueueID is the number of transmit queues of a Linux bond (tx_queues).
const maxQueueID = 16

// MaxWeight is the greatest weight of a slave: a speed of 1 Pbit/s.
const MaxWeight = 1_000_000_000

// slave is one link of a bond. The first group never changes after enslaving
// and is read by the data path; the second belongs to the control side.
type slave struct {
	bond *Bond
	ep   stack.LinkEndpoint
	port port // what ep delivers to
	// taps is who else has what the slave sends and receives; nil: nobody.
	taps atomic.Pointer[taps]
	slot int    // index in snapshot.receivers and in the dedup table
	room uint32 // largest host GSO packet it takes whole; 0: none
	// untagged has GSO packets with VLAN tags cut before: the link would take
	// the tags for a part of the IP header.
	untagged bool
	// urgent has a control frame wait for room, and data give way to it.
	urgent   atomic.Bool
	listener stack.NetworkDispatcher
	counters slaveCounters // in cache lines of their own
	// portNumber is the slave's in LACP, 0 in other modes.
	portNumber uint16
	// control bounds the control frames that are listened to.
	control controlLimiter
	// controlTurn counts the LACPDUs sent.
	controlTurn atomic.Uint32
	controls    controlQueue
	hello       helloSlave
	// detached is set before the grace period of Release: from then on no
	// frame of the bond's own is sent either.
	detached atomic.Bool
	// apart is how its frames are received while no snapshot has it: as it joins,
	// and from its dismissal until it is detached. nil: not at all.
	apart atomic.Pointer[receiver]
	// own are the frames of the adaptive modes that are being sent.
	own ownFrames

	device *deviceSlave // nil: the endpoint is of no table

	// probing is set while probes are written, which may block.
	probing atomic.Bool

	// The following are guarded by bond.mu.
	name string
	linkMachine
	state    link.State // as last looked at
	verdicts verdicts
	arpSlave
	lastLinkUp instant
	backup     bool // role
	rxInactive bool // receive is suppressed
	disabled   bool // by hand
	goneUntil  instant
	loss       loss
	flap       flapGuard
	draining   bool              // Drain was called
	silenced   bool              // by Cut
	graceUntil instant           // until then an inactive slave still receives
	lingerAddr tcpip.LinkAddress // that its link was told of for that time
	standsBack bool              // held back, and others serve
	permMAC    tcpip.LinkAddress // at the moment of enslaving
	permMTU    uint32
	mac        tcpip.LinkAddress // as recorded; the link's own, but in balance-tlb
	member     *tlb.Member       // in the balancer's present table
	failures   uint32
	queueID    uint16
	prio       int32
	weight     uint32 // 0: by speed
	draws      *flowmap.Draws
	// actorPortPrio is LACP's port priority.
	actorPortPrio uint16
	distributes   bool // LACP lets it send, as was told last
	released      bool
	cancel        func() // ends the state subscription
}

// look reads the link's present state.
func (s *slave) look() { s.state = link.StateOf(s.ep) }

// setMAC gives the slave an address: its link, and what is recorded of it. It is
// called from within Bond.set. Where the link does not take the address, nothing
// has changed, and the error says what it keeps.
func (s *slave) setMAC(addr tcpip.LinkAddress) error {
	old := s.ep.LinkAddress()
	if old != addr {
		s.ep.SetLinkAddress(addr)
	}
	if got := s.ep.LinkAddress(); got != addr {
		s.ep.SetLinkAddress(old)
		return &SlaveError{"set", s.name, fmt.Sprintf("link address %s is not taken, it stays at %s", addr, old), ErrAddress}
	}
	s.mac = addr
	return nil
}

// usable is Linux's "device up and carrier on", with what the user and the
// data path have to say besides.
func (s *slave) usable() bool { return !s.disabled && s.goneUntil == 0 && s.state.Usable() }

// canTransmit reports whether the modes that spread may use the slave.
func (s *slave) canTransmit() bool {
	return s.link == linkUp && !s.backup && s.usable() && !s.standsBack
}

func (s *slave) displayName(none string) string {
	if s == nil {
		return none
	}
	return s.name
}

// setActive and setInactive change the role as Linux does: all_slaves_active
// keeps a backup receiving.
func (s *slave) setActive() {
	s.backup = false
	s.rxInactive = false
}

func (s *slave) setInactive() {
	s.backup = true
	s.rxInactive = !s.bond.config.allSlavesActive
}

// isEthernet reports whether an endpoint carries Ethernet frames.
func isEthernet(ep stack.LinkEndpoint) bool {
	return ep.ARPHardwareType() == header.ARPHardwareEther
}
