package xdp

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/link/packet"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// turn is how long one kind of endpoint is measured at a time.
const turn = 300 * time.Millisecond

// BenchmarkRate sends and receives frames as fast as may be by this package and
// by link/packet, in turns on the same veth pair, and prints the medians side by
// side in thousands of packets a second. Received are those that a packet endpoint
// at the other end sends, without pause; sent are those that reach the other end.
func BenchmarkRate(b *testing.B) {
	for _, direction := range []string{"receive", "send"} {
		for _, size := range []int{64, 1500} {
			b.Run(fmt.Sprintf("%s/size=%d", direction, size), func(b *testing.B) { rate(b, direction == "send", size) })
		}
	}
}

// rate measures both kinds in turns.
func rate(b *testing.B, send bool, size int) {
	p := newPair(b, 1)
	p.peer.Sysctl("net.ipv6.conf.all.disable_ipv6", "1")
	kinds := map[string]func() stack.LinkEndpoint{
		"xdp":    func() stack.LinkEndpoint { return p.open(Options{}) },
		"packet": func() stack.LinkEndpoint { return p.openPacket("veth0", true) },
	}
	got := map[string][]float64{}
	for b.Loop() {
		for _, kind := range []string{"packet", "xdp"} {
			ep := kinds[kind]()
			got[kind] = append(got[kind], p.measure(ep, send, size))
			ep.Close()
		}
	}
	median := func(kind string) float64 {
		slices.Sort(got[kind])
		return got[kind][len(got[kind])/2]
	}
	b.ReportMetric(median("packet")/1e3, "packet-kpps")
	b.ReportMetric(median("xdp")/1e3, "xdp-kpps")
	b.ReportMetric(median("xdp")/median("packet"), "xdp/packet")
	b.ReportMetric(0, "ns/op")
}

// openPacket makes a packet endpoint in the near namespace, or in the peer's.
func (p *pair) openPacket(name string, near bool) *packet.Endpoint {
	p.t.Helper()
	ns := p.peer
	if near {
		ns = p.near
	}
	var e *packet.Endpoint
	ns.Do(func() {
		var err error
		if e, err = packet.New(name, packet.Options{}); err != nil {
			p.t.Fatal(err)
		}
	})
	p.t.Cleanup(e.Close)
	return e
}

// counter is a dispatcher that counts.
type counter struct{ n atomic.Uint64 }

func (c *counter) DeliverNetworkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) { c.n.Add(1) }
func (c *counter) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer)    {}

// measure returns how many frames a second pass by an endpoint.
func (p *pair) measure(ep stack.LinkEndpoint, send bool, size int) float64 {
	near, peer := p.near.HardwareAddress("veth0"), p.peer.HardwareAddress("veth1")
	received := &counter{}
	ep.Attach(received)
	if send {
		before := p.peerReceived()
		start := time.Now()
		pump(ep, peer, near, size)
		return float64(p.peerReceived()-before) / time.Since(start).Seconds()
	}
	other := p.openPacket("veth1", false)
	defer other.Close()
	start := time.Now()
	pump(other, near, peer, size)
	spent := time.Since(start)
	p.t.Logf("%T: %d of %d frames received", ep, received.n.Load(), other.Stats().TXPackets)
	return float64(received.n.Load()) / spent.Seconds()
}

// pump writes frames of a size, 64 at a time, for one turn.
func pump(ep stack.LinkEndpoint, dst, src net.HardwareAddr, size int) {
	var list stack.PacketBufferList
	defer list.Reset()
	for range 64 {
		list.PushBack(packetOf(etherFrame(dst, src, strings.Repeat("r", size-14))))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for start := time.Now(); time.Since(start) < turn; {
			if n, _ := ep.WritePackets(list); n < list.Len() {
				runtime.Gosched()
			}
		}
	})
	wg.Wait()
}

// peerReceived is how many frames the kernel has counted at the other end.
func (p *pair) peerReceived() uint64 {
	p.t.Helper()
	var n uint64
	out := p.peer.Run("cat", "/proc/net/dev")
	for line := range strings.Lines(out) {
		if _, counts, ok := strings.Cut(line, "veth1:"); ok {
			var bytes uint64
			fmt.Sscan(counts, &bytes, &n)
		}
	}
	return n
}
