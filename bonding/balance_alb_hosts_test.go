package bonding_test

import (
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

// TCP of four netstack hosts with one on a bond in balance-alb goes on whole
// while the active link is cut and mended.
func TestALBTransfers(t *testing.T) {
	linktest.CheckGoroutines(t)
	const peers, size = 4, 8 << 20
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 2 + peers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sw.Close)
	b, err := bonding.New(bonding.Options{Mode: bonding.BalanceALB})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	for i := range 2 {
		if err := b.Enslave(fmt.Sprint("eth", i), sw.Port(i), bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	host := func(ep netstack.LinkEndpoint, n byte) *stack.Host {
		h, err := stack.NewHost(ep, stack.HostOptions{Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 24)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		return h
	}
	pairs := make([]*hostPair, peers)
	bonded := host(b, 2)
	for i := range pairs {
		pairs[i] = &hostPair{tb: t, hosts: [2]*stack.Host{host(sw.Port(2+i), byte(11+i)), bonded}}
	}
	var received atomic.Int64
	var cut, mend sync.Once
	pairs[0].digest(func(n int) {
		switch sum := received.Add(int64(n)); {
		case sum > peers*size*2/3:
			mend.Do(func() { sw.Port(0).SetCarrier(true) })
		case sum > peers*size/3:
			cut.Do(func() { sw.Port(0).SetCarrier(false) })
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
	st := b.Status()
	for i := range 2 {
		if c := st.Slaves[i].Counters; c.RxPackets == 0 || c.TxPackets == 0 {
			t.Errorf("slave %d: %+v", i, c)
		}
	}
	if st.ActiveSlave != "eth1" {
		t.Errorf("active slave %s", st.ActiveSlave)
	}
}
