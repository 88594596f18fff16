package linktest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var (
	_ stack.NetworkDispatcher = (*Sink)(nil)
	_ stack.NetworkDispatcher = (*Counter)(nil)
)

// Delivered is a packet that a link delivered to a Sink.
type Delivered struct {
	// Protocol is what the link said it is.
	Protocol tcpip.NetworkProtocolNumber
	// Frame is the whole frame, a copy. LinkHeader is how many bytes of it the
	// link had consumed.
	Frame      []byte
	LinkHeader int
	// PktType, RXChecksumValidated and GSO are those of the packet.
	PktType             tcpip.PacketType
	RXChecksumValidated bool
	GSO                 stack.GSO
}

// Sink is a dispatcher that keeps what is delivered to it. The zero value is
// ready.
type Sink struct {
	once sync.Once
	// mu guards the following.
	mu        sync.Mutex
	arrived   sync.Cond
	delivered []Delivered
	onDeliver func(tcpip.NetworkProtocolNumber, *stack.PacketBuffer)
}

func (s *Sink) init() { s.once.Do(func() { s.arrived.L = &s.mu }) }

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (s *Sink) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	s.init()
	v := pkt.ToView()
	d := Delivered{
		Protocol:            protocol,
		Frame:               append([]byte{}, v.AsSlice()...),
		LinkHeader:          len(pkt.LinkHeader().Slice()),
		PktType:             pkt.PktType,
		RXChecksumValidated: pkt.RXChecksumValidated,
		GSO:                 pkt.GSOOptions,
	}
	v.Release()
	s.mu.Lock()
	s.delivered = append(s.delivered, d)
	hook := s.onDeliver
	s.arrived.Broadcast()
	s.mu.Unlock()
	if hook != nil {
		hook(protocol, pkt)
	}
}

// DeliverLinkPacket implements stack.NetworkDispatcher. It does nothing.
func (*Sink) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// OnDeliver has f called for each packet after it is recorded, with no lock held.
// f may block, to hold the link's receiver. Nil ends it.
func (s *Sink) OnDeliver(f func(tcpip.NetworkProtocolNumber, *stack.PacketBuffer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onDeliver = f
}

// Delivered returns the packets delivered so far, in order.
func (s *Sink) Delivered() []Delivered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.delivered)
}

// Drain returns the packets delivered so far and forgets them.
func (s *Sink) Drain() []Delivered {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.delivered
	s.delivered = nil
	return d
}

// Await waits until n packets have been delivered, those drained not counted, and
// returns them all. It fails the test when they do not come.
func (s *Sink) Await(tb testing.TB, n int) []Delivered {
	tb.Helper()
	s.init()
	s.mu.Lock()
	defer s.mu.Unlock()
	await(tb, &s.arrived, func() bool { return len(s.delivered) >= n }, func() string {
		return fmt.Sprintf("%d packets to be delivered, saw %d", n, len(s.delivered))
	})
	return slices.Clone(s.delivered)
}

// Counter is a dispatcher that only counts, for benchmarks. The zero value is
// ready.
type Counter struct {
	// Packets and Bytes count what was delivered, Ethernet headers included.
	Packets, Bytes atomic.Uint64
}

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (c *Counter) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	c.Packets.Add(1)
	c.Bytes.Add(uint64(pkt.Size()))
}

// DeliverLinkPacket implements stack.NetworkDispatcher. It does nothing.
func (*Counter) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}
