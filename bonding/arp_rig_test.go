package bonding_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/probe"
	"bondstack/link"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// fakeRoutes is a stack with one address of each family on the bond, unless a
// way says otherwise.
type fakeRoutes struct {
	mu    sync.Mutex
	ways  map[netip.Addr]link.Way
	away  map[netip.Addr]bool // by another link
	owned map[netip.Addr]bool
	asked int // Owns
}

var (
	ownV4   = netip.MustParseAddr("10.1.0.2")
	ownV6   = netip.MustParseAddr("fd00:1::2")
	target1 = netip.MustParseAddr("10.1.0.11")
	target2 = netip.MustParseAddr("10.1.0.12")
	target6 = netip.MustParseAddr("fd00:1::11")
)

func newFakeRoutes() *fakeRoutes {
	return &fakeRoutes{ways: map[netip.Addr]link.Way{}, away: map[netip.Addr]bool{}, owned: map[netip.Addr]bool{ownV4: true, ownV6: true}}
}

func (f *fakeRoutes) Route(a netip.Addr) (link.Way, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away[a] {
		return link.Way{}, false
	}
	if w, ok := f.ways[a]; ok {
		return w, true
	}
	if a.Is4() {
		return link.Way{Source: ownV4}, true
	}
	return link.Way{Source: ownV6}, true
}

func (f *fakeRoutes) Owns(a netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.owned[a]
}

// segment is a switch that joins the links of a rig, with targets behind it. It
// floods what is for a group, and answers for the targets that are alive.
type segment struct {
	*rig
	routes *fakeRoutes
	alive  map[netip.Addr]bool
	cut    map[string]string // by link: "in", "out" or "both" is lost
	alone  bool              // the links do not hear each other
	log    []string          // probes: "TIME LINK who-has TARGET tell SOURCE"
	start  time.Duration
}

// newSegment is a rig with a stack above, and a switch with the targets of the
// options below.
func newSegment(tb testing.TB, o bonding.Options, slaves int) *segment {
	tb.Helper()
	if o.ARPInterval == 0 {
		o.ARPInterval = 100 * time.Millisecond
	}
	if len(o.ARPIPTargets)+len(o.NSIP6Targets) == 0 {
		o.ARPIPTargets = []netip.Addr{target1}
	}
	s := &segment{rig: newDownRig(tb, o, slaves), routes: newFakeRoutes(), alive: map[netip.Addr]bool{}, cut: map[string]string{}}
	for _, t := range append(slices.Clone(o.ARPIPTargets), o.NSIP6Targets...) {
		s.alive[t] = true
	}
	tb.Cleanup(s.UseRoutes(s.routes))
	s.attach()
	s.deliver()
	return s
}

var targetMAC = probe.MAC{2, 0, 0, 0, 1, 1}

