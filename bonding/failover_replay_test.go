package bonding_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/vlan"
	netstack "bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// failoverReplay is a bond that receives what a Linux bond received in a capture, when
// it did, and loses its links when that did. What both send can be compared.
type failoverReplay struct {
	mu sync.Mutex // guards the lists while they grow
	*rig
	start        time.Duration // of what is compared, by the capture's clock
	linux, bond  []sentFrame
	injected     [2][]linktest.Captured
	fails, back  time.Duration // when link 0 loses its carrier and has it again
	clockStarted time.Duration
}

// sentFrame is a frame that a bond sent.
type sentFrame struct {
	at   time.Duration // since start
	link int
	what string
}

func (f sentFrame) String() string { return fmt.Sprintf("%8v link%d %s", f.at, f.link, f.what) }

// newFailoverReplay reads the capture of a name, of which the time from start on is
// compared. The bond is made by o; slave ethN has the address of the frames that
// Linux's sent first on link N.
func newFailoverReplay(t *testing.T, name string, start time.Duration, o bonding.Options) *failoverReplay {
	t.Helper()
	r := &failoverReplay{}
	read := func(link int, way string) []linktest.Captured {
		return linktest.ReadPcap(t, filepath.Join("../testdata/active-backup", fmt.Sprintf("%s.link%d.%s.pcap", name, link, way)))
	}
	var sent [2][]linktest.Captured
	for i := range 2 {
		sent[i], r.injected[i] = read(i, "tx"), read(i, "rx")
	}
	first := min(sent[0][0].At, r.injected[0][0].At, r.injected[1][0].At)
	r.start = first + start
	r.fails = sent[1][0].At // Linux sends on link 1 only after the failover
	for i := range 2 {
		for _, f := range sent[i] {
			if f.At >= r.start {
				r.note(&r.linux, f.At-r.start, i, f.Frame)
			}
			if i == 0 && f.At > r.fails && r.back == 0 {
				r.back = f.At
			}
		}
	}
	r.rig = newDownRig(t, o, 0)
	for i := range 2 {
		l := r.enslave(fmt.Sprintf("eth%d", i), bonding.SlaveOptions{}, linktest.RecorderOptions{Address: source(sent[i][0].Frame)})
		l.OnWrite(func(list stack.PacketBufferList) {
			for _, pkt := range list.AsSlice() {
				v := pkt.ToView()
				if at := r.now(); at >= 0 {
					r.note(&r.bond, at, i, v.AsSlice())
				}
				v.Release()
			}
		})
	}
	r.clockStarted = first
	return r
}

func source(frame []byte) tcpip.LinkAddress { return tcpip.LinkAddress(frame[6:12]) }

// now is the time since start, negative before.
func (r *failoverReplay) now() time.Duration {
	return r.clock.NowMonotonic().Sub(tcpip.MonotonicTime{}) - (r.start - r.clockStarted)
}

// note adds a frame to a list, if it is of the kinds that are compared. Router
// solicitations are not, since the host looks for no routers, nor is the news
// that a group was joined.
func (r *failoverReplay) note(list *[]sentFrame, at time.Duration, link int, frame []byte) {
	r.mu.Lock() // the stack's timers run on goroutines of their own
	defer r.mu.Unlock()
	if what := describe(frame); what != "" {
		*list = append(*list, sentFrame{at, link, what})
	}
}

