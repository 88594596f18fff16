package bridge_test

import (
	"testing"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/tap/bridge"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// sink is a device that keeps nothing, and what is attached to it.
type sink struct {
	*device
	attached stack.NetworkDispatcher
}

func (s *sink) Attach(d stack.NetworkDispatcher)                         { s.attached = d }
func (s *sink) IsAttached() bool                                         { return s.attached != nil }
func (s *sink) WritePackets(l stack.PacketBufferList) (int, tcpip.Error) { return l.Len(), nil }

// newNull makes a bridge between a device and a bond that take everything at no
// cost.
func newNull(tb testing.TB) *sink {
	tb.Helper()
	b, err := bonding.New(bonding.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.Close)
	if err := b.Enslave("eth0", linktest.NewNull(linktest.NullOptions{}), bonding.SlaveOptions{}); err != nil {
		tb.Fatal(err)
	}
	s := &sink{device: newDevice()}
	br, err := bridge.New(s, b, bridge.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(br.Close)
	return s
}

// frames is a list as a device delivers it.
func frames(n int) stack.PacketBufferList {
	var list stack.PacketBufferList
	for i := range n {
		list.PushBack(linktest.Packet(linktest.Flow4(i).UDP(make([]byte, 1000))))
	}
	return list
}

// Frames pass without an allocation.
func TestPassingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newNull(t)
	list := frames(16)
	defer list.Reset()
	to := s.attached.(link.ListDispatcher)
	if n := testing.AllocsPerRun(200, func() { to.DeliverList(list) }); n != 0 {
		t.Errorf("%v allocations for a list", n)
	}
	one := list.AsSlice()[0]
	if n := testing.AllocsPerRun(200, func() { to.DeliverNetworkPacket(0x800, one) }); n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}

// BenchmarkOut is what a bridge costs a frame, above a bond on a null link.
func BenchmarkOut(b *testing.B) {
	s := newNull(b)
	list := frames(16)
	defer list.Reset()
	to := s.attached.(link.ListDispatcher)
	b.ReportAllocs()
	for b.Loop() {
		to.DeliverList(list)
	}
}
