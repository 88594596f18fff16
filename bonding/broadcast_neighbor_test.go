package bonding_test

import (
	"fmt"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// neighbors are frames that resolve addresses, by what they are.
func neighbors() map[string][]byte {
	f := linktest.Flow6(1)
	icmp := func(kind header.ICMPv6Type, rest ...byte) []byte {
		return f.IP(58, append([]byte{byte(kind), 0, 0, 0}, rest...))
	}
	return map[string][]byte{
		"ARP request":      linktest.Flow4(1).ARPRequest(),
		"ARP reply":        linktest.Flow4(1).ARPReply(),
		"solicitation":     icmp(header.ICMPv6NeighborSolicit, make([]byte, 20)...),
		"advertisement":    icmp(header.ICMPv6NeighborAdvert, make([]byte, 20)...),
		"tagged ARP":       linktest.VLAN(linktest.Flow4(1).ARPRequest(), 0x8100, 10),
		"tagged advert":    linktest.VLAN(icmp(header.ICMPv6NeighborAdvert, make([]byte, 20)...), 0x88a8, 10),
		"one byte of ICMP": f.IP(58, []byte{byte(header.ICMPv6NeighborSolicit)}),
	}
}

// others are frames that resolve none.
func others() map[string][]byte {
	f := linktest.Flow6(1)
	hopByHop := append([]byte{58, 0, 5, 2, 0, 0, 1, 0}, byte(header.ICMPv6NeighborSolicit), 0, 0, 0)
	return map[string][]byte{
		"TCP":                  linktest.Flow4(1).TCP(linktest.Segment{}),
		"UDP":                  linktest.Flow4(2).UDP(nil),
		"UDP over IPv6":        f.UDP(nil),
		"router solicitation":  f.IP(58, []byte{byte(header.ICMPv6RouterSolicit), 0, 0, 0, 0, 0, 0, 0}),
		"echo":                 f.IP(58, []byte{128, 0, 0, 0, 0, 0, 0, 0}),
		"behind an extension":  f.IP(0, hopByHop),
		"no ICMP left":         f.IP(58, nil),
		"IPv6 header cut":      linktest.Ethernet("\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x02", 0x86dd, []byte{0x60, 0}),
		"twice tagged ARP":     linktest.VLAN(linktest.VLAN(linktest.Flow4(1).ARPRequest(), 0x8100, 10), 0x88a8, 11),
		"tag and nothing more": linktest.Ethernet("\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x02", 0x8100, []byte{0}),
	}
}

// With broadcast_neighbor, ARP and neighbour discovery go by every port that
// distributes, and everything else by the hash; without it all goes by the hash.
func TestBroadcastNeighbor(t *testing.T) {
	for _, on := range []string{"off", "on"} {
		r := newLACPRig(t, 3, map[string]string{"broadcast_neighbor": on})
		r.agree()
		r.carrier("eth2", false) // it does not distribute
		each := map[bool]string{false: "1 frames by 1", true: "2 frames by 2"}
		for about, frame := range neighbors() {
			if got := r.ways(frame); got != each[on == "on"] {
				t.Errorf("%s, %s: %s", on, about, got)
			}
		}
		for about, frame := range others() {
			if got := r.ways(frame); got != each[false] {
				t.Errorf("%s, %s: %s", on, about, got)
			}
		}
		r.carrier("eth0", false)
		r.carrier("eth1", false)
		before := r.drops("tx_no_slave")
		r.ways(linktest.Flow4(1).ARPRequest())
		if n := r.drops("tx_no_slave") - before; n != 1 {
			t.Errorf("%s: without a port %d frames were dropped and counted", on, n)
		}
	}
}

// A list of both kinds: the hash takes those that are its, and every frame is
// sent in the order of the list on its port.
func TestBroadcastNeighborMixed(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"broadcast_neighbor": "on"})
	r.agree()
	f := linktest.Flow4(1)
	if n, err := linktest.Write(r, f.UDP(nil), f.ARPRequest(), f.UDP(nil), f.ARPReply()); n != 4 || err != nil {
		t.Errorf("WritePackets() = %d, %v", n, err)
	}
	arps, udps := map[string]int{}, 0
	for name, l := range r.links {
		for _, w := range l.Drain() {
			switch header.Ethernet(w.Frame).Type() {
			case header.ARPProtocolNumber:
				arps[name]++
			case header.IPv4ProtocolNumber:
				udps++
			}
		}
	}
	if fmt.Sprint(arps) != "map[eth0:2 eth1:2]" || udps != 2 {
		t.Errorf("ARP %v, UDP %d", arps, udps)
	}
}

