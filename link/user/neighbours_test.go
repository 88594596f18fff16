package user

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
)

// station is one who sends raw frames by a link.
type station struct {
	t    *testing.T
	link *Link
	sink linktest.Sink
	mac  tcpip.LinkAddress
	hub  tcpip.LinkAddress
}

func newStation(t *testing.T, n *Network, last byte) *station {
	t.Helper()
	l, err := n.NewLink()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	s := &station{t: t, link: l, mac: tcpip.LinkAddress([]byte{2, 0, 0, 0, 0, last}), hub: n.hub.address}
	l.SetLinkAddress(s.mac)
	l.Attach(&s.sink)
	return s
}

const broadcast = tcpip.LinkAddress("\xff\xff\xff\xff\xff\xff")

func (s *station) arp(op uint16, sender, target string) {
	linktest.Write(s.link, linktest.Ethernet(broadcast, s.mac, linktest.EtherTypeARP,
		linktest.ARP(op, s.mac, netip.MustParseAddr(sender), "\x00\x00\x00\x00\x00\x00", netip.MustParseAddr(target))))
}

// answers waits for n frames, and returns who is said to have what.
func (s *station) answers(n int) []string {
	s.t.Helper()
	var who []string
	for _, d := range s.sink.Await(s.t, n)[:n] {
		a := header.ARP(d.Frame[header.EthernetMinimumSize:])
		if d.Protocol != header.ARPProtocolNumber || a.Op() != header.ARPReply || tcpip.LinkAddress(a.HardwareAddressSender()) != s.hub {
			s.t.Errorf("% x is no answer of the network's", d.Frame)
			continue
		}
		who = append(who, netip.AddrFrom4([4]byte(a.ProtocolAddressSender())).String())
	}
	s.sink.Drain()
	return who
}

