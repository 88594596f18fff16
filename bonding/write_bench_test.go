package bonding_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writeModes are the modes and hashes whose cost is measured.
var writeModes = []struct {
	name string
	opts bonding.Options
}{
	{"balance-rr", bonding.Options{Mode: bonding.BalanceRR}},
	{"active-backup", bonding.Options{Mode: bonding.ActiveBackup}},
	{"balance-xor/layer2", bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: xmithash.Layer2}},
	{"balance-xor/layer3+4", bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: xmithash.Layer34}},
	{"balance-xor/consistent", bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: xmithash.Layer34, XmitHashMap: bonding.HashConsistent}},
	{"broadcast", bonding.Options{Mode: bonding.Broadcast}},
	{"balance-tlb", bonding.Options{Mode: bonding.BalanceTLB}},
}

// benchBond returns a bond of two null slaves that a NIC seems to have.
func benchBond(tb testing.TB, o bonding.Options, slaves ...stack.LinkEndpoint) *bonding.Bond {
	tb.Helper()
	b, err := bonding.New(o)
	if err != nil {
		tb.Fatalf("New() = %v", err)
	}
	tb.Cleanup(b.Close)
	if len(slaves) == 0 {
		slaves = []stack.LinkEndpoint{linktest.NewNull(linktest.NullOptions{GSO: true}), linktest.NewNull(linktest.NullOptions{GSO: true})}
	}
	for i, ep := range slaves {
		if err := b.Enslave(fmt.Sprintf("eth%d", i), ep, bonding.SlaveOptions{}); err != nil {
			tb.Fatalf("Enslave() = %v", err)
		}
	}
	b.Attach(&linktest.Counter{})
	return b
}

// benchList returns a list of n TCP packets of as many flows.
func benchList(tb testing.TB, n int) stack.PacketBufferList {
	var list stack.PacketBufferList
	for i := range n {
		f := linktest.Flow4(i)
		list.PushBack(linktest.Packet(f.TCP(linktest.Segment{Payload: make([]byte, 1400)})))
	}
	tb.Cleanup(list.DecRef)
	return list
}

func benchWrite(b *testing.B, ep stack.LinkEndpoint, goroutines, packets int) {
	b.ReportAllocs()
	b.SetParallelism(goroutines)
	var flow atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		// Each goroutine has packets of its own, as each of a stack's does.
		var list stack.PacketBufferList
		for range packets {
			f := linktest.Flow4(int(flow.Add(1)) & 0xff)
			list.PushBack(linktest.Packet(f.TCP(linktest.Segment{Payload: make([]byte, 1400)})))
		}
		defer list.DecRef()
		for pb.Next() {
			if n, err := ep.WritePackets(list); n != packets || err != nil {
				b.Errorf("WritePackets() = %d, %v, want %d, nil", n, err, packets)
				return
			}
		}
	})
	if packets > 1 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(packets), "ns/packet")
	}
}

// BenchmarkWritePackets measures a call with one packet, and a list of 32, on a
// bare null endpoint and on bonds of two of them. The goroutines run on
// GOMAXPROCS processors, so the time of a call is wall time over all calls.
func BenchmarkWritePackets(b *testing.B) {
	for _, packets := range []int{1, 32} {
		for _, goroutines := range []int{1, 2, 4, 8} { // times GOMAXPROCS
			suffix := fmt.Sprintf("packets=%d/goroutines=%dxP", packets, goroutines)
			b.Run("null/"+suffix, func(b *testing.B) {
				benchWrite(b, linktest.NewNull(linktest.NullOptions{GSO: true}), goroutines, packets)
			})
			for _, m := range writeModes {
				b.Run(m.name+"/"+suffix, func(b *testing.B) {
					benchWrite(b, benchBond(b, m.opts), goroutines, packets)
				})
			}
		}
	}
}

// BenchmarkWritePacketsSerial is the same on one goroutine alone.
func BenchmarkWritePacketsSerial(b *testing.B) {
	for _, packets := range []int{1, 32} {
		run := func(name string, ep func(b *testing.B) stack.LinkEndpoint) {
			b.Run(fmt.Sprintf("%s/packets=%d", name, packets), func(b *testing.B) {
				e, list := ep(b), benchList(b, packets)
				b.ReportAllocs()
				for b.Loop() {
					e.WritePackets(list)
				}
			})
		}
		run("null", func(*testing.B) stack.LinkEndpoint { return linktest.NewNull(linktest.NullOptions{GSO: true}) })
		for _, m := range writeModes {
			run(m.name, func(b *testing.B) stack.LinkEndpoint { return benchBond(b, m.opts) })
		}
	}
}

// What the bond itself allocates in a write: nothing, in any mode, for one
// packet and for lists.
func TestWritePacketsDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, m := range writeModes {
		for _, packets := range []int{1, 2, 64} {
			t.Run(fmt.Sprintf("%s/packets=%d", m.name, packets), func(t *testing.T) {
				b, list := benchBond(t, m.opts), benchList(t, packets)
				b.WritePackets(list) // storage grows once
				if n := testing.AllocsPerRun(200, func() { b.WritePackets(list) }); n > 0 {
					t.Errorf("WritePackets() allocates %v times, want 0", n)
				}
			})
		}
	}
}
