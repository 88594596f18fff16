package stack_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"bondstack/stack"
)

// groups is a host on a recorder, on a manual clock.
type groups struct {
	t testing.TB
	*stack.Host
	*recorder
	clock *faketime.ManualClock
}

func newGroups(t testing.TB) *groups {
	g := &groups{t: t, clock: faketime.NewManualClock()}
	g.Host, g.recorder = newRecorded(t, false, func(o *stack.HostOptions) {
		o.Clock = g.clock
		o.Addresses = []netip.Prefix{prefix("10.0.0.1/24"), prefix("fd00::1/64")}
	})
	return g
}

func (g *groups) join(group string) {
	g.t.Helper()
	a := addr(group)
	proto := tcpip.NetworkProtocolNumber(ipv4.ProtocolNumber)
	if a.Is6() {
		proto = ipv6.ProtocolNumber
	}
	if err := g.Stack().JoinGroup(proto, g.NICID(), tcpip.AddrFromSlice(a.AsSlice())); err != nil {
		g.t.Fatal(err)
	}
}

// reports has the link ask for reports, when what joining sent is over, and
// returns what the host sends, in order.
func (g *groups) reports() []string {
	g.t.Helper()
	g.clock.Advance(time.Minute)
	g.take()
	g.resend()
	g.clock.RunImmediatelyScheduledJobs()
	var list []string
	for _, frame := range g.take() {
		list = append(list, describeReport(g.t, frame))
	}
	slices.Sort(list)
	return list
}

