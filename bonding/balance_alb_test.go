package bonding_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// albHost is the bond's own host in tests without a netstack: 10.0.0.1.
var albHost = netip.AddrFrom4([4]byte{10, 0, 0, 1})

// newALB makes a bond in balance-alb of n slaves.
func newALB(tb testing.TB, n int) *rig {
	return newRig(tb, bonding.Options{Mode: bonding.BalanceALB, LPInterval: time.Hour}, n)
}

// adaptive reports whether a mode is balance-tlb or balance-alb.
func adaptive(m bonding.Mode) bool { return m == bonding.BalanceTLB || m == bonding.BalanceALB }

// peer n is 10.0.0.n.
func albPeer(n int) linktest.Flow {
	return linktest.Flow{
		SrcMAC: tcpip.LinkAddress([]byte{2, 0, 0, 0, 1, byte(n)}), Src: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 7),
		Dst: netip.AddrPortFrom(albHost, 7),
	}
}

// toPeer is the flow from the bond's host to peer n.
func (r *rig) toPeer(n int) linktest.Flow {
	f := albPeer(n).Reverse()
	f.SrcMAC = r.LinkAddress()
	return f
}

// write sends frames as the host does, and returns what each slave was given, as
// "eth0: ..." lines of who tells whom what.
func (r *rig) write(frames ...[]byte) []string {
	r.tb.Helper()
	for _, l := range r.links {
		l.Drain()
	}
	for _, f := range frames {
		pkt := linktest.Packet(f)
		var list stack.PacketBufferList
		list.PushBack(pkt)
		if n, err := r.WritePackets(list); n != 1 || err != nil {
			r.tb.Errorf("WritePackets = %d, %v", n, err)
		}
		v := pkt.ToView()
		if !bytes.Equal(v.AsSlice(), f) {
			r.tb.Errorf("the packet was changed to % x, it was % x", v.AsSlice(), f)
		}
		v.Release()
		pkt.DecRef()
	}
	return r.lines()
}

// lines drains the links.
func (r *rig) lines() []string {
	var list []string
	for _, s := range r.Status().Slaves {
		for _, w := range r.links[s.Name].Drain() {
			list = append(list, s.Name+": "+albShort(w.Frame))
		}
	}
	return list
}

// albShort says from whom to whom a frame goes, and who an ARP packet says that
// the sender is.
func albShort(b []byte) string {
	eth := header.Ethernet(b)
	line := fmt.Sprintf("%x>%x", shortMAC(eth.SourceAddress()), shortMAC(eth.DestinationAddress()))
	for eth.Type() == 0x8100 || eth.Type() == 0x88a8 {
		line += fmt.Sprintf(" vlan %d", (int(b[14])<<8|int(b[15]))&0xfff)
		b = append(slices.Clone(b[:12]), b[16:]...)
		eth = header.Ethernet(b)
	}
	switch {
	case isARP(b):
		line += fmt.Sprintf(" op %d %x", b[opOffset], shortMAC(tcpip.LinkAddress(b[senderMAC:senderMAC+6])))
	case eth.Type() == 0x9000:
		line += " learn"
	}
	return line
}

// shortMAC is the last two bytes of an address.
func shortMAC(a tcpip.LinkAddress) []byte { return []byte(a[4:]) }

func (r *rig) wantLines(when string, got []string, want ...string) {
	r.tb.Helper()
	if !slices.Equal(got, want) {
		r.tb.Errorf("%s:\n got %q\nwant %q", when, got, want)
	}
}

// replies has the host answer peers, and throws away what that sends.
func (r *rig) replies(peers ...int) {
	r.tb.Helper()
	for _, n := range peers {
		r.write(r.toPeer(n).ARPReply())
	}
}

