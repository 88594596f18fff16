package bridge_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/tap/bridge"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// The device shows what the bond is: address, MTU, carrier, speed.
func TestDeviceFollowsTheBond(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR})
	d := r.device
	if d.address != macOf(0) || d.mtu != 1500 || !d.carrier || d.speed != 20000 {
		t.Errorf("address %s, MTU %d, carrier %v, speed %d", d.address, d.mtu, d.carrier, d.speed)
	}
	r.bond.SetMTU(9000)
	r.bond.SetLinkAddress("\x02\x00\x00\x00\x00\x77")
	r.links[0].SetCarrier(false)
	r.clock.Advance(time.Second)
	if d.address != "\x02\x00\x00\x00\x00\x77" || d.mtu != 9000 || !d.carrier || d.speed != 10000 {
		t.Errorf("after changes: address %s, MTU %d, carrier %v, speed %d", d.address, d.mtu, d.carrier, d.speed)
	}
	r.links[1].SetCarrier(false)
	r.clock.Advance(time.Second)
	if d.carrier {
		t.Error("carrier without a link")
	}
	r.links[1].SetCarrier(true)
	r.clock.Advance(time.Second)
	if !d.carrier {
		t.Error("no carrier with a link")
	}
	d.promisc = true
	d.Recorder.SetCarrier(false) // tells of a change
	if got := r.links[0].Calls().Promiscuous; fmt.Sprint(got) != "[true]" {
		t.Errorf("links were told %v, want to be promiscuous", got)
	}
	r.bridge.Close()
	if r.bond.IsAttached() || d.IsAttached() {
		t.Error("something is attached after Close")
	}
	r.bond.SetMTU(1400)
	if d.mtu != 9000 {
		t.Error("the device follows after Close")
	}
}

