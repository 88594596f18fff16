package bonding

import (
	"sync"

	"bondstack/bonding/rcu"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// LockedBond is a Bond whose data path reads the snapshot under a read-write
// mutex, held over a write to a slave, instead of by an atomic load in a read
// section: the way of a bonding driver without RCU. It is what a Bond is measured
// against (`bondstack bench --compare lock`), and of no other use: a slave that
// delivers to the bond from within a write may deadlock with a writer.
//
// What differs is here: a Bond of New finds locked nil where it publishes a
// snapshot and where it makes a port, and on no other way.
type LockedBond struct {
	*Bond
	mu sync.RWMutex
}

// NewLocked is New for a LockedBond.
func NewLocked(o Options) (*LockedBond, error) {
	b, err := New(o)
	if err != nil {
		return nil, err
	}
	l := &LockedBond{Bond: b}
	b.mu.Lock()
	b.locked = l
	b.mu.Unlock()
	return l, nil
}

// publish makes a snapshot the one that the data path reads.
func (b *Bond) publish(s *snapshot) {
	if l := b.locked; l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	b.snap.Store(s)
}

// portOf returns what a slave's endpoint delivers to.
func (b *Bond) portOf(s *slave) stack.NetworkDispatcher {
	if l := b.locked; l != nil {
		return &lockedPort{port{slave: s}, l}
	}
	s.port.slave = s
	return &s.port
}

// WritePackets implements stack.LinkWriter.
func (l *LockedBond) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.snap.Load()
	return s.write(s, pkts, rcu.OwnStripe())
}

// AddHeader implements stack.LinkEndpoint.
func (l *LockedBond) AddHeader(pkt *stack.PacketBuffer) {
	l.look()
	l.Bond.AddHeader(pkt)
}

// look takes the lock for as long as reading a pointer takes.
func (l *LockedBond) look() {
	l.mu.RLock()
	defer l.mu.RUnlock()
}

// lockedPort is a port that takes the lock to find the snapshot.
type lockedPort struct {
	port
	bond *LockedBond
}

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (p *lockedPort) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	p.bond.look()
	p.port.DeliverNetworkPacket(protocol, pkt)
}