// T146: the replies to four clients leave in turn by two slaves, each with its
// slave's address, and what the host wrote stays as it was.
func TestALBReplies(t *testing.T) {
	r := newALB(t, 2)
	for n := 11; n <= 14; n++ {
		got := r.write(r.toPeer(n).ARPReply())
		want := fmt.Sprintf("eth0: ee00>01%02x op 2 ee00", n)
		if n%2 == 0 {
			want = fmt.Sprintf("eth1: ee01>01%02x op 2 ee01", n)
		}
		r.wantLines(fmt.Sprint("reply to ", n), got, want)
	}
	// T149: a burst of IP.
	if n, err := r.send(32); n != 32 || err != nil {
		t.Errorf("burst: %d, %v", n, err)
	}
	st := r.Status()
	if st.Balance.Clients.Count != 4 || st.Slaves[0].Balance.Clients != 2 || st.Slaves[1].Balance.Clients != 2 {
		t.Errorf("status %+v", st.Balance.Clients)
	}
	want := bonding.ClientStatus{Source: "10.0.0.1", Destination: "10.0.0.14", MACAddress: "02:00:00:00:01:0e", Slave: "eth1"}
	if c := st.Balance.Clients.List[0]; fmt.Sprint(c) != fmt.Sprint(want) {
		t.Errorf("newest client %+v", c)
	}
}

// A request tells everybody the bond's address, and goes by its client's slave;
// who has another address is told two seconds later.
func TestALBRequests(t *testing.T) {
	r := newALB(t, 2)
	r.replies(11, 12)
	r.ms(100)
	r.wantLines("first round", r.lines(), "eth0: ee00>010b op 2 ee00", "eth0: ee00>010b op 2 ee00", "eth1: ee01>010c op 2 ee01", "eth1: ee01>010c op 2 ee01")
	r.wantLines("request", r.write(r.toPeer(13).ARPRequest()), "eth0: ee00>ffff op 1 ee00")
	r.wantLines("request", r.write(r.toPeer(14).ARPRequest()), "eth1: ee01>ffff op 1 ee00")
	f := albPeer(14)
	f.DstMAC = r.LinkAddress()
	r.links["eth0"].Inject(f.ARPReply())
	if d := r.up.Drain(); len(d) != 1 {
		t.Errorf("%d packets delivered: ARP is consumed", len(d))
	}
	r.ms(2000)
	r.wantLines("2 s", r.lines())
	r.ms(100)
	r.wantLines("second round", r.lines(), "eth1: ee01>010e op 2 ee01", "eth1: ee01>010e op 2 ee01", "eth1: ee01>010c op 2 ee01", "eth1: ee01>010c op 2 ee01")
}

// A52: what does not come from us is not touched: frames of others keep their
// source, and ARP of others its addresses, in both adaptive modes.
func TestAdaptiveLeaveForeignFrames(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceTLB, bonding.BalanceALB} {
		r := newRig(t, bonding.Options{Mode: mode, LPInterval: time.Hour}, 2)
		guest := linktest.Flow4(5)
		for i := range 20 {
			f := linktest.Flow4(i)
			f.SrcMAC = guest.SrcMAC
			for _, frame := range [][]byte{f.UDP(nil), f.ARPReply(), f.ARPRequest()} {
				pkt := linktest.Write
				if n, err := pkt(r, frame); n != 1 || err != nil {
					t.Fatalf("%v: %d, %v", mode, n, err)
				}
				for name, l := range r.links {
					for _, w := range l.Drain() {
						if !bytes.Equal(w.Frame, frame) || name != "eth0" {
							t.Errorf("%v: slave %s was given % x, the guest sent % x", mode, name, w.Frame, frame)
						}
					}
				}
			}
			// An ARP packet of ours that tells of a guest.
			f.SrcMAC = r.LinkAddress()
			frame := linktest.Ethernet(f.DstMAC, r.LinkAddress(), linktest.EtherTypeARP,
				linktest.ARP(linktest.ARPReply, guest.SrcMAC, f.Src.Addr(), f.DstMAC, f.Dst.Addr()))
			linktest.Write(r, frame)
			if w := r.links["eth0"].Drain(); len(w) != 1 || !bytes.Equal(w[0].Frame, frame) {
				t.Errorf("%v: proxied reply became %v", mode, w)
			}
		}
		if c := r.Status().Balance.Clients; c != nil && c.Count != 0 {
			t.Errorf("%v: %d clients", mode, c.Count)
		}
	}
}

