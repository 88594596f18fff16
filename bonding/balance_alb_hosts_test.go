package bonding_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/wire"
	"bondstack/stack"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// albHosts is netstack hosts at the ports of a switch, of which the last is on a
// bond in balance-alb that has ports 0 and 1: 10.0.0.2 and fd00::2. The others
// are 10.0.0.11 and fd00::11, and so on.
type albHosts struct {
	sw    *wire.Switch
	bond  *bonding.Bond
	hosts []*stack.Host
}

func newALBHosts(t *testing.T, o bonding.Options, peers int) *albHosts {
	t.Helper()
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 2 + peers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sw.Close)
	o.Mode = bonding.BalanceALB
	b, err := bonding.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	for i := range 2 {
		if err := b.Enslave(fmt.Sprint("eth", i), sw.Port(i), bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	a := &albHosts{sw: sw, bond: b}
	add := func(ep netstack.LinkEndpoint, n byte) {
		h, err := stack.NewHost(ep, stack.HostOptions{Addresses: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 24), netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 15: n}), 64)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		a.hosts = append(a.hosts, h)
	}
	for i := range peers {
		add(sw.Port(2+i), byte(11+i))
	}
	add(b, 2)
	return a
}

// TCP of four netstack hosts with one on a bond in balance-alb goes on whole
// while the active link is cut and mended.
func TestALBTransfers(t *testing.T) {
	linktest.CheckGoroutines(t)
	const peers, size = 4, 8 << 20
	a := newALBHosts(t, bonding.Options{}, peers)
	pairs := make([]*hostPair, peers)
	for i := range pairs {
		pairs[i] = &hostPair{tb: t, hosts: [2]*stack.Host{a.hosts[i], a.hosts[peers]}}
	}
	var received atomic.Int64
	var cut, mend sync.Once
	pairs[0].digest(func(n int) {
		switch sum := received.Add(int64(n)); {
		case sum > peers*size*2/3:
			mend.Do(func() { a.sw.Port(0).SetCarrier(true) })
		case sum > peers*size/3:
			cut.Do(func() { a.sw.Port(0).SetCarrier(false) })
		}
	})
	errs := make(chan error, peers)
	for i, p := range pairs {
		go func() { errs <- p.transfer(byte(i), size) }()
	}
	for range pairs {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	st := a.bond.Status()
	for i := range 2 {
		if c := st.Slaves[i].Counters; c.RxPackets == 0 || c.TxPackets == 0 {
			t.Errorf("slave %d: %+v", i, c)
		}
	}
	if st.ActiveSlave != "eth1" {
		t.Errorf("active slave %s", st.ActiveSlave)
	}
}

// With ipv6_receive_balance netstack hosts send to both slaves, and to the other
// one when theirs is cut: every ping is answered.
func TestALBHostsIPv6(t *testing.T) {
	linktest.CheckGoroutines(t)
	const peers = 6
	a := newALBHosts(t, bonding.Options{IPv6ReceiveBalance: true}, peers)
	ctx, cancel := context.WithTimeout(context.Background(), hostPatience)
	defer cancel()
	for _, h := range a.hosts {
		if err := h.AwaitAddresses(ctx); err != nil {
			t.Fatal(err)
		}
	}
	to := netip.AddrFrom16([16]byte{0: 0xfd, 15: 2})
	pings := func(when string) {
		t.Helper()
		for i, h := range a.hosts[:peers] {
			if _, err := h.Ping(ctx, to); err != nil {
				t.Errorf("%s: ping of host %d: %v", when, i, err)
			}
		}
	}
	received := func() (n [2]uint64) {
		for i, s := range a.bond.Status().Slaves {
			n[i] = s.Counters.RxPackets
		}
		return n
	}
	pings("first")
	before := received()
	pings("learned")
	for i, n := range received() {
		if n -= before[i]; n < peers/2 || n > peers/2+4 {
			t.Errorf("slave %d received %d packets of %d pings", i, n, peers)
		}
	}
	if st := a.bond.Status(); st.Slaves[0].Balance.Clients < peers/2 || st.Slaves[1].Balance.Clients < peers/2 {
		t.Errorf("clients %+v", st.Balance.Clients)
	}
	for _, port := range []int{1, 0} {
		a.sw.Port(port).SetCarrier(false)
		pings(fmt.Sprint("link ", port, " cut"))
		a.sw.Port(port).SetCarrier(true)
		pings(fmt.Sprint("link ", port, " back"))
	}
}