func newTestNetwork(t *testing.T) *Network {
	t.Helper()
	n, err := NewNetwork(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// Every address is answered for, but those of the bond's side: not to probes, nor
// when others ask for them.
func TestARP(t *testing.T) {
	n := newTestNetwork(t)
	s := newStation(t, n, 1)
	s.arp(linktest.ARPRequest, "0.0.0.0", "192.0.2.5") // a probe
	s.arp(linktest.ARPRequest, "192.0.2.5", "192.0.2.1")
	s.arp(linktest.ARPRequest, "192.0.2.5", "198.51.100.7")
	s.arp(linktest.ARPRequest, "192.0.2.6", "192.0.2.5") // another station behind the bond
	s.arp(linktest.ARPRequest, "192.0.2.6", "192.0.2.2")
	got := s.answers(3)
	if len(got) != 3 || got[0] != "192.0.2.1" || got[1] != "198.51.100.7" || got[2] != "192.0.2.2" {
		t.Errorf("the answers are for %v", got)
	}
	if c := n.Stats().Claims; c != 2 {
		t.Errorf("%d claims, want 2", c)
	}
}

// The gateways are not free: who asks whether they are is told, by ARP and by
// duplicate address detection.
func TestGatewaysAreTaken(t *testing.T) {
	n := newTestNetwork(t)
	s := newStation(t, n, 1)
	s.arp(linktest.ARPRequest, "0.0.0.0", "10.0.2.2")
	if got := s.answers(1); len(got) != 1 || got[0] != "10.0.2.2" {
		t.Errorf("answers are for %v, want 10.0.2.2", got)
	}
	for i, want := range []string{"fd00::2", "fe80::2"} {
		linktest.Write(s.link, solicitation(s.mac, "::", want))
		frame := s.sink.Await(t, i+1)[i].Frame
		ip := header.IPv6(frame[header.EthernetMinimumSize:])
		advert := header.NDPNeighborAdvert(header.ICMPv6(ip.Payload()).MessageBody())
		if target := netip.AddrFrom16(advert.TargetAddress().As16()); target.String() != want || !header.IsV6MulticastAddress(ip.DestinationAddress()) {
			t.Errorf("% x is no advertisement of %s to all", frame, want)
		}
	}
}

// An announcement tells that an address has moved to another link and MAC address,
// as with fail_over_mac=active.
func TestAnnouncement(t *testing.T) {
	n := newTestNetwork(t)
	a, b := newStation(t, n, 1), newStation(t, n, 2)
	at := func() tcpip.LinkAddress {
		entries, err := n.stack.Neighbors(nic, ipv4.ProtocolNumber)
		if err != nil || len(entries) != 1 {
			t.Fatalf("neighbours: %v, %v", entries, err)
		}
		return entries[0].LinkAddr
	}
	for _, op := range []uint16{linktest.ARPRequest, linktest.ARPReply} {
		a.arp(linktest.ARPRequest, "192.0.2.5", "192.0.2.1")
		a.answers(1)
		if at() != a.mac {
			t.Errorf("the address is at %v, want %v", at(), a.mac)
		}
		b.arp(op, "192.0.2.5", "192.0.2.5")
		b.answers(1) // that of the gateway; by then the stack has learned
		if at() != b.mac {
			t.Errorf("after the announcement the address is at %v, want %v", at(), b.mac)
		}
	}
}

// solicitation returns a neighbour solicitation for a target, sent to its group.
func solicitation(mac tcpip.LinkAddress, source, target string) []byte {
	address := tcpip.AddrFrom16(netip.MustParseAddr(target).As16())
	group := header.SolicitedNodeAddr(address)
	message := make([]byte, header.ICMPv6NeighborSolicitMinimumSize, 40)
	message[0] = byte(header.ICMPv6NeighborSolicit)
	copy(message[8:], address.AsSlice())
	if from := netip.MustParseAddr(source); !from.IsUnspecified() {
		message = append(append(message, 1, 1), mac...)
	}
	icmp := header.ICMPv6(message)
	icmp.SetChecksum(header.ICMPv6Checksum(header.ICMPv6ChecksumParams{
		Header: icmp, Src: tcpip.AddrFrom16(netip.MustParseAddr(source).As16()), Dst: group}))
	packet := linktest.IP(netip.MustParseAddr(source), netip.AddrFrom16(group.As16()), uint8(header.ICMPv6ProtocolNumber), message)
	packet[7] = header.NDPHopLimit
	return linktest.Ethernet(header.EthernetAddressFromMulticastIPv6Address(group), mac, linktest.EtherTypeIPv6, packet)
}

// Neighbour solicitations for whatever address are answered, those of duplicate
// address detection are not.
func TestSolicitation(t *testing.T) {
	n := newTestNetwork(t)
	s := newStation(t, n, 1)
	linktest.Write(s.link,
		solicitation(s.mac, "::", "2001:db8::5"),
		solicitation(s.mac, "2001:db8::5", "2001:db8::77"),
		solicitation(s.mac, "2001:db8::6", "2001:db8::5"),
		solicitation(s.mac, "2001:db8::5", "fd00::2"))
	for i, want := range []string{"2001:db8::77", "fd00::2"} {
		frame := s.sink.Await(t, i+1)[i].Frame
		ip := header.IPv6(frame[header.EthernetMinimumSize:])
		icmp := header.ICMPv6(ip.Payload())
		if icmp.Type() != header.ICMPv6NeighborAdvert || netip.AddrFrom16(header.NDPNeighborAdvert(icmp.MessageBody()).TargetAddress().As16()).String() != want {
			t.Errorf("frame %d is % x, want an advertisement of %s", i, frame, want)
		}
	}
	if c := n.Stats().Claims; c != 2 {
		t.Errorf("%d claims, want 2", c)
	}
}

// Frames for a station go where it was last seen, for others to all that are up.
func TestHub(t *testing.T) {
	n := newTestNetwork(t)
	a, b := newStation(t, n, 1), newStation(t, n, 2)
	send := func(to tcpip.LinkAddress) {
		pkt := linktest.Packets(linktest.Ethernet(to, n.hub.address, 0x88b5, []byte("test")))
		defer pkt.DecRef()
		if _, err := n.hub.WritePackets(pkt); err != nil {
			t.Error(err)
		}
	}
	count := func(when string, wantA, wantB uint64) {
		t.Helper()
		if gotA, gotB := a.link.port.far.Stats().TxFrames, b.link.port.far.Stats().TxFrames; gotA != wantA || gotB != wantB {
			t.Errorf("%s: %d and %d frames, want %d and %d", when, gotA, gotB, wantA, wantB)
		}
	}
	send(a.mac)
	count("not seen", 1, 1)
	n.hub.learn(mac([]byte(a.mac)), a.link.port)
	send(a.mac)
	count("seen at a", 2, 1)
	n.hub.learn(mac([]byte(a.mac)), b.link.port)
	send(a.mac)
	count("moved to b", 2, 2)
	b.link.SetCarrier(false)
	send(a.mac)
	count("b is cut", 3, 2)
	send(broadcast)
	count("to all", 4, 2)
	a.link.SetUp(false)
	send(a.mac)
	if got := n.Stats().NoLink; got != 1 {
		t.Errorf("%d frames had no link, want 1", got)
	}
	for i := range uint32(2 * maxStations) {
		var m mac
		binary.BigEndian.PutUint32(m[2:], i)
		n.hub.learn(m, a.link.port)
	}
	if got := len(*n.hub.stations.Load()); got != maxStations {
		t.Errorf("%d stations are known, want %d", got, maxStations)
	}
	a.link.SetMTU(1400)
	if got := n.hub.MTU(); got != 1400 {
		t.Errorf("the MTU is %d, want the least of the links, 1400", got)
	}
	a.link.Close()
	if got := n.hub.MTU(); got != DefaultMTU {
		t.Errorf("without that link the MTU is %d", got)
	}
}

// Frames of whatever bytes do no harm.
func FuzzFrame(f *testing.F) {
	n, err := NewNetwork(Options{})
	if err != nil {
		f.Fatal(err)
	}
	defer n.Close()
	mac := tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01")
	f.Add(linktest.Flow4(0).ARPRequest()[14:], uint16(linktest.EtherTypeARP))
	f.Add(solicitation(mac, "2001:db8::5", "2001:db8::77")[14:], uint16(linktest.EtherTypeIPv6))
	f.Fuzz(func(t *testing.T, packet []byte, etherType uint16) {
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
			Payload: buffer.MakeWithData(linktest.Ethernet(n.hub.address, mac, etherType, packet))})
		defer pkt.DecRef()
		pkt.LinkHeader().Consume(header.EthernetMinimumSize)
		// Not to the stack: it would pass on to the world what makes sense.
		if instead, _ := n.hub.neighbour(tcpip.NetworkProtocolNumber(etherType), pkt); instead != nil {
			instead.DecRef()
		}
	})
}