// Each slave receives for its own address, the active one for the bond's and
// for groups, and for those of slaves whose link is down.
func TestALBReceives(t *testing.T) {
	r := newALB(t, 3)
	own := func(i int) tcpip.LinkAddress { return macOf(fmt.Sprint("eth", i)) }
	try := func(when string, link int, to tcpip.LinkAddress, taken bool, src tcpip.LinkAddress) {
		t.Helper()
		f := albPeer(11)
		f.DstMAC = to
		if src != "" {
			f.SrcMAC = src
		}
		r.up.Drain()
		r.links[fmt.Sprint("eth", link)].Inject(f.UDP([]byte("x")))
		d := r.up.Drain()
		if len(d) == 1 != taken {
			t.Errorf("%s: a frame to %v on eth%d is taken: %v", when, to, link, len(d) == 1)
		}
		if taken && len(to) > 0 && to[0]&1 == 0 && d[0].PktType != tcpip.PacketHost {
			t.Errorf("%s: packet type %v", when, d[0].PktType)
		}
	}
	for link := range 3 {
		try("own", link, own(link), true, "")
		try("broadcast", link, header.EthernetBroadcastAddress, link == 0, "")
		try("group", link, "\x01\x00\x5e\x00\x00\x01", link == 0, "")
		try("another slave's", link, own((link+1)%3), false, "")
		try("another host's", link, "\x02\x00\x00\x00\x01\x0c", false, "")
		for from := range 3 {
			try("from us", link, header.EthernetBroadcastAddress, false, own(from))
		}
	}
	r.carrier("eth2", false)
	try("link down", 0, own(2), true, "")
	try("link down", 1, own(2), false, "")
	if p := r.links["eth0"].Calls().Promiscuous; !slices.Equal(p, []bool{true}) {
		t.Errorf("active slave's promiscuity %v", p)
	}
	r.ms(9900)
	if p := r.links["eth0"].Calls().Promiscuous; len(p) != 1 {
		t.Errorf("promiscuity %v after 9.9 s", p)
	}
	r.ms(200)
	if p := r.links["eth0"].Calls().Promiscuous; !slices.Equal(p, []bool{true, false}) {
		t.Errorf("promiscuity %v after 10 s", p)
	}
	r.carrier("eth2", true)
	try("link up", 0, own(2), false, "")
	try("link up", 2, own(2), true, "")
	// A failover gives the bond's address to another slave.
	r.carrier("eth0", false)
	try("failover", 1, r.LinkAddress(), true, "")
	try("failover", 1, own(1), true, "") // which eth0 has, and cannot receive on
	try("failover", 2, own(2), true, "")
	if a, b := r.links["eth0"].LinkAddress(), r.links["eth1"].LinkAddress(); a != own(1) || b != own(0) {
		t.Errorf("addresses %v and %v are not swapped", a, b)
	}
	r.ms(100)
	r.carrier("eth0", true)
	r.ms(10100)
	try("back", 0, own(1), true, "")
	try("back", 1, own(1), false, "")
}

// A slave that is lost, and is not the active one, has its address taught on
// the active one, and its clients told in four rounds.
func TestALBSlaveLost(t *testing.T) {
	r := newALB(t, 3)
	r.replies(11, 12, 13)
	r.ms(1000)
	r.lines()
	r.carrier("eth1", false)
	r.wantLines("lost", r.lines(), "eth0: ee01>ee01 learn")
	for round := range 4 {
		r.ms(2000)
		r.wantLines(fmt.Sprint("before round ", round), r.lines())
		r.ms(100)
		r.wantLines(fmt.Sprint("round ", round), r.lines(), "eth0: ee00>010c op 2 ee00", "eth0: ee00>010c op 2 ee00")
	}
	r.ms(5000)
	r.wantLines("after the rounds", r.lines())
	r.carrier("eth1", true)
	r.ms(3000)
	var moved []string
	for _, c := range r.Status().Balance.Clients.List {
		moved = append(moved, c.Slave)
	}
	slices.Sort(moved)
	r.wantLines("rebalanced", moved, "eth0", "eth1", "eth2")
	// Released, it takes no client with it.
	if err := r.Release("eth2"); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Status().Balance.Clients.List {
		if c.Slave == "eth2" || c.Slave == "" {
			t.Errorf("client %+v after the release", c)
		}
	}
	if got := r.links["eth2"].LinkAddress(); got != macOf("eth2") {
		t.Errorf("released slave has %v", got)
	}
}