// ways sends a frame and tells how many frames went by how many slaves.
func (r *lacpRig) ways(frame []byte) string {
	frames, slaves := 0, 0
	for _, l := range r.links {
		l.Drain()
	}
	linktest.Write(r, frame)
	for _, l := range r.links {
		if n := len(l.Drain()); n > 0 {
			frames += n
			slaves++
		}
	}
	return fmt.Sprintf("%d frames by %d", frames, slaves)
}

// With broadcast_neighbor the addresses are announced whenever a port begins to
// send, num_grat_arp times; without it with the first port only.
func TestBroadcastNeighborAnnounces(t *testing.T) {
	for on, want := range map[string]int{"off": 0, "on": 3} {
		r := newLACPRig(t, 2, map[string]string{"broadcast_neighbor": on, "num_grat_arp": "3"})
		r.agree()
		run(r.clock, 10*time.Second)
		r.carrier("eth1", false)
		run(r.clock, 10*time.Second)
		announced := 0
		defer r.SubscribeNotifyPeers(func() { announced++ })()
		r.carrier("eth1", true)
		run(r.clock, 10*time.Second)
		if st := r.slave("eth1"); st.State != "active" || announced != want {
			t.Errorf("broadcast_neighbor %s: %d announcements when eth1 is %s again, want %d", on, announced, st.State, want)
		}
	}
}

// A change of mode turns broadcast_neighbor off, as in Linux.
func TestModeClearsBroadcastNeighbor(t *testing.T) {
	r := newDownRig(t, bonding.Options{Mode: bonding.IEEE8023AD, LACP: bonding.LACPOptions{BroadcastNeighbor: true}}, 0)
	for _, tt := range [][2]string{{"broadcast_neighbor", "1"}, {"mode", "0"}, {"mode", "4"}} {
		r.set(tt[0], tt[1])
	}
	if got, err := r.Option("broadcast_neighbor"); got != "0" || err != nil {
		t.Errorf("broadcast_neighbor is %s, %v", got, err)
	}
}

// A write with broadcast_neighbor allocates nothing, for lists of one kind and
// of both.
func TestBroadcastNeighborDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	b, err := bonding.New(bonding.Options{Mode: bonding.BalanceXOR})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, name := range []string{"eth0", "eth1"} {
		if err := b.Enslave(name, linktest.NewNull(linktest.NullOptions{Address: macOf(name)}), bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f := linktest.Flow4(1)
	for about, list := range map[string][][]byte{
		"UDP": {f.UDP(nil), f.UDP(nil)}, "ARP": {f.ARPRequest()}, "both": {f.UDP(nil), f.ARPRequest(), f.UDP(nil), f.ARPReply()},
	} {
		pkts := linktest.Packets(list...)
		bonding.WriteBroadcastNeighbor(b, pkts) // storage grows once
		if n := testing.AllocsPerRun(200, func() { bonding.WriteBroadcastNeighbor(b, pkts) }); n > 0 {
			t.Errorf("%s: %v allocations", about, n)
		}
		pkts.Reset()
	}
}

// What broadcast_neighbor costs those that it does not mean: xor is the same
// write without it.
func BenchmarkBroadcastNeighbor(b *testing.B) {
	bond, err := bonding.New(bonding.Options{Mode: bonding.BalanceXOR})
	if err != nil {
		b.Fatal(err)
	}
	defer bond.Close()
	for _, name := range []string{"eth0", "eth1"} {
		if err := bond.Enslave(name, linktest.NewNull(linktest.NullOptions{Address: macOf(name)}), bonding.SlaveOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	f := linktest.Flow4(1)
	for _, frame := range []struct {
		name  string
		bytes []byte
	}{{"UDP", f.UDP(nil)}, {"ARP", f.ARPRequest()}} {
		pkts := linktest.Packets(frame.bytes)
		defer pkts.Reset()
		b.Run("xor/"+frame.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bonding.WriteXOR(bond, pkts)
			}
		})
		b.Run("broadcast_neighbor/"+frame.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bonding.WriteBroadcastNeighbor(bond, pkts)
			}
		})
	}
}
