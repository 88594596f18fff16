package bonding_test

import (
	"fmt"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// ownList returns a list of n TCP packets of as many flows from the bond's own
// address, which may be balanced.
func ownList(tb testing.TB, b *bonding.Bond, n, size int) stack.PacketBufferList {
	var list stack.PacketBufferList
	for i := range n {
		f := linktest.Flow4(i)
		f.SrcMAC = b.LinkAddress()
		list.PushBack(linktest.Packet(f.TCP(linktest.Segment{Payload: make([]byte, size)})))
	}
	tb.Cleanup(list.DecRef)
	return list
}

// The bond's own frames go by both slaves, half of them as clones with another
// source, and still nothing is allocated.
func TestTLBDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, static := range []bool{false, true} {
		for _, packets := range []int{1, 2, 64} {
			b := benchBond(t, bonding.Options{Mode: bonding.BalanceTLB, StaticTLB: static})
			list := ownList(t, b, packets, 1400)
			b.WritePackets(list) // storage grows once
			if n := testing.AllocsPerRun(200, func() { b.WritePackets(list) }); n > 0 {
				t.Errorf("static %t, %d packets: WritePackets() allocates %v times, want 0", static, packets, n)
			}
		}
	}
}

// BenchmarkTLB is a call with the bond's own frames on one goroutine: of one
// packet, by the active slave or as a clone by another one, and of lists.
func BenchmarkTLB(b *testing.B) {
	run := func(name string, list func(*bonding.Bond) stack.PacketBufferList) {
		b.Run(name, func(b *testing.B) {
			bond := benchBond(b, bonding.Options{Mode: bonding.BalanceTLB})
			l := list(bond)
			bond.WritePackets(l)
			b.ReportAllocs()
			for b.Loop() {
				bond.WritePackets(l)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(l.Len()), "ns/packet")
		})
	}
	run("active/packets=1", func(bond *bonding.Bond) stack.PacketBufferList { return ownList(b, bond, 1, 1400) })
	run("other/packets=1", func(bond *bonding.Bond) stack.PacketBufferList {
		first := ownList(b, bond, 2, 1400)
		bond.WritePackets(first) // the active slave has flow 0
		var second stack.PacketBufferList
		second.PushBack(first.AsSlice()[1])
		return second
	})
	for _, n := range []int{32, 128} {
		run(fmt.Sprintf("both/packets=%d", n), func(bond *bonding.Bond) stack.PacketBufferList { return ownList(b, bond, n, 1400) })
	}
}
