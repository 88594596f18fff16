package stack_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"bondstack/link/wire"
	"bondstack/stack"
)

// BenchmarkThroughput carries TCP between two hosts on one and four streams, on
// a wire with nothing in its way, one with a round trip of 10 ms, and one that
// also loses one frame in 10,000. It prints the rate in Gbit/s and the segments
// that were sent anew.
func BenchmarkThroughput(b *testing.B) {
	for _, way := range []struct {
		name string
		wire.Impairments
	}{
		{name: "near"},
		{"far", wire.Impairments{Delay: 5 * time.Millisecond}},
		{"lossy", wire.Impairments{Delay: 5 * time.Millisecond, Loss: 1e-4}},
	} {
		for _, control := range []string{"reno", "cubic"} {
			for _, most := range []int{1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20} {
				for _, streams := range []int{1, 4} {
					name := fmt.Sprintf("%s/%s/buffer=%dMiB/streams=%d", way.name, control, most>>20, streams)
					b.Run(name, func(b *testing.B) { benchThroughput(b, way.Impairments, control, most, streams) })
				}
			}
		}
	}
}

func benchThroughput(b *testing.B, way wire.Impairments, control string, most, streams int) {
	end := wire.EndOptions{Impairments: way}
	left, right := newWire(b, wire.Options{A: end, B: end})
	buffer := stack.BufferSize{Max: most}
	host := func(ep *wire.Endpoint, address string) *stack.Host {
		return newHost(b, ep, stack.HostOptions{
			Addresses:         []netip.Prefix{prefix(address)},
			CongestionControl: control, SendBuffer: buffer, ReceiveBuffer: buffer,
		})
	}
	from, to := host(left, "10.0.0.1/24"), host(right, "10.0.0.2/24")
	l := mustListen(b, to, "10.0.0.2:80")
	const piece = 1 << 20
	b.SetBytes(piece)
	var ends []net.Conn
	for range streams {
		c, s := connect(b, from, l)
		ends = append(ends, c, s)
	}
	before := from.Stack().Stats().TCP.Retransmits.Value()
	b.ResetTimer()
	var done sync.WaitGroup
	for i := range streams {
		size := int64(b.N) * piece / int64(streams)
		done.Go(func() { send(b, ends[2*i], size) })
		done.Go(func() { receive(b, ends[2*i+1], size) })
	}
	done.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)*piece*8/1e9/b.Elapsed().Seconds(), "Gbit/s")
	b.ReportMetric(float64(from.Stack().Stats().TCP.Retransmits.Value()-before), "retransmits")
}

func send(b *testing.B, c net.Conn, size int64) {
	buf := make([]byte, 256<<10)
	for size > 0 {
		n, err := c.Write(buf[:min(size, int64(len(buf)))])
		if err != nil {
			b.Error(err)
			return
		}
		size -= int64(n)
	}
}

func receive(b *testing.B, c net.Conn, size int64) {
	buf := make([]byte, 256<<10)
	for size > 0 {
		n, err := c.Read(buf)
		if err != nil {
			b.Error(err)
			return
		}
		size -= int64(n)
	}
}

// BenchmarkRoundTrip carries one byte there and one back.
func BenchmarkRoundTrip(b *testing.B) {
	left, right := newWire(b, wire.Options{})
	a := newHost(b, left, pairOptions("1", nil))
	c, s := connect(b, a, mustListen(b, newHost(b, right, pairOptions("2", nil)), "10.0.0.2:80"))
	go io.Copy(s, s)
	buf := make([]byte, 1)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUDP sends datagrams that fill a frame, as fast as they are taken.
func BenchmarkUDP(b *testing.B) {
	left, right := newWire(b, wire.Options{})
	a := newHost(b, left, pairOptions("1", nil))
	to := newHost(b, right, pairOptions("2", nil))
	server := mustListenPacket(b, to, "udp", "10.0.0.2:53")
	go func() {
		buf := make([]byte, 2048)
		for {
			if _, _, err := server.ReadFromUDPAddrPort(buf); err != nil {
				return
			}
		}
	}()
	c, err := a.Dial("udp", "10.0.0.2:53")
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 1472)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	stats := to.Stack().Stats()
	b.ReportMetric(100*float64(stats.UDP.ReceiveBufferErrors.Value())/float64(b.N), "%lost")
}

// BenchmarkCuts sends 256 MiB over a wire that is cut five times for 50 ms, as a
// failover cuts it, and prints the median time with each way to find losses. A
// transfer that has not ended after 5 s counts as 5.
func BenchmarkCuts(b *testing.B) {
	for _, recovery := range []string{"dupack", "rack"} {
		b.Run(recovery, func(b *testing.B) {
			var times []float64
			for range b.N {
				times = append(times, cutTransfer(b, recovery).Seconds())
			}
			slices.Sort(times)
			b.ReportMetric(times[len(times)/2], "s-median")
			b.ReportMetric(times[len(times)-1], "s-max")
		})
	}
}

func cutTransfer(b *testing.B, recovery string) time.Duration {
	const size, most = 256 << 20, 5 * time.Second
	left, right := newWire(b, wire.Options{})
	host := func(ep *wire.Endpoint, address string) *stack.Host {
		return newHost(b, ep, stack.HostOptions{Addresses: []netip.Prefix{prefix(address)}, Recovery: recovery})
	}
	from, to := host(left, "10.0.0.1/24"), host(right, "10.0.0.2/24")
	defer from.Close()
	defer to.Close()
	c, s := connect(b, from, mustListen(b, to, "10.0.0.2:80"))
	go func() {
		io.CopyN(struct{ io.Writer }{c}, zeros{}, size)
		c.Close()
	}()
	go func() {
		for range 5 {
			time.Sleep(20 * time.Millisecond)
			left.SetCut(true)
			right.SetCut(true)
			time.Sleep(50 * time.Millisecond)
			left.SetCut(false)
			right.SetCut(false)
		}
	}()
	began := time.Now()
	s.SetReadDeadline(began.Add(most))
	io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{s})
	return time.Since(began)
}

// zeros is a stream of zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
