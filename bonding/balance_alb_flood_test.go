package bonding_test

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// madeUp is client n of a flood, which has an address of its own.
func madeUp(n int) (tcpip.LinkAddress, netip.Addr) {
	mac := tcpip.LinkAddress([]byte{6, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)})
	return mac, netip.AddrFrom4([4]byte{10, byte(1 + n>>16), byte(n >> 8), byte(n)})
}

// Must hold 6: while made-up clients ask for the bond's host by the ten
// thousand, the memory stays bounded and those who talk with it are served, also
// when a link is cut meanwhile. (Package rlb's TestFlood has a million of them.)
func TestALBFlood(t *testing.T) {
	flood := 40_000
	if raceEnabled || testing.Short() {
		flood /= 20
	}
	l := newALBLAN(t, 9)
	attacker := l.peers[8]
	l.peers = l.peers[:8]
	l.run(5 * time.Second)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := heap(), uint64(0)
	const each = 500 // between two rounds of the peers: 25,000 a second, or with the race detector 5,000
	clear(l.worst)
	for n := range flood {
		mac, ip := madeUp(n)
		attacker.write(header.EthernetBroadcastAddress, linktest.EtherTypeARP, // the switch's table is not what is tested
			linktest.ARP(linktest.ARPRequest, mac, ip, header.UnspecifiedEthernetAddress, albHost))
		switch {
		case n%each != 0:
		case n == flood/2/each*each:
			l.sw.Port(1).SetCarrier(false)
			fallthrough
		default:
			l.run(talkInterval())
		}
		if n%(flood/4) == flood/8 {
			most = max(most, heap())
		}
	}
	l.run(12 * time.Second)
	st := l.bond.Status().Balance.Clients
	t.Logf("%d made-up clients: %d of at most %d are kept, %d found no room; heap %d KiB more than before", flood, st.Count, st.Max, st.Refused,
		(max(most, before)-before)/1024)
	if st.Count > st.Max || most > before+8<<20 || len(st.List) > 256 {
		t.Errorf("%d clients of at most %d, %d bytes more than before", st.Count, st.Max, most-before)
	}
	for i := range l.peers {
		d := l.worst[i]
		if ago := l.clock.NowMonotonic().Sub(l.last[i]); d > time.Second || ago > time.Second {
			t.Errorf("peer %d was not served for %v, and last %v ago", i, d, ago)
		}
	}
	l.sw.Port(1).SetCarrier(true)
	l.run(15 * time.Second)
	l.wantBalanced("after the flood")
}
