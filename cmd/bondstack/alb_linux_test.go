package main

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/netnstest"
	"bondstack/link/packet"
	"bondstack/stack"
)

// kernelPeer is a host of the kernel that sends a datagram each 5 ms and hears
// its echo.
type kernelPeer struct {
	conn  net.Conn
	last  atomic.Int64 // when it heard an echo last
	worst atomic.Int64 // the longest silence
}

func (p *kernelPeer) talk(stop <-chan struct{}) {
	go func() {
		buf := make([]byte, 2000)
		for {
			if _, err := p.conn.Read(buf); err != nil {
				select {
				case <-stop:
					return
				default: // told that nobody is there yet
					continue
				}
			}
			now := time.Now().UnixNano()
			if last := p.last.Swap(now); last != 0 {
				p.worst.Store(max(p.worst.Load(), now-last))
			}
		}
	}()
	data := make([]byte, 1000)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-stop:
			tick.Stop()
			p.conn.Close()
			return
		case <-tick.C:
			p.conn.Write(data) // refused until the host listens
		}
	}
}

// Must hold 3 with hosts of the kernel on a kernel bridge: eight namespaces talk
// to a host on two interfaces in balance-alb, one of which is cut and mended.
func TestALBKernelPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const peers = 8
	own, lan := netnstest.New(t), netnstest.New(t)
	// The kernel's own stack is not to speak beside ours: under an address that
	// another slave has now.
	own.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	var ports []string
	// The kernel's bridge may take a second until it forwards to a port that is
	// up again.
	b, err := bonding.New(bonding.Options{Mode: bonding.BalanceALB, MIIMon: 20 * time.Millisecond, UpDelay: 1200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	for i := range 2 {
		name, port := fmt.Sprint("eth", i), fmt.Sprint("p", i)
		netnstest.Veth(t, own, name, lan, port)
		ports = append(ports, port)
		var ep *packet.Endpoint
		own.Do(func() { ep, err = packet.New(name, packet.Options{}) })
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Enslave(name, ep, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	namespaces := make([]*netnstest.Namespace, peers)
	for i := range namespaces {
		namespaces[i] = netnstest.New(t)
		port := fmt.Sprint("h", i)
		netnstest.Veth(t, namespaces[i], "eth0", lan, port)
		namespaces[i].AddAddress("eth0", fmt.Sprintf("10.0.0.%d/24", 11+i))
		ports = append(ports, port)
	}
	lan.Bridge("br0", ports...)
	h, err := stack.NewHost(b, stack.HostOptions{Addresses: []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr("10.0.0.1"), 24)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	echo, err := h.ListenPacket("udp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 2000)
		for {
			n, from, err := echo.ReadFrom(buf)
			if err != nil {
				return
			}
			echo.WriteTo(buf[:n], from)
		}
	}()
	stop := make(chan struct{})
	all := make([]*kernelPeer, peers)
	for i, ns := range namespaces {
		p := &kernelPeer{}
		ns.Do(func() { p.conn, err = net.Dial("udp4", "10.0.0.1:7") })
		if err != nil {
			t.Fatal(err)
		}
		all[i] = p
		go p.talk(stop)
	}
	defer close(stop)
	balanced := func(when string) {
		t.Helper()
		tx, rx := albWindow(b, time.Second)
		t.Logf("%s: link 0 carries %.0f %% of what is sent and %.0f %% of what is received", when, 100*tx, 100*rx)
		if min(tx, rx) < 0.3 || max(tx, rx) > 0.7 {
			t.Errorf("%s: link 0 carries %.2f of the bytes sent and %.2f of those received, want 0.3 to 0.7", when, tx, rx)
		}
	}
	served := func(when string) {
		t.Helper()
		worst := time.Duration(0)
		for i, p := range all {
			silence := time.Duration(p.worst.Swap(0))
			worst = max(worst, silence)
			if ago := time.Since(time.Unix(0, p.last.Load())); silence > time.Second || ago > time.Second {
				t.Errorf("%s: peer %d heard nothing for %v, and last %v ago", when, i, silence, ago)
			}
		}
		t.Logf("%s: no peer without echo for more than %v", when, worst)
	}
	for end := time.Now().Add(time.Minute); !albSpread(b, all); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not every peer is served, half of them by each link: %+v", b.Status().Balance.Clients)
		}
	}
	albWindow(b, 2200*time.Millisecond) // updates come two seconds after requests
	for _, p := range all {
		p.worst.Store(0)
	}
	balanced("learned")
	const cut = "p0" // the active slave's, so that addresses are swapped too
	lan.Down(cut)
	albWindow(b, 1500*time.Millisecond)
	served("cut")
	lan.Up(cut)
	albWindow(b, 4500*time.Millisecond)
	served("mended")
	balanced("mended")
}

// albWindow lets time pass and returns what part of the bytes the first link
// carried in it.
func albWindow(b *bonding.Bond, d time.Duration) (tx, rx float64) {
	before := b.Status()
	time.Sleep(d)
	after := b.Status()
	var sent, received [2]float64
	for i := range 2 {
		x, y := before.Slaves[i].Counters, after.Slaves[i].Counters
		sent[i], received[i] = float64(y.TxBytes-x.TxBytes), float64(y.RxBytes-x.RxBytes)
	}
	return sent[0] / (sent[0] + sent[1]), received[0] / (received[0] + received[1])
}

// albSpread reports whether every peer is served, and half of them by each link.
func albSpread(b *bonding.Bond, peers []*kernelPeer) bool {
	for _, p := range peers {
		if p.last.Load() == 0 {
			return false
		}
	}
	st := b.Status()
	return st.Slaves[0].Balance.Clients == len(peers)/2 && st.Slaves[1].Balance.Clients == len(peers)/2
}