// run replays the capture.
func (r *failoverReplay) run() {
	type event struct {
		at time.Duration
		do func()
	}
	events := []event{{r.fails, func() { r.carrier("eth0", false) }}, {r.back, func() { r.carrier("eth0", true) }}}
	for i, list := range r.injected {
		for _, f := range list {
			events = append(events, event{f.At, func() { r.links[fmt.Sprint("eth", i)].Inject(f.Frame) }})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	at := r.clockStarted
	for _, e := range events {
		r.advance(e.at - at)
		at = e.at
		e.do()
		r.clock.RunImmediatelyScheduledJobs()
	}
	r.advance(150 * time.Millisecond)
	slices.SortStableFunc(r.linux, func(a, b sentFrame) int { return int(a.at - b.at) })
}

// compare fails the test where the frames differ in kind, order, link or
// addresses, or in time by more than a tick and slack for the other machine's
// goings-on.
func (r *failoverReplay) compare(linux, bond []sentFrame) {
	r.tb.Helper()
	same := len(linux) == len(bond)
	for i := 0; same && i < len(linux); i++ {
		l, b := linux[i], bond[i]
		same = l.link == b.link && l.what == b.what && (l.at-b.at).Abs() <= tick+5*time.Millisecond
	}
	if !same {
		r.tb.Errorf("Linux sent\n%s\nthe bond\n%s", lines(linux), lines(bond))
	}
}

func lines(list []sentFrame) string {
	var t strings.Builder
	for _, f := range list {
		fmt.Fprintln(&t, f)
	}
	return t.String()
}

// describe names a frame with all that matters of it, or is empty where it is
// not compared.
func describe(frame []byte) string {
	eth := header.Ethernet(frame)
	kind, rest, tag := eth.Type(), frame[header.EthernetMinimumSize:], ""
	if kind == 0x8100 {
		tag = fmt.Sprintf(" vlan %d", int(rest[0]&15)<<8|int(rest[1]))
		kind, rest = tcpip.NetworkProtocolNumber(int(rest[2])<<8|int(rest[3])), rest[4:]
	}
	way := fmt.Sprintf("%s>%s%s ", eth.SourceAddress(), eth.DestinationAddress(), tag)
	switch kind {
	case header.ARPProtocolNumber:
		a := header.ARP(rest)
		return way + fmt.Sprintf("ARP %d from %s %s for %s %s", a.Op(), hex(a.HardwareAddressSender()), ip(a.ProtocolAddressSender()),
			hex(a.HardwareAddressTarget()), ip(a.ProtocolAddressTarget()))
	case header.IPv4ProtocolNumber:
		h := header.IPv4(rest)
		return way + fmt.Sprintf("IPv4 %s>%s protocol %d, %x", h.SourceAddress(), h.DestinationAddress(), h.Protocol(), h.Payload())
	case header.IPv6ProtocolNumber:
		return describeIPv6(way, header.IPv6(rest))
	}
	return way + fmt.Sprintf("%x", frame)
}

func describeIPv6(way string, h header.IPv6) string {
	payload, next := h.Payload(), h.NextHeader()
	if next == 0 { // hop by hop, before MLD
		next, payload = payload[0], payload[8:]
	}
	way += fmt.Sprintf("IPv6 %s>%s hops %d ", h.SourceAddress(), h.DestinationAddress(), h.HopLimit())
	switch {
	case next != uint8(header.ICMPv6ProtocolNumber):
		return way + fmt.Sprint("protocol ", next)
	case header.ICMPv6Type(payload[0]) == header.ICMPv6RouterSolicit:
		return ""
	case payload[0] == 143 && payload[8] == 4: // a report of MLDv2 that a group was joined, at random times
		return ""
	case payload[0] == 143:
		return way + fmt.Sprintf("MLD %x", payload[6:])
	case header.ICMPv6Type(payload[0]) == header.ICMPv6NeighborAdvert:
		return way + fmt.Sprintf("advertisement %x", payload[4:])
	}
	return way + fmt.Sprintf("ICMPv6 %x", payload)
}

func hex(b []byte) string { return tcpip.LinkAddress(b).String() }

func ip(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// addHost gives a link of the bond's to a host with the addresses that Linux had.
func (r *failoverReplay) addHost(link stack.LinkEndpoint) *netstack.Host {
	r.tb.Helper()
	h, err := netstack.NewHost(link, netstack.HostOptions{Clock: r.clock,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.2/24"), netip.MustParsePrefix("fd00:1::2/64")}})
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { h.Close() })
	return h
}

// fail_over_mac=active: the same announcements with the same addresses, in the
// same order. After the return Linux has forgotten its neighbours, since its
// address is another, and asks for the one that pings it; netstack remembers
// them.
func TestReplayFailOverMAC(t *testing.T) {
	r := newFailoverReplay(t, "fail-over-mac", 5*time.Second, bonding.Options{Mode: bonding.ActiveBackup, MIIMon: 50 * time.Millisecond,
		FailOverMAC: bonding.FailOverMACActive, Primary: "eth0"})
	r.addHost(r.Bond)
	r.run()
	linux := slices.DeleteFunc(slices.Clone(r.linux), func(f sentFrame) bool {
		return strings.Contains(f.what, "ARP 1 from") && strings.Contains(f.what, "10.1.0.11")
	})
	if len(linux) != len(r.linux)-1 {
		t.Errorf("%d frames of Linux are left out, want 1", len(r.linux)-len(linux))
	}
	r.compare(linux, withoutReports(r.bond))
}

// withoutReports leaves out MLD reports without a tag, which the captures do not
// have.
func withoutReports(list []sentFrame) []sentFrame {
	return slices.DeleteFunc(slices.Clone(list), func(f sentFrame) bool {
		return strings.Contains(f.what, " MLD ") && !strings.Contains(f.what, " vlan ")
	})
}

// The announcements of each failover, also on a VLAN device, the reports of its
// memberships, and the answers in between: on each device the same frames in the
// same order. (Linux has all devices announce their IPv4 addresses before one
// does its IPv6 addresses.) Linux of this release sends one announcement less
// than num_grat_arp says, so the third of each failover is ours alone.
func TestReplayFailover(t *testing.T) {
	r := newFailoverReplay(t, "failover", 5*time.Second, bonding.Options{Mode: bonding.ActiveBackup, MIIMon: 50 * time.Millisecond,
		NumGratARP: 3, Primary: "eth0"})
	trunk, err := vlan.NewTrunk(r.Bond)
	if err != nil {
		t.Fatal(err)
	}
	device, err := trunk.Add(link.VLANTag{Protocol: link.TagProtocolQ, ID: 10}, vlan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := r.addHost(trunk)
	if _, err := h.AddLink("bond0.10", device, netstack.LinkOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.2.0.2/24")}}); err != nil {
		t.Fatal(err)
	}
	r.run()
	for _, tagged := range []bool{false, true} {
		announced := map[bool]int{false: 3, true: 2}[tagged]
		elsewhere := func(f sentFrame) bool { return strings.Contains(f.what, " vlan 10 ") != tagged }
		linux := slices.DeleteFunc(slices.Clone(r.linux), elsewhere)
		bond, third := withoutLast(slices.DeleteFunc(withoutReports(r.bond), elsewhere), r.fails-r.start, r.back-r.start)
		r.compare(linux, bond)
		for i, at := range []time.Duration{r.fails - r.start, r.back - r.start} {
			var first []sentFrame
			for _, f := range bond {
				if f.at == at {
					f.at += 100 * time.Millisecond
					first = append(first, f)
				}
			}
			if fmt.Sprint(third[i]) != fmt.Sprint(first) || len(first) != announced {
				t.Errorf("the third announcement is\n%s\nwant\n%s", lines(third[i]), lines(first))
			}
		}
	}
	reports := slices.DeleteFunc(slices.Clone(r.bond), func(f sentFrame) bool {
		// Two records of type 2, "mode is exclude": the groups of fd00:1::2 and
		// of the link-local address.
		return strings.Contains(f.what, " vlan ") || !strings.Contains(f.what, " MLD 000202")
	})
	if len(reports) != 2 || reports[0].at != r.fails-r.start+tick || reports[1].at != r.back-r.start+tick {
		t.Errorf("reports without a tag are\n%s\nwant one for each failover", lines(reports))
	}
}

// withoutLast takes what was sent 100 ms after each of some moments out of a
// list: the third announcement.
func withoutLast(list []sentFrame, moments ...time.Duration) (rest []sentFrame, last [][]sentFrame) {
	last = make([][]sentFrame, len(moments))
	for _, f := range list {
		i := slices.Index(moments, f.at-100*time.Millisecond)
		if i < 0 {
			rest = append(rest, f)
			continue
		}
		last[i] = append(last[i], f)
	}
	return rest, last
}
