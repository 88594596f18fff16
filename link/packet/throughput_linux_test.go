package packet

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// BenchmarkThroughput moves bytes between a netstack on veth0 and the kernel's
// TCP on veth1, in turns over this package's endpoint and over fdbased, and
// prints the rates and their ratio. Each turn moves 64 MiB a stream.
func BenchmarkThroughput(b *testing.B) {
	for _, direction := range []string{"send", "receive"} {
		for _, streams := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/streams=%d", direction, streams), func(b *testing.B) {
				compare(b, direction == "send", streams)
			})
		}
	}
}

// compare runs turns over both kinds of endpoint.
func compare(b *testing.B, send bool, streams int) {
	const each = 64 << 20
	kinds := [2]*track{newTrack(b, false, streams), newTrack(b, true, streams)}
	var spent [2]time.Duration
	for _, k := range kinds {
		k.turn(send, 8<<20) // windows open
	}
	for b.Loop() {
		for i, k := range kinds {
			spent[i] += k.turn(send, each)
		}
	}
	bits := float64(b.N*streams) * each * 8
	rate := func(i int) float64 { return bits / spent[i].Seconds() / 1e9 }
	b.ReportMetric(rate(0), "fdbased-Gbit/s")
	b.ReportMetric(rate(1), "packet-Gbit/s")
	b.ReportMetric(rate(1)/rate(0), "ratio")
	b.ReportMetric(0, "ns/op")
}

// track is a pair with connections over it.
type track struct {
	b           testing.TB
	near, peers []net.Conn
}

// newTrack connects a stack on an endpoint of a kind with the peer's kernel.
func newTrack(b testing.TB, own bool, streams int) *track {
	p := newPair(b)
	var ep stack.LinkEndpoint
	if own {
		ep = p.open(Options{})
	} else {
		ep = p.openFdbased(Options{})
	}
	h := newHost(b, ep)
	l := p.listenPeer(peerV4)
	k := &track{b: b}
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

// turn moves n bytes over each connection and returns how long it took.
func (k *track) turn(send bool, n int64) time.Duration {
	from, to := k.peers, k.near
	if send {
		from, to = to, from
	}
	start := time.Now()
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
	return time.Since(start)
}

// discard throws bytes away, and has no ReadFrom.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