// T148: updates carry the client's tags; with the VLAN its clients go.
func TestALBTags(t *testing.T) {
	r := newALB(t, 1)
	outer := link.VLANTag{Protocol: 0x8100, ID: 1}
	if err := r.AddVLAN(outer, r.LinkAddress); err != nil {
		t.Fatal(err)
	}
	f := linktest.VLAN(linktest.VLAN(r.toPeer(11).ARPReply(), 0x8100, 2), 0x8100, 1)
	r.wantLines("tagged reply", r.write(f), "eth0: ee00>010b vlan 1 vlan 2 op 2 ee00")
	r.ms(100)
	r.wantLines("update", r.lines(), "eth0: ee00>010b vlan 1 vlan 2 op 2 ee00", "eth0: ee00>010b vlan 1 vlan 2 op 2 ee00")
	if c := r.Status().Balance.Clients.List; len(c) != 1 || fmt.Sprint(c[0].VLANs) != fmt.Sprint([]link.VLANTag{outer, {Protocol: 0x8100, ID: 2}}) {
		t.Errorf("clients %+v", c)
	}
	r.RemoveVLAN(outer)
	if n := r.Status().Balance.Clients.Count; n != 0 {
		t.Errorf("%d clients of a VLAN that is gone", n)
	}
}

// ownRoutes is a stack that has one address.
type ownRoutes struct{ addr netip.Addr }

func (ownRoutes) Route(netip.Addr) (link.Way, bool) { return link.Way{}, false }
func (o ownRoutes) Owns(a netip.Addr) bool          { return a == o.addr }

// Whoever claims our address takes its clients away only if it is ours no more.
func TestALBClaims(t *testing.T) {
	r := newALB(t, 2)
	r.replies(11, 12)
	claim := albPeer(66)
	claim.Src = netip.AddrPortFrom(albHost, 7)
	cancel := r.UseRoutes(ownRoutes{albHost})
	r.links["eth0"].Inject(claim.ARPRequest())
	if n := r.Status().Balance.Clients.Count; n != 2 {
		t.Errorf("%d clients after a false claim", n)
	}
	cancel()
	r.links["eth1"].Inject(claim.ARPRequest())
	if n := r.Status().Balance.Clients.Count; n != 0 {
		t.Errorf("%d clients after the address has moved", n)
	}
}

