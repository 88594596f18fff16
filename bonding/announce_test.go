package bonding_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/vlan"
	netstack "bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// listen has the rig note each announcement: how many milliseconds after start,
// and by which slave a frame sent then goes.
func (r *rig) listen() *announcements {
	a := &announcements{rig: r}
	a.reset()
	r.tb.Cleanup(r.SubscribeNotifyPeers(func() {
		now := r.clock.Now().Sub(a.start).Milliseconds()
		for _, l := range r.links {
			l.Drain()
		}
		r.send(1)
		by := "nobody"
		for name, l := range r.links {
			if len(data(l.Drain())) > 0 {
				by = name
			}
		}
		a.heard = append(a.heard, fmt.Sprint(now, " ", by))
	}))
	return a
}

type announcements struct {
	rig   *rig
	start time.Time
	heard []string
}

func (a *announcements) reset() { a.start, a.heard = a.rig.clock.Now(), nil }

func (a *announcements) want(when string, want ...string) {
	a.rig.tb.Helper()
	if got := fmt.Sprint(a.heard); got != fmt.Sprint(want) {
		a.rig.tb.Errorf("%s: announcements were %s, want %v", when, got, want)
	}
}

// every returns n times, gap apart from the first, all by one slave.
func every(first, gap, n int, by string) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(first+i*gap, " ", by))
	}
	return list
}

// After a failover the addresses are announced num_grat_arp times, the first
// time at once, peer_notif_delay apart, by the new active slave (T20: miimon 10,
// 10 of them 100 ms apart).
func TestAnnouncements(t *testing.T) {
	for _, tt := range []struct {
		miimon, delay time.Duration
		count         int
		n, gap        int
	}{
		{10 * time.Millisecond, 100 * time.Millisecond, 10, 10, 100},
		{10 * time.Millisecond, 0, 10, 10, 10},
		{100 * time.Millisecond, 0, 3, 3, 100},
		{100 * time.Millisecond, 250 * time.Millisecond, 3, 3, 200},
		{100 * time.Millisecond, 99 * time.Millisecond, 3, 3, 100},
		{100 * time.Millisecond, time.Second, 255, 255, 1000},
		{0, 0, 0, 1, 0},
		{0, 0, 1, 1, 0},
		{0, 0, -1, 0, 0},
		{-1, 0, 3, 3, 100}, // by the order of active_slave, without a monitor
	} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, MIIMon: tt.miimon, PeerNotifDelay: tt.delay, NumGratARP: tt.count}, 2)
		r.ms(30_033) // those of the start are over
		a := r.listen()
		if tt.miimon < 0 {
			r.do("active_slave=eth1")
		} else {
			r.do("eth0 down")
		}
		r.ms(600_000)
		a.want(fmt.Sprintf("miimon %v, peer_notif_delay %v, num_grat_arp %d", tt.miimon, tt.delay, tt.count), every(0, tt.gap, tt.n, "eth1")...)
	}
}

// Each change of the active slave announces: failover, failback, an order.
func TestEachFailoverAnnounces(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth0", NumGratARP: 2}, 3)
	r.ms(10_000)
	a := r.listen()
	for _, tt := range []struct{ do, by string }{
		{"eth0 down", "eth1"}, {"eth0 up", "eth0"}, {"active_slave=eth2", "eth2"}, {"primary=eth1", "eth1"}, {"-eth1", "eth0"},
	} {
		a.reset()
		r.do(tt.do)
		r.ms(10_000)
		a.want(tt.do, every(0, 100, 2, tt.by)...)
	}
	for _, quiet := range []string{"eth2 down", "eth2 up", "eth0 prio 4", "num_grat_arp=7", "+eth4", "-eth4"} {
		a.reset()
		r.do(quiet)
		r.ms(10_000)
		a.want(quiet)
	}
}

// A new failover begins anew, whatever is left of the last.
func TestFailoverRestartsAnnouncements(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, NumGratARP: 5}, 3)
	r.ms(10_000)
	a := r.listen()
	r.do("eth0 down")
	r.ms(150) // two are out
	r.do("eth1 down")
	r.ms(10_000)
	a.want("a second failover", append(every(0, 100, 2, "eth1"), every(150, 100, 5, "eth2")...)...)
}

// What falls into a time without carrier is lost; when the carrier is back all
// is announced anew, since the bond may be on another port of the switch.
func TestAnnouncementsWithoutCarrier(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode, NumGratARP: 3}, 1)
		r.ms(10_000)
		a := r.listen()
		r.do("eth0 down")
		r.ms(1000)
		a.want("without carrier")
		r.do("eth0 up")
		r.ms(50) // one is out
		r.do("eth0 down")
		r.ms(1000)
		a.want("carrier for a moment", "1000 eth0")
		r.do("eth0 up")
		r.ms(1000)
		a.want("carrier is back", append([]string{"1000 eth0"}, every(2050, 100, 3, "eth0")...)...)
	}
}

