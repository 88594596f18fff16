package xdp

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
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
	if err := p.peer.Ping(pinged, 5); err != nil {
		t.Error(err)
	}
	if st := e.Stats(); st.RXDroppedChecksum+st.RXDroppedMalformed+st.TXDroppedInvalid != 0 {
		t.Errorf("drops that should not be: %+v", st)
	}
}

// load is how long TestLoad takes.
var load = flag.Duration("xdp.load", 2*time.Second, "how long TestLoad takes, over all numbers of queues")

// TestLoad has 64 flows of datagrams of random sizes, one of each flow on its way
// at a time, and compares every payload that comes back.
func TestLoad(t *testing.T) {
	allQueues := []int{1, 4}
	for _, queues := range allQueues {
		t.Run(fmt.Sprintf("queues=%d", queues), func(t *testing.T) {
			p := newPair(t, queues)
			e := p.open(Options{})
			if info := e.Info(); info.Queues != queues || info.TransmitQueues != queues || info.Mode != ModeCopy || info.Reason == "" {
				t.Errorf("Info() = %+v, want %d queues in copy mode with a reason", info, queues)
			}
			f := newFlows(t, p, e)
			f.run(64, *load/time.Duration(len(allQueues)))
			e.openMu.RLock()
			defer e.openMu.RUnlock()
			for i, s := range e.open.sockets {
				if s.received.consumed() == 0 {
					t.Errorf("queue %d received nothing of 64 flows", i)
				}
			}
			t.Logf("%d datagrams: %+v", f.datagrams.Load(), e.Stats())
		})
	}
}

// flows are between a stack on an endpoint and the peer's kernel, which sends
// back what it receives.
type flows struct {
	t  testing.TB
	e  *Endpoint
	s  *stack.Stack
	to tcpip.FullAddress
	// datagrams are those that came back.
	datagrams atomic.Uint64
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

// run runs n flows for some time.
func (f *flows) run(n int, d time.Duration) {
	f.t.Helper()
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for flow := range n {
		wg.Go(func() {
			c, err := gonet.DialUDP(f.s, nil, &f.to, ipv4.ProtocolNumber)
			if err != nil {
				f.t.Errorf("flow %d: %v", flow, err)
				return
			}
			defer c.Close()
			r := rand.New(rand.NewPCG(1, uint64(flow)))
			for round := 0; time.Now().Before(end); round++ {
				if err := exchangeOne(c, r); err != nil {
					f.t.Errorf("flow %d, round %d: %v; %+v", flow, round, err, f.e.Stats())
					return
				}
				f.datagrams.Add(1)
			}
		})
	}
	wg.Wait()
}

// exchangeOne sends a datagram of a random size and compares what comes back.
func exchangeOne(c net.Conn, r *rand.Rand) error {
	want := make([]byte, 1+r.IntN(1472))
	for i := range want {
		want[i] = byte(r.Uint32())
	}
	if _, err := c.Write(want); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, 4096)
	n, err := c.Read(got)
	if err == nil && !bytes.Equal(got[:n], want) {
		err = errors.New("other bytes")
	}
	if err != nil {
		return fmt.Errorf("%d bytes came back of %d: %w", n, len(want), err)
	}
	return nil
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
