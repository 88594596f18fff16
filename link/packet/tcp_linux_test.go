package packet

import (
	"io"
	"net"
	"testing"
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
		{"no gso", peerV4, Options{NoGSO: true}},
		{"exclusive", peerV4, Options{Exclusive: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t)
			e := p.open(c.options)
			h := newHost(t, e)
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
			checkWholeFrames(t, e, !c.options.NoGSO)
		})
	}
}

// checkWholeFrames checks that segments came whole from a kernel that offloads,
// that they went out whole if offered, and that nothing was dropped.
func checkWholeFrames(t *testing.T, e *Endpoint, sent bool) {
	t.Helper()
	s := e.Stats()
	if mean := s.RXBytes / s.RXPackets; mean <= 1514 {
		t.Errorf("received frames have %d bytes on average, want super-frames: %+v", mean, s)
	}
	if mean := s.TXBytes / s.TXPackets; sent && mean < 2000 {
		t.Errorf("sent frames have %d bytes on average, want super-frames: %+v", mean, s)
	}
	if s.RXDroppedChecksum+s.RXDroppedMalformed+s.RXDroppedOversize+s.TXDroppedInvalid+s.TXRefusedDown != 0 {
		t.Errorf("frames were dropped: %+v", s)
	}
}
