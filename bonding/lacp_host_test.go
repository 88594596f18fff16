package bonding_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"
	"bondstack/link/wire"
	"bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

// A link whose queue is always full still carries the PDUs (A46): neither side
// ever loses the other.
func TestLACPSaturated(t *testing.T) {
	clock := faketime.NewManualClock()
	o := bonding.Options{Mode: bonding.IEEE8023AD, Clock: clock}
	var bonds [2]*bonding.Bond
	for i := range bonds {
		b, err := bonding.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		if err := b.SetOption("lacp_rate", "fast"); err != nil {
			t.Fatal(err)
		}
		bonds[i] = b
	}
	slow := wire.EndOptions{Impairments: wire.Impairments{Rate: 10e6}}
	x, y, err := wire.New(wire.Options{Synchronous: true, Clock: clock, QueueFrames: 16, A: slow, B: slow})
	if err != nil {
		t.Fatal(err)
	}
	for i, end := range []*wire.Endpoint{x, y} {
		if err := bonds[i].Enslave("eth0", end, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		bonds[i].Attach(&linktest.Counter{})
	}
	run(clock, 3*time.Second)
	wantPorts(t, "before", bonds[0], true, true)
	frame := linktest.Flow4(0).UDP(make([]byte, 1400))
	burst := make([][]byte, 2)
	for i := range burst {
		burst[i] = frame
	}
	for i := range 60000 {
		linktest.Write(bonds[0], burst...)
		linktest.Write(bonds[1], burst...)
		clock.Advance(100 * time.Microsecond)
		if s := bonds[0].LinkState(); i%100 == 0 && s.Speed != 10000 {
			t.Fatalf("the port stopped under load: %s", bonds[0].Status().Slaves[0].LACP.Explanation)
		}
	}
	for _, b := range bonds {
		if s := b.Status().Slaves[0]; s.Counters.Drops["tx_no_buffer"] == 0 || s.LACP.Counters.LACPDURx < 8 {
			t.Errorf("in 9 s %d PDUs came, with %d frames dropped for want of room", s.LACP.Counters.LACPDURx, s.Counters.Drops["tx_no_buffer"])
		}
	}
}

// lacpHosts are two hosts, 10.0.0.1 and 10.0.0.2, on bonds in 802.3ad of the same
// wires, all of whose ports distribute.
func lacpHosts(t *testing.T, n int) (bonds [2]*bonding.Bond, hosts [2]*stack.Host, wires []*wire.Endpoint) {
	t.Helper()
	for i := range bonds {
		b, err := bonding.New(bonding.Options{Mode: bonding.IEEE8023AD, XmitHashPolicy: xmithash.Layer34})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		if err := b.SetOption("lacp_rate", "fast"); err != nil {
			t.Fatal(err)
		}
		bonds[i] = b
	}
	for k := range n {
		x, y, err := wire.New(wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wires = append(wires, x)
		for i, end := range []*wire.Endpoint{x, y} {
			t.Cleanup(end.Close)
			if err := bonds[i].Enslave("eth"+string(rune('0'+k)), end, bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, b := range bonds {
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 24)
		h, err := stack.NewHost(b, stack.HostOptions{Addresses: []netip.Prefix{prefix}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		hosts[i] = h
	}
	for _, b := range bonds {
		awaitDistributing(t, b, n)
	}
	return bonds, hosts, wires
}

// awaitDistributing waits for events of a bond until n ports distribute.
func awaitDistributing(t *testing.T, b *bonding.Bond, n int) {
	t.Helper()
	events := b.Subscribe(100)
	defer events.Close()
	patience := time.After(30 * time.Second)
	for {
		active := 0
		st := b.Status()
		for _, s := range st.Slaves {
			if s.State == "active" {
				active++
			}
		}
		if active == n {
			return
		}
		select {
		case <-events.C:
		case <-patience:
			e, _ := b.ExplainLACP()
			t.Fatalf("%d ports distribute, want %d: %+v", active, n, e.Ports)
		}
	}
}

// TCP connections between two hosts go on while one link is cut, and use both.
func TestLACPTransfer(t *testing.T) {
	linktest.CheckGoroutines(t)
	bonds, hosts, wires := lacpHosts(t, 2)
	l, err := hosts[1].Listen("tcp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	const size, streams = 4 << 20, 8
	var half, done sync.WaitGroup
	half.Add(streams)
	for i := range streams {
		done.Go(func() {
			if err := echoed(hosts[0], uint64(i), size, half.Done); err != nil {
				t.Errorf("stream %d: %v", i, err)
			}
		})
	}
	half.Wait()
	wires[0].SetCarrier(false)
	done.Wait()
	wires[0].SetCarrier(true)
	for _, b := range bonds {
		awaitDistributing(t, b, 2)
		for _, s := range b.Status().Slaves {
			if s.Counters.TxBytes < size/8 {
				t.Errorf("%s carried %d bytes of %d", s.Name, s.Counters.TxBytes, size*streams)
			}
		}
	}
}

// echoed sends random bytes to the echo service and compares what comes back.
// half is called when half of it has.
func echoed(h *stack.Host, seed uint64, size int64, half func()) error {
	once := sync.OnceFunc(half)
	defer once()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := h.DialContext(ctx, "tcp", "10.0.0.2:7")
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(60 * time.Second))
	key := [32]byte{byte(seed)}
	go io.Copy(c, io.LimitReader(rand.NewChaCha8(key), size))
	want, got := sha256.New(), sha256.New()
	io.Copy(want, io.LimitReader(rand.NewChaCha8(key), size))
	if _, err := io.CopyN(got, c, size/2); err != nil {
		return err
	}
	once()
	if _, err := io.CopyN(got, c, size/2); err != nil {
		return err
	}
	if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		return errors.New("what came back is not what was sent")
	}
	return nil
}

// Slaves come and go, links flap, PDUs are exchanged, options change, all at
// once; afterwards the bonds agree. The race detector sees the rest.
func TestLACPStorm(t *testing.T) {
	linktest.CheckGoroutines(t)
	bonds, _, wires := lacpHosts(t, 2)
	var end atomic.Bool
	var wg sync.WaitGroup
	background := func(f func(i int)) {
		wg.Go(func() {
			for i := 0; !end.Load(); i++ {
				f(i)
			}
		})
	}
	for k := range 4 {
		background(func(i int) {
			f := linktest.Flow4(k)
			f.SrcMAC, f.DstMAC = bonds[k%2].LinkAddress(), bonds[1-k%2].LinkAddress()
			linktest.Write(bonds[k%2], f.UDP(make([]byte, 100)))
		})
	}
	background(func(i int) { wires[0].SetCarrier(i%2 == 0); time.Sleep(time.Millisecond) })
	background(func(i int) { bonds[0].Status(); bonds[1].ExplainLACP() })
	background(func(i int) {
		bonds[1].SetOption("ad_actor_sys_prio", []string{"1", "2"}[i%2])
		bonds[1].SetOption("min_links", []string{"0", "1"}[i%2])
		bonds[0].SetActorPortPriority("eth1", uint16(1+i%9))
	})
	for range 40 {
		if err := bonds[0].Release("eth1"); err != nil {
			t.Fatal(err)
		}
		if err := bonds[0].Enslave("eth1", wires[1], bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // PDUs go between
	}
	end.Store(true)
	wg.Wait()
	wires[0].SetCarrier(true)
	for _, b := range bonds {
		if err := b.SetOption("min_links", "0"); err != nil {
			t.Fatal(err)
		}
		awaitDistributing(t, b, 2)
	}
}
