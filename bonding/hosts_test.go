package bonding_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"
	"bondstack/link/wire"
	"bondstack/stack"
)

// hostPatience is how long a test of hosts waits for what is bound to happen.
const hostPatience = 60 * time.Second

// hostPair is two hosts on bonds of the same wires: 10.0.0.1 and 10.0.0.2.
type hostPair struct {
	tb     testing.TB
	bonds  [2]*bonding.Bond
	hosts  [2]*stack.Host
	slaves [2][]*watched
}

// watched is a wire's end that counts what is written to it after its release.
type watched struct {
	*wire.Endpoint
	name     string
	released guard
}

// newHostPair makes hosts on bonds of n wires, or of as many ports of a switch.
func newHostPair(tb testing.TB, mode bonding.Mode, n int) *hostPair {
	tb.Helper()
	p := &hostPair{tb: tb}
	for i := range p.bonds {
		b, err := bonding.New(bonding.Options{Mode: mode, XmitHashPolicy: xmithash.Layer34})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(b.Close)
		p.bonds[i] = b
	}
	cable := cables(tb, mode, n)
	for k := range n {
		x, y := cable(k)
		for i, end := range []*wire.Endpoint{x, y} {
			tb.Cleanup(end.Close)
			w := &watched{Endpoint: end, name: fmt.Sprintf("eth%d", k)}
			p.slaves[i] = append(p.slaves[i], w)
			p.enslave(i, w)
		}
	}
	for i, b := range p.bonds {
		h, err := stack.NewHost(b, stack.HostOptions{Addresses: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 24)}})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { h.Close() })
		p.hosts[i] = h
	}
	return p
}

// cables returns the function that makes n wires; in the adaptive modes, which
// receive on one slave and send by all, they are ports of a switch.
func cables(tb testing.TB, mode bonding.Mode, n int) func(k int) (x, y *wire.Endpoint) {
	tb.Helper()
	if mode != bonding.BalanceTLB && mode != bonding.BalanceALB {
		return func(int) (x, y *wire.Endpoint) {
			x, y, err := wire.New(wire.Options{})
			if err != nil {
				tb.Fatal(err)
			}
			return x, y
		}
	}
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 2 * n})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(sw.Close)
	return func(k int) (x, y *wire.Endpoint) { return sw.Port(k), sw.Port(n + k) }
}

func (p *hostPair) enslave(side int, w *watched) {
	p.tb.Helper()
	w.released.Store(false)
	if err := p.bonds[side].Enslave(w.name, w, bonding.SlaveOptions{}); err != nil {
		p.tb.Fatalf("Enslave(%s) = %v", w.name, err)
	}
}

// digest has the second host answer, on port 7, with the hash of what it
// receives. It tells progress of each piece. (An echo would be simpler, but two
// of gVisor's TCP that both wait for room can wait for ever: a segment beyond a
// window of zero is dropped with its acknowledgement.)
func (p *hostPair) digest(progress func(int)) {
	p.tb.Helper()
	l, err := p.hosts[1].Listen("tcp", ":7")
	if err != nil {
		p.tb.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				h := sha256.New()
				if _, err := io.Copy(io.MultiWriter(h, told(progress)), c); err == nil {
					c.Write(h.Sum(nil))
				}
			}()
		}
	}()
}

// told is a writer that tells how much is written.
type told func(int)

func (f told) Write(b []byte) (int, error) {
	f(len(b))
	return len(b), nil
}

// transfer sends n bytes and compares their hash with that of what the other
// host received.
func (p *hostPair) transfer(seed byte, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), hostPatience)
	defer cancel()
	c, err := p.hosts[0].DialContext(ctx, "tcp", "10.0.0.2:7")
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(hostPatience))
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(c, h), io.LimitReader(rand.NewChaCha8([32]byte{seed}), int64(n))); err != nil {
		return err
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return err
	}
	switch answer, err := io.ReadAll(c); {
	case err != nil:
		return err
	case !bytes.Equal(answer, h.Sum(nil)):
		return fmt.Errorf("%d bytes arrived with hash %x, want %x", n, answer, h.Sum(nil))
	}
	return nil
}

// In broadcast each frame comes twice, and the host sees it once: what reaches
// its NIC is what one slave of the sender carried.
func TestBroadcastReachesHostOnce(t *testing.T) {
	linktest.CheckGoroutines(t)
	p := newHostPair(t, bonding.Broadcast, 2)
	p.digest(func(int) {})
	if err := p.transfer(1, 20<<20); err != nil {
		t.Fatal(err)
	}
	delivered := func(side int) uint64 {
		nic := p.hosts[side].Stack().NICInfo()[p.hosts[side].NICID()].Stats
		return nic.Rx.Packets.Value() + nic.DisabledRx.Packets.Value() // a NIC is attached before it is enabled
	}
	sent := func(side, slave int) uint64 { return p.bonds[side].Status().Slaves[slave].Counters.TxPackets }
	for side := range 2 {
		other := 1 - side
		settled := func() bool {
			// The first host spoke before the other was there: one copy of a
			// frame, or both, may have found no NIC.
			drops := p.bonds[other].Status().Counters.Drops
			n, seen, early := sent(side, 0), delivered(other), drops["rx_no_nic"]
			return n > 20 && sent(side, 1) == n && seen >= n-early/2 && seen <= n && seen+drops["rx_copy"]+early == 2*n
		}
		for end := time.Now().Add(hostPatience); !settled(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("host %d sent %d and %d frames by its slaves; host %d saw %d, and its bond dropped %v", side,
					sent(side, 0), sent(side, 1), other, delivered(other), p.bonds[other].Status().Counters.Drops)
			}
		}
	}
}