// names are the links in order.
func (s *segment) names() []string {
	var list []string
	for name := range s.links {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func (s *segment) now() time.Duration {
	return s.clock.NowMonotonic().Sub(tcpip.MonotonicTime{})
}

// deliver takes what the links have sent to where it goes.
func (s *segment) deliver() {
	for _, name := range s.names() {
		for _, w := range s.links[name].Drain() {
			s.probed(name, w.Frame)
		}
	}
}

func (s *segment) probed(name string, frame []byte) {
	m, ok := probe.Parse(binary.BigEndian.Uint16(frame[12:]), frame[14:])
	if !ok {
		return
	}
	target := m.Destination
	if m.Kind == probe.Neighbor {
		target = netip.AddrFrom16([16]byte(frame[len(frame)-32+8 : len(frame)-32+24]))
		if m.Source.IsUnspecified() {
			target = netip.AddrFrom16([16]byte(frame[len(frame)-16:]))
		}
	}
	s.log = append(s.log, fmt.Sprintf("%d %s who-has %s tell %s", (s.now()-s.start).Milliseconds(), name, target, m.Source))
	if c := s.cut[name]; c == "out" || c == "both" {
		return
	}
	for _, other := range s.names() {
		if other != name && !s.alone {
			s.receive(other, frame)
		}
	}
	if s.alive[target] {
		s.receive(name, answer(frame, m, target))
	}
}

// receive delivers a frame to a link, unless it is cut.
func (s *segment) receive(name string, frame []byte) {
	if c := s.cut[name]; c != "in" && c != "both" {
		s.links[name].Inject(frame)
	}
}

// answer is a target's reply to a probe, with the probe's tags.
func answer(frame []byte, m probe.Message, target netip.Addr) []byte {
	requester := probe.MAC(frame[6:12])
	tags := len(frame) - 14 - 28
	if m.Kind == probe.ARP {
		b := probe.ARPRequest(targetMAC, target, m.Source, nil)
		b[21] = 2
		copy(b[32:], requester[:])
		return unicast(b, requester, frame[12:12+tags])
	}
	b := probe.Solicitation(targetMAC, target, m.Source, nil)
	b[14+40] = 136 // an advertisement; nobody looks at the rest
	to := m.Source.As16()
	copy(b[14+24:], to[:])
	return unicast(b, requester, nil)
}

func unicast(b []byte, dst probe.MAC, tags []byte) []byte {
	copy(b, dst[:])
	return slices.Concat(b[:12], tags, b[12:])
}

// run has time pass, a millisecond at a time, with the segment at work.
func (s *segment) run(ms int) {
	for range ms {
		s.ms(1)
		s.deliver()
	}
}

// runUntil runs until ok, and returns how many milliseconds it took.
func (s *segment) runUntil(ok func() bool) int {
	s.tb.Helper()
	for n := range 20000 {
		if ok() {
			return n
		}
		s.run(1)
	}
	s.tb.Fatalf("never became true; MII status is %s, active %q", s.mii(), s.Status().ActiveSlave)
	return 0
}

// probes returns the log since the last call.
func (s *segment) probes() []string {
	log := s.log
	s.log = nil
	return log
}

func (s *segment) wantProbes(when string, want ...string) {
	s.tb.Helper()
	if got := s.probes(); !slices.Equal(got, want) {
		s.tb.Errorf("%s: probes\n %s\nwant\n %s", when, strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

// mark has the times in the log count from here.
func (s *segment) mark() { s.start, s.log = s.now(), nil }

// noise is a broadcast of a stranger, that no validation takes for evidence.
func noise(kind string) []byte {
	stranger := probe.MAC{2, 0, 0, 0, 9, 9}
	switch kind {
	case "arp": // asks for somebody else
		return probe.ARPRequest(stranger, netip.MustParseAddr("10.1.0.99"), netip.MustParseAddr("10.1.0.98"), nil)
	case "nd":
		return probe.Solicitation(stranger, netip.MustParseAddr("fd00:1::99"), netip.MustParseAddr("fd00:1::98"), nil)
	}
	f := linktest.Flow4(7)
	f.DstMAC = "\xff\xff\xff\xff\xff\xff"
	return f.UDP([]byte("noise"))
}

// probeFrame is a request or solicitation.
func probeFrame(mac tcpip.LinkAddress, source, target netip.Addr) []byte {
	if target.Is4() {
		return probe.ARPRequest(probe.MAC([]byte(mac)), source, target, nil)
	}
	return probe.Solicitation(probe.MAC([]byte(mac)), source, target, nil)
}

// reply is a target's answer to a frame of probeFrame.
func reply(request []byte, target netip.Addr) []byte {
	m, _ := probe.Parse(binary.BigEndian.Uint16(request[12:]), request[14:])
	return answer(request, m, target)
}

// linkWay is a way from an address by tags, given as protocol and number.
func linkWay(source string, tags ...uint16) (w link.Way) {
	w.Source, _ = netip.ParseAddr(source)
	for i := 0; i < len(tags); i += 2 {
		w.Tags = append(w.Tags, link.VLANTag{Protocol: tags[i], ID: tags[i+1]})
	}
	return w
}
