package packet

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/nested"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// transferSize is what is moved in each direction.
const transferSize = 20 << 20

// TestTCPWithKernelPeer downloads in both directions, with the offloads of the
// kernel's interfaces as they are: the peer sends partial checksums and frames
// of 64 KiB.
func TestTCPWithKernelPeer(t *testing.T) {
	for _, c := range []struct {
		name, ip string
		options  Options
	}{
		{"ipv4", peerV4, Options{}},
		{"ipv6", peerV6, Options{}},
		{"four queues", peerV4, Options{Queues: 4}},
		{"without a ring", peerV4, Options{NoRing: true}},
		{"no gso", peerV4, Options{NoGSO: true}},
		{"exclusive", peerV4, Options{Exclusive: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t)
			e := p.open(c.options)
			meter := newSizeMeter(e)
			h := newHost(t, meter)
			l := p.listenPeer(c.ip)
			size := int64(transferSize)
			if c.options.NoGSO {
				size /= 8 // frames of the MTU take their time under the race detector
			}
			want, _ := sum(block(size))

			got := make(chan string, 1)
			go func() {
				k, err := l.Accept()
				if err != nil {
					got <- err.Error()
					return
				}
				defer k.Close()
				s, err := sum(k)
				if err != nil {
					s = err.Error()
				}
				got <- s
				io.Copy(k, block(size))
			}()
			conn := h.dial(c.ip, l.Addr().(*net.TCPAddr).Port)
			if _, err := io.Copy(conn, block(size)); err != nil {
				t.Fatalf("upload: %v", err)
			}
			conn.(interface{ CloseWrite() error }).CloseWrite()
			if s := <-got; s != want {
				t.Errorf("the peer received %s, want %s", s, want)
			}
			s, err := sum(conn)
			if err != nil || s != want {
				t.Errorf("the stack received %s, %v, want %s", s, err, want)
			}
			checkWholeFrames(t, e, meter, !c.options.NoGSO)
		})
	}
}

// sizeMeter notes the size of the largest packet that an endpoint delivers.
type sizeMeter struct {
	nested.Endpoint
	largest atomic.Int64
}

func newSizeMeter(ep stack.LinkEndpoint) *sizeMeter {
	m := &sizeMeter{}
	m.Init(ep, m)
	return m
}

func (m *sizeMeter) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	for n := int64(pkt.Data().Size()); ; { // four queues deliver at a time
		old := m.largest.Load()
		if n <= old || m.largest.CompareAndSwap(old, n) {
			break
		}
	}
	m.Endpoint.DeliverNetworkPacket(protocol, pkt)
}

// checkWholeFrames checks that segments came whole from a kernel that offloads,
// that they went out whole if offered, and that nothing was dropped. The mean of
// what came says little: acknowledgements for what a stack without GSO sends can
// be as many as the segments.
func checkWholeFrames(t *testing.T, e *Endpoint, m *sizeMeter, sent bool) {
	t.Helper()
	s := e.Stats()
	if n := m.largest.Load(); n <= 1500 {
		t.Errorf("the largest packet received has %d bytes, want super-frames: %+v", n, s)
	}
	if mean := s.TXBytes / s.TXPackets; sent && mean < 2000 {
		t.Errorf("sent frames have %d bytes on average, want super-frames: %+v", mean, s)
	}
	if s.RXDroppedChecksum+s.RXDroppedMalformed+s.RXDroppedOversize+s.TXDroppedInvalid+s.TXRefusedDown != 0 {
		t.Errorf("frames were dropped: %+v", s)
	}
}
