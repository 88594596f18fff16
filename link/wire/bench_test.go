package wire_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// BenchmarkTCP moves bytes between two netstacks over one wire.
func BenchmarkTCP(b *testing.B) {
	for _, bb := range []struct {
		name string
		opts wire.Options
	}{
		{"gso", wire.Options{}},
		{"nogso", wire.Options{DisableGSO: true}},
	} {
		for _, streams := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/streams=%d", bb.name, streams), func(b *testing.B) {
				benchmarkTCP(b, bb.opts, streams)
			})
		}
	}
}

func benchmarkTCP(b *testing.B, opts wire.Options, streams int) {
	x, y, err := wire.New(opts)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	defer y.Close()
	benchmarkStacks(b, x, y, streams)
}

func benchmarkStacks(b *testing.B, x, y *wire.Endpoint, streams int) {
	b.ReportAllocs()
	s, t := newStack(b, x, 1), newStack(b, y, 2)
	const block = 1 << 20
	b.SetBytes(int64(streams) * block)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range streams {
		client, server := connect(b, s, t, 2, uint16(5000+i))
		wg.Go(func() {
			<-start
			if err := pump(client, int64(b.N)*block); err != nil {
				b.Error(err)
			}
		})
		wg.Go(func() {
			n, err := discard(server)
			if err != nil || n != int64(b.N)*block {
				b.Errorf("received %d bytes, %v, want %d", n, err, int64(b.N)*block)
			}
		})
	}
	b.ResetTimer()
	used := processorTime(b)
	close(start)
	wg.Wait()
	b.StopTimer()
	reportRate(b, int64(b.N)*int64(streams)*block, processorTime(b)-used)
	b.ReportMetric(float64(s.Stats().TCP.Retransmits.Value()), "retransmits")
	if d := x.Stats().Tx; d != (wire.TxDrops{}) {
		b.Logf("drops: %+v", d)
	}
}

// BenchmarkFrame moves frames from one goroutine to a dispatcher that counts
// them, without a netstack.
func BenchmarkFrame(b *testing.B) {
	for _, bb := range []struct {
		name    string
		payload int
		batch   int
		sync    bool
		delay   time.Duration
	}{
		{name: "mtu/batch=1", payload: 1400, batch: 1},
		{name: "mtu/batch=32", payload: 1400, batch: 32},
		{name: "gso/batch=1", payload: 60000, batch: 1},
		{name: "mtu/batch=1/synchronous", payload: 1400, batch: 1, sync: true},
		{name: "mtu/batch=32/delay", payload: 1400, batch: 32, delay: time.Microsecond},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			x, y, err := wire.New(wire.Options{Synchronous: bb.sync, A: wire.EndOptions{Impairments: wire.Impairments{Delay: bb.delay}}, B: wire.EndOptions{Promiscuous: true}})
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			defer y.Close()
			var count linktest.Counter
			y.Attach(&count)
			frame := linktest.Flow4(0).TCP(linktest.Segment{Payload: make([]byte, bb.payload)})
			var kept stack.PacketBufferList
			for range bb.batch {
				kept.PushBack(linktest.GSOPacket(frame, 1448))
			}
			defer kept.DecRef()
			b.ResetTimer()
			full := 0
			for sent := 0; sent < b.N; {
				n, err := x.WritePackets(kept) // a wire leaves the list as it is
				if err != nil {
					full++
					runtime.Gosched()
				}
				sent += n
			}
			for count.Packets.Load()+y.Stats().Rx.QueueFull < uint64(b.N) {
				runtime.Gosched()
			}
			b.ReportMetric(float64(full)/float64(b.N), "full/op")
		})
	}
}

// BenchmarkSwitch moves bytes between two netstacks through a switch.
func BenchmarkSwitch(b *testing.B) {
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 2})
	if err != nil {
		b.Fatal(err)
	}
	defer sw.Close()
	benchmarkStacks(b, sw.Port(0), sw.Port(1), 4)
}
