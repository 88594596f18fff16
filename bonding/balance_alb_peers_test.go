package bonding_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/wire"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// neighbour is a host as small as can be: it answers ARP, keeps what it learns
// from it as Linux does (a reply does not change an entry in its first second),
// and counts the datagrams that come. It runs on a manual clock with synchronous
// wires, so it needs no lock.
type neighbour struct {
	tb     testing.TB
	ep     stack.LinkEndpoint
	ip     netip.Addr
	clock  *faketime.ManualClock
	cache  map[netip.Addr]*cached
	echoes bool
	heard  func(from netip.Addr)
}

type cached struct {
	mac  tcpip.LinkAddress
	when tcpip.MonotonicTime
	kept bool // it has been sent to
}

// maxNeighbours is as netstack's.
const maxNeighbours = 512

// lockTime is Linux's default.
const lockTime = time.Second

func (n *neighbour) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

func (n *neighbour) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	if pkt.PktType == tcpip.PacketOtherHost {
		return
	}
	view := pkt.Data().AsRange().ToView()
	defer view.Release()
	b := view.AsSlice()
	switch protocol {
	case header.ARPProtocolNumber:
		n.arp(header.ARP(b))
	case header.IPv4ProtocolNumber:
		from, to := header.IPv4(b).SourceAddress(), header.IPv4(b).DestinationAddress()
		if netip.AddrFrom4(to.As4()) != n.ip {
			return
		}
		n.heard(netip.AddrFrom4(from.As4()))
		if n.echoes {
			n.send(netip.AddrFrom4(from.As4()))
		}
	}
}

func (n *neighbour) arp(a header.ARP) {
	sender, _ := netip.AddrFromSlice(a.ProtocolAddressSender())
	target, _ := netip.AddrFromSlice(a.ProtocolAddressTarget())
	mac := tcpip.LinkAddress(a.HardwareAddressSender())
	old := n.cache[sender]
	request := a.Op() == header.ARPRequest
	if len(n.cache) > maxNeighbours {
		for ip := range n.cache { // any but those that answered us
			if old := n.cache[ip]; !old.kept {
				delete(n.cache, ip)
			}
		}
	}
	now := n.clock.NowMonotonic()
	switch {
	case target != n.ip && (old == nil || sender != target):
		return
	case old == nil && !request:
		return
	case old == nil || old.mac == "" || now.Sub(old.when) > lockTime:
		n.cache[sender] = &cached{mac, now, old != nil && old.kept}
	}
	if request && target == n.ip {
		n.write(mac, linktest.EtherTypeARP, linktest.ARP(linktest.ARPReply, n.ep.LinkAddress(), n.ip, mac, sender))
	}
}

// send sends a datagram, or asks for its receiver's address.
func (n *neighbour) send(to netip.Addr) {
	c := n.cache[to]
	if c == nil || c.mac == "" {
		n.cache[to] = &cached{kept: true}
		n.write(header.EthernetBroadcastAddress, linktest.EtherTypeARP,
			linktest.ARP(linktest.ARPRequest, n.ep.LinkAddress(), n.ip, header.UnspecifiedEthernetAddress, to))
		return
	}
	c.kept = true
	f := linktest.Flow{Src: netip.AddrPortFrom(n.ip, 7), Dst: netip.AddrPortFrom(to, 7), SrcMAC: n.ep.LinkAddress(), DstMAC: c.mac}
	n.writeFrame(f.UDP(make([]byte, 1000)))
}

func (n *neighbour) write(dst tcpip.LinkAddress, etherType uint16, payload []byte) {
	n.writeFrame(linktest.Ethernet(dst, n.ep.LinkAddress(), etherType, payload))
}

func (n *neighbour) writeFrame(frame []byte) {
	if _, err := linktest.Write(n.ep, frame); err != nil {
		n.tb.Errorf("write: %v", err)
	}
}

// albLAN is a bond in balance-alb with two links to a switch, its host, which
// echoes, and peers at the other ports.
type albLAN struct {
	tb    testing.TB
	bond  *bonding.Bond
	sw    *wire.Switch
	clock *faketime.ManualClock
	peers []*neighbour
	last  []tcpip.MonotonicTime // when each peer heard an echo last
	worst []time.Duration       // the longest silence of each
}

