package packet

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/link/qdisc/fifo"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// BenchmarkThroughput moves bytes between a netstack on veth0 and the kernel's
// TCP on veth1, in turns over fdbased, this package's endpoint, that with
// Options.Exclusive and that behind netstack's fifo queue, and prints the median rates, their ratios to fdbased's, and
// the processor time that a gigabyte took, the peer's kernel included: other
// work on the machine changes that less. Each turn moves 64 MiB a stream, some 25
// ms: below 20 turns (-benchtime 20x) the ratios are chance.
func BenchmarkThroughput(b *testing.B) {
	for _, direction := range []string{"send", "receive"} {
		for _, streams := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/streams=%d", direction, streams), func(b *testing.B) {
				compare(b, direction == "send", streams)
			})
		}
	}
}

// compare runs turns over each kind of endpoint.
func compare(b *testing.B, send bool, streams int) {
	const each = 64 << 20
	kinds := []*track{
		newTrack(b, "fdbased", streams, func(p *pair) *host { return newHost(b, p.openFdbased(Options{})) }),
		newTrack(b, "packet", streams, func(p *pair) *host { return newHost(b, p.open(Options{})) }),
		newTrack(b, "exclusive", streams, func(p *pair) *host { return newHost(b, p.open(Options{Exclusive: true})) }),
		newTrack(b, "queued", streams, func(p *pair) *host {
			ep := p.open(Options{})
			return newHostWith(b, ep, stack.NICOptions{QDisc: fifo.New(ep, 1, 1024)})
		}),
	}
	for _, k := range kinds {
		k.turn(send, 8<<20) // windows open
		k.took, k.used = nil, nil
	}
	for i := range b.N {
		for j := range kinds { // the first one is another each time
			kinds[(i+j)%len(kinds)].turn(send, each)
		}
	}
	bytes := float64(streams) * each
	for _, k := range kinds {
		b.ReportMetric(bytes*8/median(k.took).Seconds()/1e9, k.name+"-Gbit/s")
		b.ReportMetric(median(k.used).Seconds()/bytes*1e12, k.name+"-CPU-ms/GB")
		if k != kinds[0] {
			b.ReportMetric(median(kinds[0].took).Seconds()/median(k.took).Seconds(), k.name+"-ratio")
			b.ReportMetric(median(kinds[0].used).Seconds()/median(k.used).Seconds(), k.name+"-CPU-ratio")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// median returns the middle one of durations.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// track is a pair with connections over it.
type track struct {
	b           testing.TB
	name        string
	near, peers []net.Conn
	// took and used are the time and the processor time of each turn.
	took, used []time.Duration
}

// newTrack connects a stack on an endpoint of a kind with the peer's kernel.
func newTrack(b testing.TB, name string, streams int, open func(*pair) *host) *track {
	p := newPair(b)
	h := open(p)
	l := p.listenPeer(peerV4)
	useCubic(b, l)
	k := &track{b: b, name: name}
	for range streams {
		k.near = append(k.near, h.dial(peerV4, l.Addr().(*net.TCPAddr).Port))
		c, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		k.peers = append(k.peers, c)
	}
	return k
}

// useCubic has connections that the peer accepts use Linux's usual congestion
// control, whatever the machine's is: BBR paces, and one would measure timers.
func useCubic(b testing.TB, l *net.TCPListener) {
	c, err := l.SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	c.Control(func(fd uintptr) {
		if err := unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic"); err != nil {
			b.Logf("congestion control as it is: %v", err)
		}
	})
}

// turn moves n bytes over each connection and records what it took.
func (k *track) turn(send bool, n int64) {
	from, to := k.peers, k.near
	if send {
		from, to = to, from
	}
	start, used := time.Now(), processorTime(k.b)
	var wg sync.WaitGroup
	for i := range from {
		wg.Go(func() {
			chunk := make([]byte, 1<<18)
			for left := n; left > 0; left -= int64(len(chunk)) {
				if _, err := from[i].Write(chunk); err != nil {
					k.b.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			chunk := make([]byte, 1<<18)
			if got, err := io.CopyBuffer(discard{}, io.LimitReader(to[i], n), chunk); got != n {
				k.b.Errorf("received %d bytes of %d: %v", got, n, err)
			}
		})
	}
	wg.Wait()
	k.took = append(k.took, time.Since(start))
	k.used = append(k.used, processorTime(k.b)-used)
}

// processorTime returns what the process has used, in the kernel too.
func processorTime(b testing.TB) time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// discard throws bytes away, and has no ReadFrom.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
