package vlan_test

import (
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/vlan"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// sender is a packet that can be sent again and again.
type sender struct {
	ep   stack.LinkEndpoint
	list stack.PacketBufferList
}

func newSender(tb testing.TB, ep stack.LinkEndpoint, addHeader bool) *sender {
	s := &sender{ep: ep}
	pkt := linktest.Packet(from(baseMAC))
	if addHeader {
		pkt.DecRef()
		pkt = outgoing(ep, from(baseMAC))
		ep.AddHeader(pkt)
	}
	s.list.PushBack(pkt)
	tb.Cleanup(func() { s.list.DecRef() })
	return s
}

func (s *sender) write() { s.ep.WritePackets(s.list) }

// newNull is a trunk on a link that takes everything.
func newNull(tb testing.TB) *vlan.Trunk {
	return newTrunk(tb, linktest.NewNull(linktest.NullOptions{GSO: true}))
}

// newBonded is a trunk on a bond of two links that take everything.
func newBonded(tb testing.TB) *vlan.Trunk {
	b, err := bonding.New(bonding.Options{Mode: bonding.BalanceXOR})
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range []string{"eth0", "eth1"} {
		if err := b.Enslave(name, linktest.NewNull(linktest.NullOptions{GSO: true}), bonding.SlaveOptions{}); err != nil {
			tb.Fatal(err)
		}
	}
	return newTrunk(tb, b)
}

// arrival is a frame that arrives again and again. It is made anew each time, of
// pooled memory, as links do it.
type arrival struct {
	trunk *vlan.Trunk
	base  deliverer
	frame *buffer.View
	count linktest.Counter
}

// deliverer is a link of which the test is the receiving goroutine.
type deliverer struct {
	*linktest.Null
	to stack.NetworkDispatcher
}

func (d *deliverer) Attach(to stack.NetworkDispatcher) { d.to = to }
func (d *deliverer) IsAttached() bool                  { return d.to != nil }

func newArrival(tb testing.TB, o vlan.Options, frame []byte) *arrival {
	a := &arrival{base: deliverer{Null: linktest.NewNull(linktest.NullOptions{})}}
	a.trunk = newTrunk(tb, &a.base)
	add(tb, a.trunk, q(5), o).Attach(&a.count)
	a.trunk.Attach(&a.count)
	a.frame = buffer.NewViewWithData(frame)
	tb.Cleanup(a.frame.Release)
	return a
}

func (a *arrival) deliver() {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(a.frame.Clone())})
	eth, _ := pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	a.base.to.DeliverNetworkPacket(header.Ethernet(eth).Type(), pkt)
	pkt.DecRef()
}

// Neither direction allocates.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	bonded := newBonded(t)
	null := newNull(t)
	device := add(t, null, q(5), vlan.Options{LinkAddress: ownMAC, PriorityOf: vlan.ClassSelector})
	plain := newArrival(t, vlan.Options{}, linktest.VLAN(to(baseMAC), 0x8100, 5))
	own := newArrival(t, vlan.Options{LinkAddress: ownMAC}, linktest.VLAN(to(ownMAC), 0x8100, 5))
	pkts := make([]*stack.PacketBuffer, 0, 200)
	for range cap(pkts) {
		pkts = append(pkts, outgoing(device, from(ownMAC)))
	}
	defer func() {
		for _, pkt := range pkts[:cap(pkts)] {
			pkt.DecRef()
		}
	}()
	next := 0
	for name, f := range map[string]func(){
		"write":              newSender(t, device, true).write,
		"write on a bond":    newSender(t, add(t, bonded, q(5), vlan.Options{}), true).write,
		"write untagged":     newSender(t, bonded, true).write,
		"receive":            plain.deliver,
		"receive, addresses": own.deliver,
		"add header":         func() { device.AddHeader(pkts[next]); next++ },
	} {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s: %v allocations a frame, want 0", name, got)
		}
	}
	// A copy costs what the pools below do not have, which is nothing mostly.
	if got := testing.AllocsPerRun(100, newSender(t, add(t, null, q(6), vlan.Options{}), false).write); got > 1 {
		t.Errorf("writing plain frames: %v allocations a frame, want at most 1", got)
	}
	if plain.count.Packets.Load() == 0 || own.count.Packets.Load() == 0 {
		t.Error("nothing was received")
	}
}

func BenchmarkWrite(b *testing.B) {
	bench := func(name string, s *sender) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.write()
			}
		})
	}
	null, bonded := newNull(b), newBonded(b)
	bench("untagged/null", newSender(b, null, true))
	bench("device/null", newSender(b, add(b, null, q(5), vlan.Options{}), true))
	bench("copy/null", newSender(b, add(b, null, q(6), vlan.Options{}), false))
	bench("untagged/bond", newSender(b, bonded, true))
	bench("device/bond", newSender(b, add(b, bonded, q(5), vlan.Options{}), true))
}

func BenchmarkAddHeader(b *testing.B) {
	trunk := newNull(b)
	for name, ep := range map[string]stack.LinkEndpoint{"untagged": trunk, "device": add(b, trunk, q(5), vlan.Options{})} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: 64})
				pkt.NetworkProtocolNumber = header.IPv4ProtocolNumber
				ep.AddHeader(pkt)
				pkt.DecRef()
			}
		})
	}
}

func BenchmarkReceive(b *testing.B) {
	for name, a := range map[string]*arrival{
		"untagged":    newArrival(b, vlan.Options{}, to(baseMAC)),
		"device":      newArrival(b, vlan.Options{}, linktest.VLAN(to(baseMAC), 0x8100, 5)),
		"own address": newArrival(b, vlan.Options{LinkAddress: ownMAC}, linktest.VLAN(to(ownMAC), 0x8100, 5)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.deliver()
			}
		})
	}
}