func (g *groups) want(when string, want ...string) {
	g.t.Helper()
	slices.Sort(want)
	if got := g.reports(); !slices.Equal(got, want) {
		g.t.Errorf("%s: reports are\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// describeReport reads a report of IGMP or MLD as its receiver does: addresses,
// hop limit and checksum included.
func describeReport(t testing.TB, frame []byte) string {
	t.Helper()
	payload := frame[header.EthernetMinimumSize:]
	var groups []string
	switch header.Ethernet(frame).Type() {
	case header.IPv4ProtocolNumber:
		ip := header.IPv4(payload)
		igmp := ip.Payload()
		if ip.Protocol() != 2 || ip.TTL() != 1 || ip.HeaderLength() != 24 || header.IGMPCalculateChecksum(igmp) != header.IGMP(igmp).Checksum() {
			t.Fatalf("%x is no report", frame)
		}
		if header.IGMP(igmp).Type() != header.IGMPv3MembershipReport {
			return fmt.Sprintf("IGMP %#x to %s for %s", igmp[0], ip.DestinationAddress(), header.IGMP(igmp).GroupAddress())
		}
		for at := 8; at < len(igmp); at += 8 {
			groups = append(groups, fmt.Sprint(igmp[at], " ", netip.AddrFrom4([4]byte(igmp[at+4:]))))
		}
		slices.Sort(groups)
		return fmt.Sprintf("IGMPv3 to %s: %v", ip.DestinationAddress(), groups)
	case header.IPv6ProtocolNumber:
		ip := header.IPv6(payload)
		mld := ip.Payload()[8:] // behind the hop-by-hop header
		if ip.HopLimit() != 1 || ip.SourceAddress() != header.LinkLocalAddr(recorderMAC) {
			t.Fatalf("%x is no report", frame)
		}
		if mld[0] != 143 {
			return fmt.Sprintf("MLD %d to %s for %s", mld[0], ip.DestinationAddress(), netip.AddrFrom16([16]byte(mld[8:])))
		}
		for at := 8; at < len(mld); at += 20 {
			groups = append(groups, fmt.Sprint(mld[at], " ", netip.AddrFrom16([16]byte(mld[at+4:]))))
		}
		slices.Sort(groups)
		return fmt.Sprintf("MLDv2 to %s: %v", ip.DestinationAddress(), groups)
	}
	t.Fatalf("%x is neither IPv4 nor IPv6", frame)
	return ""
}

const solicited = "[2 ff02::1:ff00:1 2 ff02::1:ffaa:bbcc]"

// When the link asks for it, every joined group is reported as it stands (record
// type 2, "mode is exclude"), those of solicited nodes too, and nothing is left
// nor joined anew. 224.0.0.1 and ff02::1 are no matter of reports.
func TestReportMemberships(t *testing.T) {
	g := newGroups(t)
	g.want("no groups of its own", "MLDv2 to ff02::16: "+solicited)
	for _, group := range []string{"239.1.2.3", "224.0.0.251", "ff15::1", "ff02::fb"} {
		g.join(group)
	}
	g.want("groups of the stack", "IGMPv3 to 224.0.0.22: [2 224.0.0.251 2 239.1.2.3]",
		"MLDv2 to ff02::16: [2 ff02::1:ff00:1 2 ff02::1:ffaa:bbcc 2 ff02::fb 2 ff15::1]")

	// What a socket has joined counts, and what it leaves with its end does not.
	var wq waiter.Queue
	ep, err := g.Stack().NewEndpoint(udp.ProtocolNumber, ipv4.ProtocolNumber, &wq)
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.SetSockOpt(&tcpip.AddMembershipOption{NIC: g.NICID(), MulticastAddr: tcpip.AddrFrom4([4]byte{239, 9, 9, 9})}); err != nil {
		t.Fatal(err)
	}
	mld := "MLDv2 to ff02::16: [2 ff02::1:ff00:1 2 ff02::1:ffaa:bbcc 2 ff02::fb 2 ff15::1]"
	g.want("a socket", "IGMPv3 to 224.0.0.22: [2 224.0.0.251 2 239.1.2.3 2 239.9.9.9]", mld)
	ep.Close()
	g.want("the socket is closed", "IGMPv3 to 224.0.0.22: [2 224.0.0.251 2 239.1.2.3]", mld)
	g.Stack().LeaveGroup(ipv4.ProtocolNumber, g.NICID(), tcpip.AddrFrom4([4]byte{239, 1, 2, 3}))
	g.want("a group is left", "IGMPv3 to 224.0.0.22: [2 224.0.0.251]", mld)
	resend := g.resend
	g.Host.Close()
	if g.resend != nil {
		t.Error("a closed host is still subscribed")
	}
	g.resend = resend // a call that was under way
	g.want("the host is closed")
}

// Reports are of the version that is spoken, and asking for them changes nothing
// of it: not what was set, nor for how long an old router counts as present.
func TestReportMembershipsVersions(t *testing.T) {
	g := newGroups(t)
	g.join("239.1.2.3")
	igmp := endpoint[ipv4.IGMPEndpoint](g, ipv4.ProtocolNumber)
	mld := endpoint[ipv6.MLDEndpoint](g, ipv6.ProtocolNumber)
	mldV1 := []string{"MLD 131 to ff02::1:ff00:1 for ff02::1:ff00:1", "MLD 131 to ff02::1:ffaa:bbcc for ff02::1:ffaa:bbcc"}
	for version, want := range map[ipv4.IGMPVersion]string{
		ipv4.IGMPVersion1: "IGMP 0x12 to 239.1.2.3 for 239.1.2.3",
		ipv4.IGMPVersion2: "IGMP 0x16 to 239.1.2.3 for 239.1.2.3",
		ipv4.IGMPVersion3: "IGMPv3 to 224.0.0.22: [2 239.1.2.3]",
	} {
		igmp.SetIGMPVersion(version)
		mld.SetMLDVersion(ipv6.MLDVersion1)
		g.want(fmt.Sprint("IGMP version ", version), append(mldV1, want)...)
		if got := igmp.GetIGMPVersion(); got != version {
			t.Errorf("the version is %d, was %d", got, version)
		}
		if got := mld.GetMLDVersion(); got != ipv6.MLDVersion1 {
			t.Errorf("MLD's version is %d", got)
		}
	}
	igmp.SetIGMPVersion(ipv4.IGMPVersion3)
	mld.SetMLDVersion(ipv6.MLDVersion2)

	// A router of version 2 is heard: it counts for 2 times 125 s (RFC 3376,
	// section 8.12, without the response interval).
	g.inject(igmpV2Query)
	for range 3 { // a minute each
		g.want("an old router", "MLDv2 to ff02::16: "+solicited, "IGMP 0x16 to 239.1.2.3 for 239.1.2.3")
	}
	g.clock.Advance(20 * time.Second)
	g.want("the old router is forgotten", "MLDv2 to ff02::16: "+solicited, "IGMPv3 to 224.0.0.22: [2 239.1.2.3]")
}

// endpoint returns the host's part of a protocol.
func endpoint[E any](g *groups, proto tcpip.NetworkProtocolNumber) E {
	g.t.Helper()
	ep, err := g.Stack().GetNetworkEndpoint(g.NICID(), proto)
	if err != nil {
		g.t.Fatal(err)
	}
	return ep.(E)
}

// igmpV2Query is a general query of version 2 from 10.0.0.9, with 1 s to answer.
var igmpV2Query = []byte{
	0x46, 0xc0, 0, 32, 0, 0, 0, 0, 1, 2, 0x3a, 0x0e, 10, 0, 0, 9, 224, 0, 0, 1, 0x94, 4, 0, 0,
	0x11, 10, 0xee, 0xf5, 0, 0, 0, 0,
}

// inject has the host receive an IPv4 packet.
func (g *groups) inject(packet []byte) {
	g.t.Helper()
	g.deliver(ipv4.ProtocolNumber, packet)
	g.clock.Advance(time.Second)
}

// Reports race with everything else.
func TestReportMembershipsRace(t *testing.T) {
	h, r := newRecorded(t, false, nil)
	resend := r.resend
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			group := tcpip.AddrFrom4([4]byte{239, 0, 0, byte(i)})
			for range 50 {
				h.Stack().JoinGroup(ipv4.ProtocolNumber, h.NICID(), group)
				resend()
				h.Stack().LeaveGroup(ipv4.ProtocolNumber, h.NICID(), group)
			}
		})
	}
	wg.Go(func() { h.Close() })
	wg.Wait()
}
