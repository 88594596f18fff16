package xdp

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// modes are those that a veth pair has.
var modes = []Mode{ModeAuto, ModeCopy, ModeGeneric}

func TestTCPBothWays(t *testing.T) {
	for _, queues := range []int{1, 4} {
		for _, mode := range modes {
			for _, ip := range []string{peerV4, peerV6} {
				t.Run(fmt.Sprintf("queues=%d/%v/%s", queues, mode, ip), func(t *testing.T) {
					p := newPair(t, queues)
					if mode == ModeGeneric { // see Warnings
						p.peer.Run("ethtool", "-K", "veth1", "tso", "off", "gso", "off")
					}
					e := p.open(Options{Mode: mode})
					exchange(t, p, e, ip)
				})
			}
		}
	}
}

// exchange has the peer's kernel send back what the stack sent by TCP, compares
// every byte, and has the peer ping the stack.
func exchange(t *testing.T, p *pair, e *Endpoint, ip string) {
	t.Helper()
	var l net.Listener
	p.peer.Do(func() {
		var err error
		if l, err = net.Listen("tcp", net.JoinHostPort(ip, "0")); err != nil {
			t.Fatal(err)
		}
	})
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	s := newHost(t, e)
	c := dial(t, s, ip, l.Addr().(*net.TCPAddr).Port)
	const size = 1 << 20
	sent, got := sha256.New(), sha256.New()
	go io.Copy(c, io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{1}), size), sent))
	c.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.CopyN(got, c, size); err != nil {
		t.Fatalf("%d bytes of %d came back: %v; %+v", n, size, err, e.Stats())
	}
	if !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
		t.Error("what came back differs from what was sent")
	}
	pinged := map[string]string{peerV4: stackV4, peerV6: stackV6}[ip]
	if out := p.peer.Run("ping", "-n", "-c", "5", "-i", "0.01", pinged); !strings.Contains(out, " 5 received,") || strings.Contains(out, "DUP!") {
		t.Errorf("ping: %s", out)
	}
	if st := e.Stats(); st.RXDroppedChecksum+st.RXDroppedMalformed+st.TXDroppedInvalid != 0 {
		t.Errorf("drops that should not be: %+v", st)
	}
}

// Each flow has one datagram of a random size on its way at a time, and every
// payload that comes back is compared.
func TestManyFlows(t *testing.T) {
	p := newPair(t, 4)
	e := p.open(Options{})
	if info := e.Info(); info.Queues != 4 || info.TransmitQueues != 4 || info.Mode != ModeCopy || info.Reason == "" {
		t.Errorf("Info() = %+v, want 4 queues in copy mode with a reason", info)
	}
	newFlows(t, p, e).run(64, 40)
	e.openMu.RLock()
	defer e.openMu.RUnlock()
	for i, s := range e.open.sockets {
		if s.received.consumed() == 0 {
			t.Errorf("queue %d received nothing of 64 flows", i)
		}
	}
}

// BenchmarkFlows is TestManyFlows for as long as -benchtime says.
func BenchmarkFlows(b *testing.B) {
	p := newPair(b, 4)
	e := p.open(Options{})
	f := newFlows(b, p, e)
	for b.Loop() {
		f.run(64, 100)
	}
	b.ReportMetric(float64(64*100*b.N)/b.Elapsed().Seconds(), "datagrams/s")
	b.Logf("%+v", e.Stats())
}

// flows are between a stack on an endpoint and the peer's kernel, which sends
// back what it receives.
type flows struct {
	t  testing.TB
	e  *Endpoint
	s  *stack.Stack
	to tcpip.FullAddress
}

// newFlows makes the stack and has the peer send back.
func newFlows(t testing.TB, p *pair, e *Endpoint) *flows {
	t.Helper()
	var echo net.PacketConn
	p.peer.Do(func() {
		var err error
		if echo, err = net.ListenPacket("udp", peerV4+":0"); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { echo.Close() })
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := echo.ReadFrom(b)
			if err != nil {
				return
			}
			echo.WriteTo(b[:n], from)
		}
	}()
	to := tcpip.FullAddress{NIC: 1, Addr: address(peerV4), Port: uint16(echo.LocalAddr().(*net.UDPAddr).Port)}
	return &flows{t: t, e: e, s: newHost(t, e), to: to}
}

// run runs n flows of rounds datagrams each.
func (f *flows) run(n, rounds int) {
	t, e := f.t, f.e
	t.Helper()
	var wg sync.WaitGroup
	for flow := range n {
		wg.Go(func() {
			c, err := gonet.DialUDP(f.s, nil, &f.to, ipv4.ProtocolNumber)
			if err != nil {
				t.Errorf("flow %d: %v", flow, err)
				return
			}
			defer c.Close()
			r := rand.New(rand.NewPCG(1, uint64(flow)))
			got := make([]byte, 4096)
			for round := range rounds {
				want := make([]byte, 1+r.IntN(1472))
				for i := range want {
					want[i] = byte(r.Uint32())
				}
				c.SetReadDeadline(time.Now().Add(patience))
				if _, err := c.Write(want); err != nil {
					t.Errorf("flow %d, round %d: %v", flow, round, err)
					return
				}
				n, err := c.Read(got)
				if err != nil || !bytes.Equal(got[:n], want) {
					t.Errorf("flow %d, round %d: %d bytes came back of %d, or others: %v; %+v", flow, round, n, len(want), err, e.Stats())
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestPartialChecksums(t *testing.T) {
	for _, c := range []struct {
		name          string
		peer          string
		refuse        bool
		partial, pass bool
	}{
		{"delivered", "on", false, true, true},
		{"refused", "on", true, true, false},
		{"none", "off", true, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, 1)
			p.peer.Run("ethtool", "-K", "veth1", "tx", c.peer)
			e := p.open(Options{RefusePartial: c.refuse})
			s := newHost(t, e)
			p.acquaint(s)
			conn, err := gonet.DialUDP(s, &tcpip.FullAddress{NIC: 1, Addr: address(stackV4), Port: 9}, nil, ipv4.ProtocolNumber)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			stop := p.flood(500)
			eventually(t, "frames", func() bool {
				st := e.Stats()
				return st.RXPackets > 10 || st.RXDroppedChecksum > 10
			})
			stop()
			st := e.Stats()
			if got := st.RXPartialChecksum > 0; got != c.partial {
				t.Errorf("partial checksums %v, want %v: %+v", got, c.partial, st)
			}
			if got := st.RXDroppedChecksum == 0; got != c.pass {
				t.Errorf("frames pass %v, want %v: %+v", got, c.pass, st)
			}
			said := strings.Contains(strings.Join(e.Warnings(), "\n"), "ethtool -K PEER tx off")
			if said != c.partial {
				t.Errorf("Warnings() = %q: tells of partial checksums %v, want %v", e.Warnings(), said, c.partial)
			}
		})
	}
}