// A link that takes no other address while it is attached is no place to send
// from: the bond goes on as active-backup does.
func TestALBFixedAddress(t *testing.T) {
	r := newALB(t, 1)
	fixed := &fixedAddress{Recorder: linktest.NewRecorder(linktest.RecorderOptions{Address: macOf("eth1")})}
	if err := r.Enslave("eth1", fixed, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	r.links["eth1"] = fixed.Recorder
	r.replies(11, 12, 13)
	r.send(8)
	if n := r.sent("eth0", "eth1"); n[1] != 0 {
		t.Errorf("%v frames: a second port has the bond's address", n)
	}
	if c := r.slave("eth0").Balance.Clients; c != 3 {
		t.Errorf("eth0 has %d clients", c)
	}
	r.carrier("eth0", false)
	r.ms(100)
	r.lines()
	if got := r.carries(); got != "eth1" {
		t.Errorf("after the failover %q carries", got)
	}
}

// fixedAddress keeps its address while it is attached.
type fixedAddress struct{ *linktest.Recorder }

func (f *fixedAddress) SetLinkAddress(a tcpip.LinkAddress) {
	if !f.IsAttached() {
		f.Recorder.SetLinkAddress(a)
	}
}

// A change of the bond's address is told to the active slave's clients.
func TestALBAddressChange(t *testing.T) {
	r := newALB(t, 2)
	r.replies(11, 12)
	r.ms(1000)
	r.lines()
	const next = tcpip.LinkAddress("\x02\x00\x00\x00\xaa\xaa")
	if err := r.ChangeLinkAddress(next); err != nil {
		t.Fatal(err)
	}
	r.ms(2100)
	r.wantLines("told", r.lines(), "eth0: aaaa>aaaa learn", "eth0: aaaa>010b op 2 aaaa", "eth0: aaaa>010b op 2 aaaa")
	// The other slave's address: they swap.
	if err := r.ChangeLinkAddress(macOf("eth1")); err != nil {
		t.Fatal(err)
	}
	if a, b := r.links["eth0"].LinkAddress(), r.links["eth1"].LinkAddress(); a != macOf("eth1") || b != next {
		t.Errorf("addresses %v, %v", a, b)
	}
	r.ms(2100)
	got := r.lines()
	for _, want := range []string{"eth0: ee01>010b op 2 ee01", "eth1: aaaa>010c op 2 aaaa"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}

// The option is for balance-alb alone, and IPv6 clients are balanced with it
// only.
func TestIPv6ReceiveBalance(t *testing.T) {
	other := newRig(t, bonding.Options{}, 1)
	if err := other.SetOption("ipv6_receive_balance", "1"); err == nil {
		t.Error("accepted in balance-rr")
	}
	r := newALB(t, 2)
	host, peer := netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	advert := albAdvert(host, peer, r.LinkAddress(), "\x02\x00\x00\x00\x01\x02")
	r.wantLines("off", r.write(advert), "eth0: ee00>0102")
	if n := r.Status().Balance.Clients.Count; n != 0 {
		t.Errorf("%d clients with the option off", n)
	}
	r.set("ipv6_receive_balance", "on")
	r.replies(11) // takes eth0
	r.wantLines("on", r.write(advert), "eth1: ee01>0102")
	linktest.Write(r, advert)
	w := r.links["eth1"].Drain()[0].Frame
	if !bytes.Equal(w[len(w)-6:], []byte(macOf("eth1"))) || !albAdvertGood(w) {
		t.Errorf("advertisement % x", w)
	}
	r.ms(100)
	n := 0
	for _, w := range r.links["eth1"].Drain() {
		n++
		if !albAdvertGood(w.Frame) || header.Ethernet(w.Frame).DestinationAddress() != "\x02\x00\x00\x00\x01\x02" {
			t.Errorf("update % x", w.Frame)
		}
	}
	if n != 2 {
		t.Errorf("%d updates", n)
	}
}

// albAdvert is a frame with a solicited neighbour advertisement.
func albAdvert(from, to netip.Addr, src, dst tcpip.LinkAddress) []byte {
	msg := make([]byte, header.ICMPv6NeighborAdvertMinimumSize+8)
	icmp := header.ICMPv6(msg)
	icmp.SetType(header.ICMPv6NeighborAdvert)
	na := header.NDPNeighborAdvert(icmp.MessageBody())
	na.SetSolicitedFlag(true)
	na.SetOverrideFlag(true)
	na.SetTargetAddress(tcpip.AddrFrom16(from.As16()))
	na.Options().Serialize(header.NDPOptionsSerializer{header.NDPTargetLinkLayerAddressOption(src)})
	icmp.SetChecksum(header.ICMPv6Checksum(header.ICMPv6ChecksumParams{
		Header: icmp, Src: tcpip.AddrFrom16(from.As16()), Dst: tcpip.AddrFrom16(to.As16())}))
	ip := linktest.IP(from, to, uint8(header.ICMPv6ProtocolNumber), msg)
	header.IPv6(ip).SetHopLimit(header.NDPHopLimit)
	return linktest.Ethernet(dst, src, linktest.EtherTypeIPv6, ip)
}

func albAdvertGood(frame []byte) bool {
	ip := header.IPv6(frame[header.EthernetMinimumSize:])
	icmp := header.ICMPv6(ip[header.IPv6MinimumSize:])
	sum := icmp.Checksum()
	icmp.SetChecksum(0)
	good := header.ICMPv6Checksum(header.ICMPv6ChecksumParams{Header: icmp, Src: ip.SourceAddress(), Dst: ip.DestinationAddress()})
	icmp.SetChecksum(sum)
	return sum == good && icmp.Type() == header.ICMPv6NeighborAdvert
}

// A slave that is drained loses its clients to others, still receives from those
// who do not know yet, and gets its part again.
func TestALBDrain(t *testing.T) {
	r := newALB(t, 2)
	r.replies(11, 12)
	r.ms(1000)
	r.lines()
	if err := r.Drain("eth1"); err != nil {
		t.Fatal(err)
	}
	r.ms(2100)
	r.wantLines("drained", r.lines(), "eth0: ee00>010c op 2 ee00", "eth0: ee00>010c op 2 ee00")
	f := albPeer(12)
	f.DstMAC = macOf("eth1")
	r.up.Drain()
	r.links["eth1"].Inject(f.UDP(nil))
	if n := len(r.up.Drain()); n != 1 {
		t.Error("a drained slave does not receive")
	}
	if err := r.Undrain("eth1"); err != nil {
		t.Fatal(err)
	}
	r.ms(10000)
	if c := r.slave("eth1").Balance.Clients; c != 1 {
		t.Errorf("eth1 has %d clients", c)
	}
}
