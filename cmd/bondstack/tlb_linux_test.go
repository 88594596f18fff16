package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

// The kernel's curl makes several downloads at once from a bond in balance-tlb
// whose links are ports of a kernel's bridge: both links carry flows, and the
// bridge has the bond's address at the active slave's port and another one at the
// other's. The active link is cut in the middle: the bond's address moves, and
// every byte arrives.
func TestTLBAtABridge(t *testing.T) {
	const (
		size      = 20 << 20
		downloads = 6
	)
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	dir, sum := writeRandom(t, size)
	i := l.run("--slave", "s0", "--slave", "s1", "--mode", "balance-tlb", "-o", "xmit_hash_policy=layer3+4", "-o", "lp_interval=1", "--serve", "http:80="+dir)
	i.await("both slaves up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	p := l.ping("10.9.0.2")
	all := make([]*download, downloads)
	for k := range all {
		all[k] = l.curl("http://10.9.0.2/file")
		all[k].take(size / 4)
	}
	before := i.status()
	for _, s := range before.Slaves {
		if s.Counters.TxBytes < size/4 { // what one download has taken
			t.Errorf("slave %s sent %d bytes of %d", s.Name, s.Counters.TxBytes, downloads*size/4)
		}
		l.wantAddressAt(s.Balance.SourceAddress, s.Name)
	}
	active := before.ActiveSlave
	l.far.Down(peer(active))
	i.await("the other slave is active", func(st instanceStatus) bool { return st.ActiveSlave != active && st.ActiveSlave != "" })
	var wg sync.WaitGroup
	for _, d := range all {
		wg.Go(func() { d.finish(sum) })
	}
	wg.Wait()
	p.awaitReplies(5)
	l.wantAddressAt(before.MACAddress, i.status().ActiveSlave)
	l.far.Up(peer(active))
	i.await("both slaves up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	p.awaitReplies(5)
	lost, duplicates := p.stop()
	st := i.status()
	if st.Mode != bonding.BalanceTLB || duplicates != 0 {
		t.Errorf("mode %s, %d duplicate replies", st.Mode, duplicates)
	}
	for _, s := range st.Slaves {
		t.Logf("slave %s sent %d bytes, received %d; %+v", s.Name, s.Counters.TxBytes, s.Counters.RxBytes, *s.Balance)
	}
	t.Logf("%d of %d replies to ping were lost; drops %v", len(lost), p.last, st.Counters.Drops)
}

// wantAddressAt waits until the bridge has an address at a slave's port.
func (l *lan) wantAddressAt(mac, slave string) {
	l.t.Helper()
	want := fmt.Sprintf("%s dev %s", mac, peer(slave))
	eventually(l.t, "the bridge has "+want, func() bool {
		table, err := l.far.TryRun("bridge", "fdb", "show", "br", "br0")
		return err == nil && strings.Contains(table, want)
	})
}