// In the modes without a meaningful active slave the loss of one of several
// slaves announces nothing.
func TestNoAnnouncementsWhileSpreading(t *testing.T) {
	for _, m := range recoveryModes {
		if m.mode == bonding.ActiveBackup {
			continue
		}
		r := newRig(t, bonding.Options{Mode: m.mode}, 2)
		r.ms(10_000)
		a := r.listen()
		for _, do := range []string{"eth0 down", "eth0 up", "eth1 down", "+eth2", "-eth0"} {
			r.do(do)
			r.ms(1000)
		}
		a.want(m.mode.String())
	}
}

// Without a NIC nothing is announced, and what was left when it went is not
// made up for.
func TestAnnouncementsEndWithTheNIC(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, NumGratARP: 5}, 3)
	r.ms(10_000)
	a := r.listen()
	r.do("eth0 down")
	r.Attach(nil)
	r.ms(1000)
	r.do("active_slave=eth2")
	r.attach()
	r.ms(1000)
	a.want("the NIC went after the first", "0 eth1")
}

// A subscription ends when it is cancelled, and only it.
func TestCancelAnnouncements(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.ms(1000)
	var heard []string
	var cancels []func()
	for _, who := range []string{"a", "b", "c"} {
		cancels = append(cancels, r.SubscribeNotifyPeers(func() { heard = append(heard, who) }))
	}
	r.do("eth0 down")
	cancels[1]()
	cancels[1]()
	r.do("eth0 up")
	r.do("active_slave=eth0")
	if got := fmt.Sprint(heard); got != "[a b c a c]" {
		t.Errorf("subscribers were called %s", got)
	}
}

// A host on the bond and a VLAN device of it announces each of its addresses from
// the new active slave, tagged for the VLAN, on failover and on failback, and
// nothing on the old one (A13, T20).
func TestHostAnnounces(t *testing.T) {
	for _, count := range []int{3, 10, -1} {
		r := newDownRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth0", NumGratARP: count,
			MIIMon: 10 * time.Millisecond, PeerNotifDelay: 100 * time.Millisecond}, 2)
		trunk, err := vlan.NewTrunk(r.Bond)
		if err != nil {
			t.Fatal(err)
		}
		device, err := trunk.Add(link.VLANTag{Protocol: link.TagProtocolQ, ID: 10}, vlan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := netstack.NewHost(trunk, netstack.HostOptions{
			Clock: r.clock, DADTransmits: -1,
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.1.1/24"), netip.MustParsePrefix("fd00::1/64")},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if _, err := h.AddLink("bond0.10", device, netstack.LinkOptions{
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.2.1/24"), netip.MustParsePrefix("fd00:2::1/64")},
		}); err != nil {
			t.Fatal(err)
		}
		r.ms(10_000)
		for _, tt := range []struct{ do, old, new string }{{"eth0 down", "eth0", "eth1"}, {"eth0 up", "eth1", "eth0"}} {
			r.sent("eth0", "eth1")
			r.do(tt.do)
			r.ms(1000)
			if n := announced(t, r.links[tt.old].Drain()); len(n) != 0 {
				t.Errorf("%s: on the old slave was announced %v", tt.do, n)
			}
			n := announced(t, r.links[tt.new].Drain())
			for _, addr := range []string{"10.0.0.1", "10.0.1.1", "fd00::1", "fe80::ff:fe00:ee00", "vlan 10 10.0.2.1", "vlan 10 fd00:2::1", "vlan 10 fe80::ff:fe00:ee00"} {
				if n[addr] != max(count, 0) {
					t.Errorf("%s: %s was announced %d times, want %d (%v)", tt.do, addr, n[addr], max(count, 0), n)
				}
			}
		}
	}
}

// announced counts the gratuitous ARP requests and unsolicited neighbour
// advertisements among frames, by tag and address.
func announced(tb testing.TB, frames []linktest.Written) map[string]int {
	tb.Helper()
	n := map[string]int{}
	for _, w := range frames {
		payload, kind, tag := w.Frame[14:], header.Ethernet(w.Frame).Type(), ""
		if kind == 0x8100 {
			tag = fmt.Sprintf("vlan %d ", binary.BigEndian.Uint16(payload)&0xfff)
			kind, payload = tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(payload[2:])), payload[4:]
		}
		switch kind {
		case header.ARPProtocolNumber:
			a := header.ARP(payload)
			if string(a.ProtocolAddressSender()) == string(a.ProtocolAddressTarget()) && a.Op() == header.ARPRequest {
				addr, _ := netip.AddrFromSlice(a.ProtocolAddressSender())
				n[tag+addr.String()]++
			}
		case header.IPv6ProtocolNumber:
			ip := header.IPv6(payload)
			if icmp := header.ICMPv6(ip.Payload()); ip.NextHeader() == 58 && icmp.Type() == header.ICMPv6NeighborAdvert {
				na := header.NDPNeighborAdvert(icmp.MessageBody())
				if !na.SolicitedFlag() {
					n[tag+netip.AddrFrom16(na.TargetAddress().As16()).String()]++
				}
			}
		}
	}
	return n
}