// With fail_over_mac=active the address of the device changes in a failover, and
// the announcements have the new one.
func TestFailOverMACActive(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
	for _, name := range []string{"eth0", "eth1"} {
		if err := r.bond.Release(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.bond.SetOption("fail_over_mac", "active"); err != nil {
		t.Fatal(err)
	}
	for i := range r.links {
		r.links[i] = linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(i)})
		if err := r.bond.Enslave(fmt.Sprint("eth", i), r.links[i], bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.device.give("10.0.0.1")
	r.clock.Advance(time.Second)
	if r.device.address != macOf(0) {
		t.Errorf("the device has %s", r.device.address)
	}
	r.do("eth1")
	r.clock.Advance(time.Second)
	if r.device.address != macOf(1) {
		t.Errorf("after the failover the device has %s", r.device.address)
	}
}

// announced is what was announced by a link: "address is at MAC".
func announced(l *linktest.Recorder) string {
	var list []string
	for _, w := range l.Drain() {
		eth := header.Ethernet(w.Frame)
		body := w.Frame[14:]
		switch eth.Type() {
		case header.ARPProtocolNumber:
			arp := header.ARP(body)
			ip := netip.AddrFrom4([4]byte(arp.ProtocolAddressSender()))
			if target := netip.AddrFrom4([4]byte(arp.ProtocolAddressTarget())); target == ip && arp.Op() == header.ARPRequest {
				list = append(list, fmt.Sprintf("%s at %s", ip, tcpip.LinkAddress(arp.HardwareAddressSender())))
			}
		case header.IPv6ProtocolNumber:
			na := header.NDPNeighborAdvert(header.ICMPv6(body[40:]).MessageBody())
			target := na.TargetAddress()
			text := netip.AddrFrom16(target.As16()).String()
			if na.RouterFlag() {
				text += " a router"
			}
			list = append(list, fmt.Sprintf("%s at %s", text, eth.SourceAddress()))
		default:
			list = append(list, fmt.Sprintf("type %#x", eth.Type()))
		}
	}
	return strings.Join(list, ", ")
}

// A failover has the addresses of the namespace announced, and those that were
// seen; what is not there any more is not.
func TestAnnouncements(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
	r.device.give("10.0.0.1", "fd00::1")
	r.device.forwards = true
	guest := tcpip.LinkAddress("\x02\x00\x00\x00\x99\x01")
	speak := func(mac tcpip.LinkAddress, ip string) []byte {
		return linktest.Ethernet(header.EthernetBroadcastAddress, mac, 0x806,
			linktest.ARP(1, mac, netip.MustParseAddr(ip), "\x00\x00\x00\x00\x00\x00", netip.MustParseAddr("10.0.0.254")))
	}
	own := fmt.Sprintf("10.0.0.1 at %s, fd00::1 a router at %s", macOf(0), macOf(0))
	failover := func(to int) string {
		r.do([]string{"eth0", "eth1"}[to])
		r.bridge.Announce()
		return announced(r.links[to])
	}
	if got := failover(1); got != own {
		t.Errorf("announced %q, want %q", got, own)
	}
	told := r.device.told
	r.device.told = nil // the kernel's news are late
	r.device.give("10.0.0.1", "fd00::1", "10.0.0.9")
	r.bridge.Introduce()
	if got, want := announced(r.links[1]), own+fmt.Sprintf(", 10.0.0.9 at %s", macOf(0)); got != want {
		t.Errorf("announced %q of a new address, want %q", got, want)
	}
	r.device.told = told
	r.device.give("10.0.0.1", "fd00::1")
	for _, ip := range []string{"10.0.0.1", "10.0.0.50", "0.0.0.0", "127.0.0.1", "224.0.0.1"} {
		r.device.Inject(speak(guest, ip))
	}
	if got, want := failover(0), own+fmt.Sprintf(", 10.0.0.50 at %s", guest); got != want {
		t.Errorf("announced %q, want %q", got, want)
	}
	r.links[0].Inject(speak("\x02\x00\x00\x00\x77\x77", "10.0.0.50")) // it has moved
	if got := failover(1); got != own {
		t.Errorf("announced %q after the guest has moved, want %q", got, own)
	}
	r.device.Inject(speak(guest, "10.0.0.51"))
	r.device.Inject(speak(macOf(0), "10.0.0.1"))
	r.device.give("fd00::1") // 10.0.0.1 is deleted: it may be another host's now
	if got, want := failover(0), fmt.Sprintf("fd00::1 a router at %s, 10.0.0.51 at %s", macOf(0), guest); got != want {
		t.Errorf("announced %q, want %q", got, want)
	}
	r.clock.Advance(6 * time.Minute)
	if got, want := failover(1), fmt.Sprintf("fd00::1 a router at %s", macOf(0)); got != want {
		t.Errorf("announced %q after six minutes, want %q", got, want)
	}
	for i := range 300 {
		r.device.Inject(speak(guest, fmt.Sprintf("10.1.%d.%d", i>>8, i&255)))
	}
	got := failover(0)
	if n := strings.Count(got, "10.1."); n != 256 || !strings.Contains(got, "10.1.1.43 ") || strings.Contains(got, "10.1.0.43 ") {
		t.Errorf("%d of 300 are remembered, want the last 256", n)
	}
}

// What the device does not take is an error at the start.
func TestStubbornDevice(t *testing.T) {
	b, err := bonding.New(bonding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	d := newDevice()
	d.stubborn = true
	if _, err := bridge.New(d, b, bridge.Options{}); err == nil || !strings.Contains(err.Error(), "stubborn") {
		t.Errorf("New = %v", err)
	}
	d.stubborn = false
	if _, err := bridge.New(d, b, bridge.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bridge.New(newDevice(), b, bridge.Options{}); err == nil {
		t.Error("a link that is attached is taken")
	}
}

// The device is given the queries that have it report its memberships.
func TestReportMemberships(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
	r.bridge.ReportMemberships()
	got := r.device.Drain()
	if len(got) != 2 || len(r.links[0].Drain()) != 0 {
		t.Fatalf("%d queries", len(got))
	}
	igmp, mld := header.IPv4(got[0].Frame[14:]), header.IPv6(got[1].Frame[14:])
	if !igmp.IsValid(len(igmp)) || !igmp.IsChecksumValid() || igmp[24] != 0x11 || igmp.TTL() != 1 {
		t.Errorf("the query of IGMP is %x", igmp)
	}
	if !mld.IsValid(len(mld)) || mld.HopLimit() != 1 || mld.NextHeader() != 0 || mld[48] != 130 {
		t.Errorf("the query of MLD is %x", mld)
	}
}