func newALBLAN(tb testing.TB, peers int) *albLAN {
	l := &albLAN{tb: tb, clock: faketime.NewManualClock(), last: make([]tcpip.MonotonicTime, peers), worst: make([]time.Duration, peers)}
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 2 + peers, Wire: wire.Options{Synchronous: true, Clock: l.clock}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(sw.Close)
	l.sw = sw
	l.bond, err = bonding.New(bonding.Options{Mode: bonding.BalanceALB, Clock: l.clock, Rand: seededRand(1)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(l.bond.Close)
	for i := range 2 {
		if err := l.bond.Enslave(fmt.Sprint("eth", i), sw.Port(i), bonding.SlaveOptions{}); err != nil {
			tb.Fatal(err)
		}
	}
	l.join(l.bond, albHost).echoes = true
	for i := range peers {
		n := l.join(sw.Port(2+i), netip.AddrFrom4([4]byte{10, 0, 0, byte(11 + i)}))
		n.heard = func(netip.Addr) { l.echo(i) }
		l.peers = append(l.peers, n)
	}
	return l
}

func (l *albLAN) join(ep stack.LinkEndpoint, ip netip.Addr) *neighbour {
	n := &neighbour{tb: l.tb, ep: ep, ip: ip, clock: l.clock, cache: map[netip.Addr]*cached{}, heard: func(netip.Addr) {}}
	ep.Attach(n)
	return n
}

func (l *albLAN) echo(peer int) {
	now := l.clock.NowMonotonic()
	if l.last[peer] != (tcpip.MonotonicTime{}) {
		l.worst[peer] = max(l.worst[peer], now.Sub(l.last[peer]))
	}
	l.last[peer] = now
}

// talkInterval is how often a peer sends.
func talkInterval() time.Duration {
	if raceEnabled {
		return 100 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// run has every peer send a datagram each talkInterval.
func (l *albLAN) run(d time.Duration) {
	for end := l.clock.NowMonotonic().Add(d); l.clock.NowMonotonic().Before(end); l.clock.Advance(talkInterval()) {
		for _, p := range l.peers {
			p.send(albHost)
		}
	}
}

// shares runs for a while and returns what part of the bytes the first link
// carried, sent and received.
func (l *albLAN) shares(d time.Duration) (tx, rx float64) {
	before := l.bond.Status()
	l.run(d)
	after := l.bond.Status()
	part := func(bytes func(bonding.Counters) uint64) float64 {
		var n [2]uint64
		for i := range n {
			n[i] = bytes(after.Slaves[i].Counters) - bytes(before.Slaves[i].Counters)
		}
		return float64(n[0]) / float64(n[0]+n[1])
	}
	return part(func(c bonding.Counters) uint64 { return c.TxBytes }), part(func(c bonding.Counters) uint64 { return c.RxBytes })
}

func (l *albLAN) wantBalanced(when string) {
	l.tb.Helper()
	tx, rx := l.shares(10 * time.Second)
	l.tb.Logf("%s: link 0 carries %.0f %% of what is sent and %.0f %% of what is received", when, 100*tx, 100*rx)
	for _, share := range []float64{tx, rx} {
		if share < 0.3 || share > 0.7 {
			l.tb.Errorf("%s: link 0 carries %.2f of the bytes sent and %.2f of those received, want 0.3 to 0.7", when, tx, rx)
			return
		}
	}
}

// Must hold 3, with neighbours that behave as Linux's: with eight peers on two
// links each carries 30 to 70 % in each direction; when one is cut every peer is
// served within a second; and it takes its part again when it is back. The
// active link and the other one are cut in turn.
func TestALBPeers(t *testing.T) {
	l := newALBLAN(t, 8)
	l.run(5 * time.Second)
	l.wantBalanced("learned")
	for _, cut := range []int{1, 0, 1} {
		active := l.bond.Status().ActiveSlave
		clear(l.worst)
		l.sw.Port(cut).SetCarrier(false)
		l.run(12 * time.Second)
		worst := time.Duration(0)
		for i, d := range l.worst {
			worst = max(worst, d)
			if now := l.clock.NowMonotonic(); d > time.Second || now.Sub(l.last[i]) > 2*talkInterval() {
				t.Errorf("link %d cut: peer %d was not served for %v, and last %v ago", cut, i, d, now.Sub(l.last[i]))
			}
		}
		t.Logf("link %d cut, the active slave was %s: no peer without echo for more than %v", cut, active, worst)
		clear(l.worst)
		l.sw.Port(cut).SetCarrier(true)
		l.run(15 * time.Second)
		for i, d := range l.worst {
			if d > time.Second {
				t.Errorf("link %d back: peer %d was not served for %v", cut, i, d)
			}
		}
		l.wantBalanced(fmt.Sprintf("link %d back", cut))
	}
	if n := l.bond.Status().Counters.Drops["rx_other_host"]; n > 0 {
		t.Logf("%d frames for an address that was not the slave's", n)
	}
}
